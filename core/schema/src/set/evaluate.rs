use serde_json::Value;

use super::node::{Arena, Constant, Id, Literal, Node, Properties};
use super::number::{Ratio, same};
use super::types::TypeSet;
use crate::text::Texts;

/// References followed in place before the value is left undecided.
const MAX_NESTING: u32 = 200;

impl Arena {
    /// Whether a literal is true of a value; nothing where no rule tells.
    pub(crate) fn is_true(
        &self,
        literal: Literal,
        value: &Value,
        texts: &mut Texts,
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
    texts: &'a mut Texts,
    nesting: u32,
}

impl Evaluation<'_> {
    fn holds(&mut self, id: Id, value: &Value) -> Option<bool> {
        if self.nesting > MAX_NESTING {
            return None;
        }
        self.nesting += 1;
        let arena = self.arena;
        let holds = self.fact(arena.node(id), value);
        self.nesting -= 1;
        holds
    }

    fn fact(&mut self, node: &Node, value: &Value) -> Option<bool> {
        match node {
            Node::Type(types) => Some(TypeSet::of(value).within(*types)),
            // INVARIANT: constants are sorted when they are added.
            Node::Enum(constants) => Some(constants.binary_search(&Constant::of(value)).is_ok()),
            Node::All(parts) => self.every(parts.iter().map(|part| (*part, value))),
            Node::Any(parts) => self
                .none(parts.iter().map(|part| (*part, value)))
                .map(|none| !none),
            Node::One(parts) => {
                let mut count = 0;
                for part in parts {
                    count += u32::from(self.holds(*part, value)?);
                }
                Some(count == 1)
            }
            Node::Not(inner) => self.holds(*inner, value).map(|holds| !holds),
            Node::Definition(number) => {
                let body = self.arena.definition(*number)?;
                self.holds(body, value)
            }
            Node::Opaque { .. } => None,
            _ => match value {
                Value::Number(_) => number(node, value),
                Value::String(text) => self.string(node, text),
                Value::Array(items) => self.array(node, items),
                Value::Object(_) => self.object(node, value),
                Value::Null | Value::Bool(_) => Some(true),
            },
        }
    }

    fn string(&mut self, node: &Node, text: &str) -> Option<bool> {
        let length = || text.chars().count() as u64;
        match node {
            Node::MinLength(min) => Some(length() >= *min),
            Node::MaxLength(max) => Some(length() <= *max),
            Node::Pattern(pattern) => self.texts.matches(pattern, text),
            Node::Format(format) => self.texts.has_format(format, text),
            _ => Some(true),
        }
    }

    fn array(&mut self, node: &Node, items: &[Value]) -> Option<bool> {
        let length = items.len() as u64;
        match node {
            Node::MinItems(min) => Some(length >= *min),
            Node::MaxItems(max) => Some(length <= *max),
            Node::UniqueItems => {
                Some(!items.iter().enumerate().any(|(index, item)| {
                    items.iter().take(index).any(|earlier| same(earlier, item))
                }))
            }
            Node::Items { prefix, rest } => {
                let schemas = prefix.iter().chain(std::iter::repeat(rest));
                self.every(schemas.copied().zip(items))
            }
            Node::Contains { schema, min, max } => {
                let mut count = 0;
                for item in items {
                    count += u64::from(self.holds(*schema, item)?);
                }
                Some(count >= *min && max.is_none_or(|max| count <= max))
            }
            _ => Some(true),
        }
    }

    fn object(&mut self, node: &Node, value: &Value) -> Option<bool> {
        let members = value.as_object()?;
        let size = members.len() as u64;
        match node {
            Node::MinProperties(min) => Some(size >= *min),
            Node::MaxProperties(max) => Some(size <= *max),
            Node::Required(name) => Some(members.contains_key(&**name)),
            Node::Names(names) => {
                let keys: Vec<Value> = members
                    .keys()
                    .map(|key| Value::from(key.as_str()))
                    .collect();
                self.every(keys.iter().map(|key| (*names, key)))
            }
            Node::Properties(properties) => {
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

    fn every<'v>(&mut self, parts: impl Iterator<Item = (Id, &'v Value)>) -> Option<bool> {
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

    fn none<'v>(&mut self, parts: impl Iterator<Item = (Id, &'v Value)>) -> Option<bool> {
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
pub(crate) fn applicable(properties: &Properties, key: &str, texts: &mut Texts) -> Option<Vec<Id>> {
    let mut found: Vec<Id> = properties.named.get(key).copied().into_iter().collect();
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

fn number(node: &Node, value: &Value) -> Option<bool> {
    let number = Ratio::of_value(value)?;
    Some(match node {
        Node::AtLeast { bound, strict } => number > *bound || (!strict && number == *bound),
        Node::AtMost { bound, strict } => number < *bound || (!strict && number == *bound),
        Node::MultipleOf(step) => number.is_multiple_of(step),
        _ => true,
    })
}
