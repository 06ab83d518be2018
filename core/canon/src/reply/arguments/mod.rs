//! In which form arguments were sent, and what they stand for.

mod nested;
mod python;

use serde_json::Value;
use toolwarden_model::json::{self, JsonErrorKind, Object, Pointer};
use toolwarden_model::reply::ArgumentsClass;

use super::leaks;

/// How often a string of JSON may be wrapped in another.
const LAYERS: usize = 8;

/// Arguments, sorted.
#[derive(Clone, Debug, PartialEq)]
pub struct Sorted {
    /// The form they were sent in.
    pub class: ArgumentsClass,
    /// The object they stand for, strings inside it as sent. None if they stand for none: no
    /// arguments are not the same as an empty object.
    pub value: Option<Object>,
    /// Where in the object a string of JSON stands although the schema wants the thing itself.
    pub double_encoded: Vec<Pointer>,
}

/// Says what kind of arguments were sent, and the object they stand for if they stand for one.
#[must_use]
pub fn arguments(sent: Option<&Value>, schema: Option<&Value>) -> Sorted {
    let (mut class, value) = match sent {
        None => (ArgumentsClass::Absent, None),
        Some(Value::Null) => (ArgumentsClass::Null, None),
        Some(Value::Object(members)) => (ArgumentsClass::Object, Some(members.clone())),
        Some(Value::String(text)) => sort_text(text),
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_)) => {
            (ArgumentsClass::JsonNonObject, None)
        }
    };
    let double_encoded = match (&value, schema) {
        (Some(value), Some(schema)) => nested::double_encoded(value, schema),
        _ => Vec::new(),
    };
    if !double_encoded.is_empty() {
        class = ArgumentsClass::DoubleEncoded;
    }
    if !leaks::of_arguments(sent).is_empty() {
        class = ArgumentsClass::MarkupPolluted;
    }
    Sorted {
        class,
        value,
        double_encoded,
    }
}

fn sort_text(text: &str) -> (ArgumentsClass, Option<Object>) {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return (ArgumentsClass::EmptyString, None);
    }
    if matches!(trimmed, "null" | "None") {
        return (ArgumentsClass::Null, None);
    }
    match json::parse(trimmed).map(|parsed| parsed.value) {
        Ok(Value::Object(members)) => (ArgumentsClass::JsonObjectString, Some(members)),
        Ok(Value::String(inner)) => match unwrapped(inner) {
            Some(members) => (ArgumentsClass::DoubleEncoded, Some(members)),
            None => (ArgumentsClass::JsonNonObject, None),
        },
        Ok(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_)) => {
            (ArgumentsClass::JsonNonObject, None)
        }
        Err(error) => match (python::dictionary(trimmed), error.kind) {
            (Some(members), _) => (ArgumentsClass::PythonLiteral, Some(members)),
            (None, JsonErrorKind::Truncated) => (ArgumentsClass::Truncated, None),
            (None, _) => (ArgumentsClass::Invalid, None),
        },
    }
}

/// The object inside a string of JSON, however often it was wrapped.
fn unwrapped(mut text: String) -> Option<Object> {
    for _ in 0..LAYERS {
        match json::parse(text.trim()).ok()?.value {
            Value::Object(members) => return Some(members),
            Value::String(inner) => text = inner,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => return None,
        }
    }
    None
}
