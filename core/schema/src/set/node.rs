use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::Value;
use toolwarden_model::json::to_canonical_string;

use super::number::Ratio;
use super::types::TypeSet;

/// A node of an [`Arena`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Id(u32);

/// A node that holds, or one that does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Literal {
    pub(crate) id: Id,
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

impl Id {
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
        let mut text = to_canonical_string(value);
        if let Some(ratio) = Ratio::of_value(value) {
            // `1`, `1.0` and `1e0` are one number.
            text = format!("{ratio:?}");
        }
        Self {
            text: text.into(),
            value: Arc::new(value.clone()),
        }
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
pub(crate) enum Node {
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
        prefix: Vec<Id>,
        rest: Id,
    },
    Contains {
        schema: Id,
        min: u64,
        max: Option<u64>,
    },
    MinItems(u64),
    MaxItems(u64),
    UniqueItems,
    Properties(Properties),
    Required(Arc<str>),
    Names(Id),
    MinProperties(u64),
    MaxProperties(u64),
    /// Every one of them; none is the fact that always holds.
    All(Vec<Id>),
    /// At least one of them; none is the fact that never holds.
    Any(Vec<Id>),
    One(Vec<Id>),
    Not(Id),
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
    pub(crate) named: BTreeMap<Arc<str>, Id>,
    pub(crate) patterns: Vec<(Arc<str>, Id)>,
    pub(crate) rest: Id,
}

/// The nodes of both schemas. Equal nodes are one node.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    nodes: Vec<Arc<Node>>,
    ids: HashMap<Arc<Node>, Id>,
    definitions: Vec<Option<Id>>,
}

impl Arena {
    pub(crate) fn node(&self, id: Id) -> &Node {
        // INVARIANT: an `Id` is only made by `add`, so its node is there.
        static NEVER: Node = Node::Any(Vec::new());
        self.nodes.get(id.0 as usize).map_or(&NEVER, AsRef::as_ref)
    }

    pub(crate) fn add(&mut self, node: Node) -> Id {
        if let Some(id) = self.ids.get(&node) {
            return *id;
        }
        let id = Id(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        let node = Arc::new(node);
        self.nodes.push(Arc::clone(&node));
        self.ids.insert(node, id);
        id
    }

    pub(crate) fn always(&mut self) -> Id {
        self.add(Node::All(Vec::new()))
    }

    pub(crate) fn never(&mut self) -> Id {
        self.add(Node::Any(Vec::new()))
    }

    /// Every one of the parts, flat and in a fixed order.
    pub(crate) fn all(&mut self, parts: impl IntoIterator<Item = Id>) -> Id {
        let never = self.never();
        let mut flat = Vec::new();
        for part in parts {
            match self.node(part) {
                Node::All(inner) => flat.extend(inner.iter().copied()),
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
            _ => self.add(Node::All(flat)),
        }
    }

    /// At least one of the parts, flat and in a fixed order.
    pub(crate) fn any(&mut self, parts: impl IntoIterator<Item = Id>) -> Id {
        let always = self.always();
        let mut flat = Vec::new();
        let mut types = TypeSet::NONE;
        for part in parts {
            match self.node(part) {
                Node::Any(inner) => flat.extend(inner.iter().copied()),
                Node::Type(set) => types = types.or(*set),
                _ => flat.push(part),
            }
        }
        if !types.is_empty() {
            flat.push(self.add(Node::Type(types)));
        }
        flat.sort_unstable();
        flat.dedup();
        if flat.contains(&always) {
            return always;
        }
        match flat.as_slice() {
            [only] => *only,
            _ => self.add(Node::Any(flat)),
        }
    }

    pub(crate) fn not(&mut self, part: Id) -> Id {
        match self.node(part) {
            Node::Not(inner) => *inner,
            Node::Type(set) => {
                let set = set.complement();
                self.add(Node::Type(set))
            }
            _ => self.add(Node::Not(part)),
        }
    }

    pub(crate) fn constants(&mut self, values: impl IntoIterator<Item = Constant>) -> Id {
        let mut values: Vec<Constant> = values.into_iter().collect();
        values.sort();
        values.dedup();
        self.add(Node::Enum(values.into()))
    }

    /// Makes room for a definition whose body is compiled later.
    pub(crate) fn reserve_definition(&mut self) -> usize {
        self.definitions.push(None);
        self.definitions.len() - 1
    }

    pub(crate) fn define(&mut self, definition: usize, body: Id) {
        if let Some(slot) = self.definitions.get_mut(definition) {
            *slot = Some(body);
        }
    }

    pub(crate) fn definition(&self, definition: usize) -> Option<Id> {
        self.definitions.get(definition).copied().flatten()
    }
}
