//! The keys that a mapping may have, and its members.

use std::collections::BTreeMap;

use crate::did_you_mean;
use crate::json::{Pointer, Value};

/// A value with its location.
#[derive(Clone, Debug)]
pub struct LocatedValue<'d> {
    /// The location.
    pub pointer: Pointer,
    /// The value.
    pub value: &'d Value,
}

/// The members of a mapping by the names of their keys.
#[derive(Debug)]
pub struct Section<'d> {
    /// The location of the mapping.
    pub pointer: Pointer,
    members: BTreeMap<&'static str, LocatedValue<'d>>,
}

/// A key that a mapping may have.
///
/// It may be written in snake, kebab or camel case.
#[derive(Clone, Copy, Debug)]
pub struct KeySpec {
    name: &'static str,
    aliases: &'static [&'static str],
    null_value: NullValue,
    equality: ValueEquality,
}

/// How to read a key without a value.
#[derive(Clone, Copy, Debug)]
enum NullValue {
    Rejected,
    Meaningful,
}

/// How to compare two values of a key.
#[derive(Clone, Copy, Debug)]
enum ValueEquality {
    Value,
    Texts,
}

impl KeySpec {
    /// A key by its name in snake case. Without a value it is a mistake.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            aliases: &[],
            null_value: NullValue::Rejected,
            equality: ValueEquality::Value,
        }
    }

    /// Other accepted names of the key, in snake case.
    #[must_use]
    pub const fn alias(self, others: &'static [&'static str]) -> Self {
        Self {
            aliases: others,
            ..self
        }
    }

    /// Allows the key to have no value.
    #[must_use]
    pub const fn may_be_empty(self) -> Self {
        let nothing = NullValue::Meaningful;
        Self {
            null_value: nothing,
            ..self
        }
    }

    /// A key whose value is a set of texts; a single text is a list of one.
    #[must_use]
    pub const fn text_list(self) -> Self {
        let holds = ValueEquality::Texts;
        Self {
            equality: holds,
            ..self
        }
    }

    pub(super) const fn name(&self) -> &'static str {
        self.name
    }

    pub(super) const fn needs_value(&self) -> bool {
        matches!(self.null_value, NullValue::Rejected)
    }

    /// Whether two values are equal under this key.
    pub(super) fn values_equal(&self, one: &Value, other: &Value) -> bool {
        if one == other {
            return true;
        }
        match self.equality {
            ValueEquality::Value => false,
            ValueEquality::Texts => {
                matches!((sorted_texts(one), sorted_texts(other)), (Some(a), Some(b)) if a == b)
            }
        }
    }

    /// Finds a key by its written spelling; on error, returns a hint about the known keys.
    pub(super) fn find<'k>(keys: &'k [Self], written: &str) -> Result<&'k Self, String> {
        let snake = snake_case(written);
        let known = keys
            .iter()
            .find(|key| key.name == snake || key.aliases.contains(&snake.as_str()));
        known.ok_or_else(|| {
            let names: Vec<&str> = keys.iter().map(|key| key.name).collect();
            let suggestion = did_you_mean(&snake, names.iter().copied());
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

    pub(super) fn insert(&mut self, name: &'static str, member: LocatedValue<'d>) {
        self.members.insert(name, member);
    }

    /// The member of a key, even if it is null.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&LocatedValue<'d>> {
        self.members.get(key)
    }

    /// The member of a key; `None` if it is null.
    #[must_use]
    pub fn said(&self, key: &str) -> Option<&LocatedValue<'d>> {
        self.get(key).filter(|it| !it.value.is_null())
    }
}

/// The sorted texts of a list; `None` if it contains anything else.
fn sorted_texts(value: &Value) -> Option<Vec<&str>> {
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
