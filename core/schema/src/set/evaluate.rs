use serde_json::Value;

use super::arena::{Arena, Constant, Fact, Literal, NodeId, Properties};
use super::ratio::{Ratio, json_equal};
use super::types::TypeSet;
use crate::text::PatternCache;

/// References followed in place before the value is left undecided.
const MAX_NESTING: u32 = 200;

impl Arena {
    /// Whether a literal is true of a value; `None` if no rule decides.
    pub(crate) fn is_true(
        &self,
        literal: Literal,
        value: &Value,
        texts: &mut PatternCache,
    ) -> Option<bool> {
        let holds = Evaluation {
            arena: self,
            texts,
            nesting: 0,
        }
        .holds(literal.id, value)?;
        Some(holds == literal.holds)
    }
}

struct Evaluation<'a> {
    arena: &'a Arena,
    texts: &'a mut PatternCache,
    nesting: u32,
}

impl Evaluation<'_> {
    fn holds(&mut self, id: NodeId, value: &Value) -> Option<bool> {
        if self.nesting > MAX_NESTING {
            return None;
        }
        self.nesting += 1;
        let arena = self.arena;
        let holds = self.fact(arena.node(id), value);
        self.nesting -= 1;
        holds
    }

    fn fact(&mut self, node: &Fact, value: &Value) -> Option<bool> {
        match node {
            Fact::Type(types) => Some(TypeSet::of(value).within(*types)),
            // INVARIANT: constants are sorted when they are added.
            Fact::Enum(constants) => Some(constants.binary_search(&Constant::of(value)).is_ok()),
            Fact::All(parts) => self.every(parts.iter().map(|part| (*part, value))),
            Fact::Any(parts) => self
                .none(parts.iter().map(|part| (*part, value)))
                .map(|none| !none),
            Fact::One(parts) => {
                let mut count = 0;
                for part in parts {
                    count += u32::from(self.holds(*part, value)?);
                }
                Some(count == 1)
            }
            Fact::Not(inner) => self.holds(*inner, value).map(|holds| !holds),
            Fact::Definition(number) => {
                let body = self.arena.definition(*number)?;
                self.holds(body, value)
            }
            Fact::Opaque { .. } => None,
            _ => match value {
                Value::Number(_) => number(node, value),
                Value::String(text) => self.string(node, text),
                Value::Array(items) => self.array(node, items),
                Value::Object(_) => self.object(node, value),
                Value::Null | Value::Bool(_) => Some(true),
            },
        }
    }

    fn string(&mut self, node: &Fact, text: &str) -> Option<bool> {
        let length = || text.chars().count() as u64;
        match node {
            Fact::MinLength(min) => Some(length() >= *min),
            Fact::MaxLength(max) => Some(length() <= *max),
            Fact::Pattern(pattern) => self.texts.matches(pattern, text),
            Fact::Format(format) => self.texts.has_format(format, text),
            _ => Some(true),
        }
    }

    fn array(&mut self, node: &Fact, items: &[Value]) -> Option<bool> {
        let length = items.len() as u64;
        match node {
            Fact::MinItems(min) => Some(length >= *min),
            Fact::MaxItems(max) => Some(length <= *max),
            Fact::UniqueItems => Some(!items.iter().enumerate().any(|(index, item)| {
                items
                    .iter()
                    .take(index)
                    .any(|earlier| json_equal(earlier, item))
            })),
            Fact::Items { prefix, rest } => {
                let schemas = prefix.iter().chain(std::iter::repeat(rest));
                self.every(schemas.copied().zip(items))
            }
            Fact::Contains { schema, min, max } => {
                let mut count = 0;
                for item in items {
                    count += u64::from(self.holds(*schema, item)?);
                }
                Some(count >= *min && max.is_none_or(|max| count <= max))
            }
            _ => Some(true),
        }
    }

    fn object(&mut self, node: &Fact, value: &Value) -> Option<bool> {
        let members = value.as_object()?;
        let size = members.len() as u64;
        match node {
            Fact::MinProperties(min) => Some(size >= *min),
            Fact::MaxProperties(max) => Some(size <= *max),
            Fact::Required(name) => Some(members.contains_key(&**name)),
            Fact::Names(names) => {
                let keys: Vec<Value> = members
                    .keys()
                    .map(|key| Value::from(key.as_str()))
                    .collect();
                self.every(keys.iter().map(|key| (*names, key)))
            }
            Fact::Properties(properties) => {
                let mut all = Some(true);
                for (key, member) in members {
                    let schemas = applicable(properties, key, self.texts);
                    let verdict = match schemas {
                        Some(schemas) => self.every(schemas.into_iter().map(|id| (id, member))),
                        None => None,
                    };
                    match verdict {
                        Some(true) => {}
                        Some(false) => return Some(false),
                        None => all = None,
                    }
                }
                all
            }
            _ => Some(true),
        }
    }

    fn every<'v>(&mut self, parts: impl Iterator<Item = (NodeId, &'v Value)>) -> Option<bool> {
        let mut all = Some(true);
        for (id, value) in parts {
            match self.holds(id, value) {
                Some(true) => {}
                Some(false) => return Some(false),
                None => all = None,
            }
        }
        all
    }

    fn none<'v>(&mut self, parts: impl Iterator<Item = (NodeId, &'v Value)>) -> Option<bool> {
        let mut none = Some(true);
        for (id, value) in parts {
            match self.holds(id, value) {
                Some(false) => {}
                Some(true) => return Some(false),
                None => none = None,
            }
        }
        none
    }
}

/// The schemas that a property map applies to the value under a key.
pub(crate) fn applicable(
    properties: &Properties,
    key: &str,
    texts: &mut PatternCache,
) -> Option<Vec<NodeId>> {
    let mut found: Vec<NodeId> = properties.named.get(key).copied().into_iter().collect();
    for (pattern, id) in &properties.patterns {
        if texts.matches(pattern, key)? {
            found.push(*id);
        }
    }
    if found.is_empty() {
        found.push(properties.rest);
    }
    Some(found)
}

fn number(node: &Fact, value: &Value) -> Option<bool> {
    let number = Ratio::of_value(value)?;
    Some(match node {
        Fact::AtLeast { bound, strict } => number > *bound || (!strict && number == *bound),
        Fact::AtMost { bound, strict } => number < *bound || (!strict && number == *bound),
        Fact::MultipleOf(step) => number.is_multiple_of(step),
        _ => true,
    })
}
