//! Classifies the form in which arguments were sent, and decodes them.

mod double_encoded;
mod python;

use serde_json::Value;
use toolwarden_model::json::{self, JsonErrorKind, Object, Pointer};
use toolwarden_model::reply::ArgumentsClass;

use super::leaks;

/// How often a string of JSON may be wrapped in another.
const MAX_LAYERS: usize = 8;

/// The arguments of a call, classified by the form in which they were sent.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassifiedArguments {
    /// The form they were sent in.
    pub class: ArgumentsClass,
    /// The decoded object, with its strings as sent. `None` if they do not decode to an object: absent
    /// arguments differ from an empty object.
    pub value: Option<Object>,
    /// Where the object holds a JSON string although the schema requires an object or an array.
    pub double_encoded: Vec<Pointer>,
}

/// Classifies arguments, and decodes the object they contain, if any.
#[must_use]
pub fn arguments(sent: Option<&Value>, schema: Option<&Value>) -> ClassifiedArguments {
    let (mut class, value) = match sent {
        None => (ArgumentsClass::Absent, None),
        Some(Value::Null) => (ArgumentsClass::Null, None),
        Some(Value::Object(members)) => (ArgumentsClass::Object, Some(members.clone())),
        Some(Value::String(text)) => classify_text(text),
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_)) => {
            (ArgumentsClass::JsonNonObject, None)
        }
    };
    let double_encoded = match (&value, schema) {
        (Some(value), Some(schema)) => double_encoded::double_encoded(value, schema),
        _ => Vec::new(),
    };
    if !double_encoded.is_empty() {
        class = ArgumentsClass::DoubleEncoded;
    }
    if !leaks::argument_leaks(sent).is_empty() {
        class = ArgumentsClass::MarkupPolluted;
    }
    ClassifiedArguments {
        class,
        value,
        double_encoded,
    }
}

fn classify_text(text: &str) -> (ArgumentsClass, Option<Object>) {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return (ArgumentsClass::EmptyString, None);
    }
    if matches!(trimmed, "null" | "None") {
        return (ArgumentsClass::Null, None);
    }
    match json::parse(trimmed).map(|parsed| parsed.value) {
        Ok(Value::Object(members)) => (ArgumentsClass::JsonObjectString, Some(members)),
        Ok(Value::String(inner)) => match decode_layers(inner) {
            Some(members) => (ArgumentsClass::DoubleEncoded, Some(members)),
            None => (ArgumentsClass::JsonNonObject, None),
        },
        Ok(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_)) => {
            (ArgumentsClass::JsonNonObject, None)
        }
        Err(error) => match (python::parse_dictionary(trimmed), error.kind) {
            (Some(members), _) => (ArgumentsClass::PythonLiteral, Some(members)),
            (None, JsonErrorKind::Truncated) => (ArgumentsClass::Truncated, None),
            (None, _) => (ArgumentsClass::Invalid, None),
        },
    }
}

/// The object inside a string of JSON, however often it was wrapped.
fn decode_layers(mut text: String) -> Option<Object> {
    for _ in 0..MAX_LAYERS {
        match json::parse(text.trim()).ok()?.value {
            Value::Object(members) => return Some(members),
            Value::String(inner) => text = inner,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => return None,
        }
    }
    None
}
