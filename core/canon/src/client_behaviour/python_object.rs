//! Access to values as Python does it, on objects that a client built from JSON without checking it.

use serde_json::Value;
use toolwarden_model::json::{self, Object};

use super::{ClientResult, HttpReply, raise};

/// Whether a value counts as true in a condition.
pub(super) fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(it) => *it,
        Value::Number(it) => it.as_f64() != Some(0.0),
        Value::String(it) => !it.is_empty(),
        Value::Array(it) => !it.is_empty(),
        Value::Object(it) => !it.is_empty(),
    }
}

/// `value.name` for a member that the client's type declares: `None` if it is missing.
pub(super) fn attribute<'v>(value: &'v Value, name: &str) -> ClientResult<&'v Value> {
    match value {
        Value::Object(members) => Ok(members.get(name).unwrap_or(&Value::Null)),
        other => raise(
            "AttributeError",
            format!("{} has no attribute `{name}`", json::type_name(other)),
        ),
    }
}

/// The object behind `value`, for a member that must be one.
pub(super) fn object<'v>(value: &'v Value, name: &str) -> ClientResult<&'v Object> {
    match value {
        Value::Object(members) => Ok(members),
        other => raise(
            "AttributeError",
            format!("`{name}` is {}", json::type_name(other)),
        ),
    }
}

/// `value[0]` on a list that may be something else.
pub(super) fn first<'v>(value: &'v Value, name: &str) -> ClientResult<&'v Value> {
    match value {
        Value::Array(items) => match items.first() {
            Some(item) => Ok(item),
            None => raise("IndexError", format!("`{name}` is empty")),
        },
        Value::Object(_) => raise("KeyError", format!("`{name}` is an object")),
        Value::String(text) if !text.is_empty() => Ok(value),
        Value::String(_) => raise("IndexError", format!("`{name}` is empty")),
        other => raise(
            "TypeError",
            format!("`{name}` is {}", json::type_name(other)),
        ),
    }
}

/// `for item in value`: the keys of an object and the characters of a string are texts.
pub(super) fn items(value: &Value, name: &str) -> ClientResult<Vec<Value>> {
    match value {
        Value::Array(items) => Ok(items.clone()),
        Value::Object(members) => Ok(members.keys().cloned().map(Value::String).collect()),
        Value::String(text) => Ok(text.chars().map(|it| Value::String(it.into())).collect()),
        other => raise(
            "TypeError",
            format!("`{name}` is {}", json::type_name(other)),
        ),
    }
}

/// The document that the libraries for Python parse from a body: a text if it is declared as something
/// else than JSON and is not JSON.
pub(super) fn document(reply: HttpReply<'_>) -> ClientResult<Value> {
    let declared = reply.content_type.split(';').next().unwrap_or_default();
    let text = String::from_utf8_lossy(reply.body);
    match json::parse(&text) {
        Ok(parsed) => Ok(parsed.value),
        Err(_) if declared.ends_with("json") => raise("JSONDecodeError", "the body is not JSON"),
        Err(_) => Ok(Value::String(text.into_owned())),
    }
}
