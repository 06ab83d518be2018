//! The keys a mapping may have, and what it says under them.

use std::collections::BTreeMap;

use crate::closest;
use crate::json::{Pointer, Value};

/// A value with the place it stands at.
#[derive(Clone, Debug)]
pub struct Placed<'d> {
    /// The place.
    pub pointer: Pointer,
    /// The value.
    pub value: &'d Value,
}

/// The members of a mapping by the names of their keys.
#[derive(Debug)]
pub struct Section<'d> {
    /// Where the mapping stands.
    pub pointer: Pointer,
    members: BTreeMap<&'static str, Placed<'d>>,
}

/// A key that a mapping may have.
///
/// It may be written in snake, kebab or camel case.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    name: &'static str,
    others: &'static [&'static str],
    nothing: Nothing,
    holds: Holds,
}

/// What a key without a value is.
#[derive(Clone, Copy, Debug)]
enum Nothing {
    Mistake,
    Said,
}

/// When two values say the same.
#[derive(Clone, Copy, Debug)]
enum Holds {
    Value,
    Texts,
}

impl Key {
    /// A key by its name in snake case. Without a value it is a mistake.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            others: &[],
            nothing: Nothing::Mistake,
            holds: Holds::Value,
        }
    }

    /// Other words that are accepted for it, in snake case.
    #[must_use]
    pub const fn or(self, others: &'static [&'static str]) -> Self {
        Self { others, ..self }
    }

    /// A key that says something without a value.
    #[must_use]
    pub const fn may_be_empty(self) -> Self {
        let nothing = Nothing::Said;
        Self { nothing, ..self }
    }

    /// A key of texts in any order, where a text alone is a list of one.
    #[must_use]
    pub const fn texts(self) -> Self {
        let holds = Holds::Texts;
        Self { holds, ..self }
    }

    pub(super) const fn name(&self) -> &'static str {
        self.name
    }

    pub(super) const fn needs_value(&self) -> bool {
        matches!(self.nothing, Nothing::Mistake)
    }

    /// Whether two values say the same under this key.
    pub(super) fn agree(&self, one: &Value, other: &Value) -> bool {
        if one == other {
            return true;
        }
        match self.holds {
            Holds::Value => false,
            Holds::Texts => matches!((texts(one), texts(other)), (Some(a), Some(b)) if a == b),
        }
    }

    /// The key that a written one is, or words that tell which there are.
    pub(super) fn find<'k>(keys: &'k [Self], written: &str) -> Result<&'k Self, String> {
        let snake = snake_case(written);
        let known = keys
            .iter()
            .find(|key| key.name == snake || key.others.contains(&snake.as_str()));
        known.ok_or_else(|| {
            let names: Vec<&str> = keys.iter().map(|key| key.name).collect();
            let suggestion = closest(&snake, names.iter().copied());
            match suggestion.is_empty() {
                true => format!("; known are {}", names.join(", ")),
                false => suggestion,
            }
        })
    }
}

impl<'d> Section<'d> {
    pub(super) const fn new(pointer: Pointer) -> Self {
        Self {
            pointer,
            members: BTreeMap::new(),
        }
    }

    pub(super) fn insert(&mut self, name: &'static str, member: Placed<'d>) {
        self.members.insert(name, member);
    }

    /// The member of a key, be it null.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Placed<'d>> {
        self.members.get(key)
    }

    /// The member unless it is null, which says nothing.
    #[must_use]
    pub fn said(&self, key: &str) -> Option<&Placed<'d>> {
        self.get(key).filter(|it| !it.value.is_null())
    }
}

/// The texts of a list in one order, if it holds nothing else.
fn texts(value: &Value) -> Option<Vec<&str>> {
    let mut texts = match value {
        Value::Null => Vec::new(),
        Value::String(text) => vec![text.as_str()],
        Value::Array(items) => items.iter().map(Value::as_str).collect::<Option<_>>()?,
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
    };
    texts.sort_unstable();
    Some(texts)
}

/// `available-in-states` and `availableInStates` as `available_in_states`.
fn snake_case(key: &str) -> String {
    let mut snake = String::with_capacity(key.len());
    for c in key.chars() {
        match c {
            '-' => snake.push('_'),
            c if c.is_ascii_uppercase() => {
                snake.push('_');
                snake.push(c.to_ascii_lowercase());
            }
            c => snake.push(c),
        }
    }
    snake
}
