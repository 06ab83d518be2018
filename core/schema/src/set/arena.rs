use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::Value;
use toolwarden_model::json::to_canonical_string;

use super::ratio::Ratio;
use super::types::TypeSet;

/// A node of an [`Arena`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(u32);

/// A node that holds, or one that does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Literal {
    pub(crate) id: NodeId,
    pub(crate) holds: bool,
}

impl Literal {
    pub(crate) const fn not(self) -> Self {
        Self {
            id: self.id,
            holds: !self.holds,
        }
    }
}

impl NodeId {
    pub(crate) const fn holds(self) -> Literal {
        Literal {
            id: self,
            holds: true,
        }
    }

    pub(crate) const fn fails(self) -> Literal {
        Literal {
            id: self,
            holds: false,
        }
    }
}

/// One value of an enumeration, known by its canonical text.
#[derive(Clone, Debug)]
pub(crate) struct Constant {
    text: Arc<str>,
    pub(crate) value: Arc<Value>,
}

impl Constant {
    pub(crate) fn of(value: &Value) -> Self {
        let text = match Ratio::of_value(value) {
            // `1`, `1.0` and `1e0` are one number.
            Some(ratio) => format!("{ratio:?}"),
            None => exact_text(value),
        };
        Self {
            text: text.into(),
            value: Arc::new(value.clone()),
        }
    }
}

/// A text that equal values share and different ones do not. Canonical JSON rounds numbers to binary
/// fractions, so a number that it would change is written exactly.
fn exact_text(value: &Value) -> String {
    match value {
        Value::Number(number) => {
            let rounded = to_canonical_string(value);
            let read = serde_json::from_str(&rounded).ok();
            match (Ratio::of(number), read.as_ref().and_then(Ratio::of)) {
                (Some(exact), Some(read)) if exact == read => rounded,
                (Some(exact), _) => format!("{exact:?}"),
                // Beyond what is computed, only the same text is the same number.
                (None, _) => number.to_string(),
            }
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(exact_text).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(members) => {
            let mut members: Vec<(String, &Value)> = members
                .iter()
                .map(|(key, member)| (to_canonical_string(&Value::from(key.as_str())), member))
                .collect();
            members.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
            let members = members
                .iter()
                .map(|(key, member)| format!("{key}:{}", exact_text(member)));
            format!("{{{}}}", members.collect::<Vec<String>>().join(","))
        }
        other => to_canonical_string(other),
    }
}

impl PartialEq for Constant {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}
impl Eq for Constant {}
impl PartialOrd for Constant {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Constant {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.text.cmp(&other.text)
    }
}
impl std::hash::Hash for Constant {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

/// One fact about a value. A fact about one type holds for every value of another type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fact {
    Type(TypeSet),
    Enum(Arc<[Constant]>),
    AtLeast {
        bound: Ratio,
        strict: bool,
    },
    AtMost {
        bound: Ratio,
        strict: bool,
    },
    MultipleOf(Ratio),
    MinLength(u64),
    MaxLength(u64),
    Pattern(Arc<str>),
    /// A schema of `format` or the content keywords, as its text: only the validator knows it.
    Format(Arc<str>),
    Items {
        prefix: Vec<NodeId>,
        rest: NodeId,
    },
    Contains {
        schema: NodeId,
        min: u64,
        max: Option<u64>,
    },
    MinItems(u64),
    MaxItems(u64),
    UniqueItems,
    Properties(Properties),
    Required(Arc<str>),
    Names(NodeId),
    MinProperties(u64),
    MaxProperties(u64),
    /// Every one of them; none is the fact that always holds.
    All(Vec<NodeId>),
    /// At least one of them; none is the fact that never holds.
    Any(Vec<NodeId>),
    One(Vec<NodeId>),
    Not(NodeId),
    /// A definition, by its number in the arena.
    Definition(usize),
    /// Something no rule reads. Equal text at equal meaning is the same fact.
    Opaque {
        keyword: &'static str,
        text: Arc<str>,
    },
}

/// What an object's values must be, by their keys.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Properties {
    pub(crate) named: BTreeMap<Arc<str>, NodeId>,
    pub(crate) patterns: Vec<(Arc<str>, NodeId)>,
    pub(crate) rest: NodeId,
}

/// The nodes of both schemas. Equal nodes are one node.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    nodes: Vec<Arc<Fact>>,
    ids: HashMap<Arc<Fact>, NodeId>,
    definitions: Vec<Option<NodeId>>,
}

impl Arena {
    pub(crate) fn node(&self, id: NodeId) -> &Fact {
        // INVARIANT: an `NodeId` is only made by `add`, so its node is there.
        static NEVER: Fact = Fact::Any(Vec::new());
        self.nodes.get(id.0 as usize).map_or(&NEVER, AsRef::as_ref)
    }

    pub(crate) fn add(&mut self, node: Fact) -> NodeId {
        if let Some(id) = self.ids.get(&node) {
            return *id;
        }
        let id = NodeId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        let node = Arc::new(node);
        self.nodes.push(Arc::clone(&node));
        self.ids.insert(node, id);
        id
    }

    pub(crate) fn always(&mut self) -> NodeId {
        self.add(Fact::All(Vec::new()))
    }

    pub(crate) fn never(&mut self) -> NodeId {
        self.add(Fact::Any(Vec::new()))
    }

    /// Every one of the parts, flat and in a fixed order.
    pub(crate) fn all(&mut self, parts: impl IntoIterator<Item = NodeId>) -> NodeId {
        let never = self.never();
        let mut flat = Vec::new();
        for part in parts {
            match self.node(part) {
                Fact::All(inner) => flat.extend(inner.iter().copied()),
                _ => flat.push(part),
            }
        }
        flat.sort_unstable();
        flat.dedup();
        if flat.contains(&never) {
            return never;
        }
        match flat.as_slice() {
            [only] => *only,
            _ => self.add(Fact::All(flat)),
        }
    }

    /// At least one of the parts, flat and in a fixed order.
    pub(crate) fn any(&mut self, parts: impl IntoIterator<Item = NodeId>) -> NodeId {
        let always = self.always();
        let mut flat = Vec::new();
        let mut types = TypeSet::NONE;
        for part in parts {
            match self.node(part) {
                Fact::Any(inner) => flat.extend(inner.iter().copied()),
                Fact::Type(set) => types = types.or(*set),
                _ => flat.push(part),
            }
        }
        if !types.is_empty() {
            flat.push(self.add(Fact::Type(types)));
        }
        flat.sort_unstable();
        flat.dedup();
        if flat.contains(&always) {
            return always;
        }
        match flat.as_slice() {
            [only] => *only,
            _ => self.add(Fact::Any(flat)),
        }
    }

    pub(crate) fn not(&mut self, part: NodeId) -> NodeId {
        match self.node(part) {
            Fact::Not(inner) => *inner,
            Fact::Type(set) => {
                let set = set.complement();
                self.add(Fact::Type(set))
            }
            _ => self.add(Fact::Not(part)),
        }
    }

    pub(crate) fn constants(&mut self, values: impl IntoIterator<Item = Constant>) -> NodeId {
        let mut values: Vec<Constant> = values.into_iter().collect();
        values.sort();
        values.dedup();
        self.add(Fact::Enum(values.into()))
    }

    /// Makes room for a definition whose body is compiled later.
    pub(crate) fn reserve_definition(&mut self) -> usize {
        self.definitions.push(None);
        self.definitions.len() - 1
    }

    pub(crate) fn define(&mut self, definition: usize, body: NodeId) {
        if let Some(slot) = self.definitions.get_mut(definition) {
            *slot = Some(body);
        }
    }

    pub(crate) fn definition(&self, definition: usize) -> Option<NodeId> {
        self.definitions.get(definition).copied().flatten()
    }
}
