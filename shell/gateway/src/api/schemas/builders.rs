//! Building blocks of the schemas.

use serde_json::{Map, Value, json};

use crate::api::response::SCHEMA;

/// A document: an object that names its version.
pub(super) fn document(name: &str, members: &[(&str, Value)]) -> Value {
    let version = json!({"type": "string", "const": format!("{SCHEMA}/{name}/v1")});
    let mut all = vec![("schema", version)];
    all.extend(members.iter().cloned());
    object(&all)
}

/// An object with these members. Those whose name ends with `?` may be missing.
pub(super) fn object(members: &[(&str, Value)]) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, schema) in members {
        let bare = name.trim_end_matches('?');
        if bare == *name {
            required.push(bare);
        }
        properties.insert(bare.to_owned(), schema.clone());
    }
    json!({"type": "object", "properties": properties, "required": required})
}

/// The same schema, or null.
pub(super) fn nullable(schema: Value) -> Value {
    let either = Value::Array(vec![schema, json!({"type": "null"})]);
    Value::Object(Map::from_iter([("anyOf".to_owned(), either)]))
}

pub(super) fn list(items: Value) -> Value {
    let members = [
        ("type".to_owned(), "array".into()),
        ("items".to_owned(), items),
    ];
    Value::Object(Map::from_iter(members))
}

pub(super) fn text() -> Value {
    json!({"type": "string"})
}

pub(super) fn time() -> Value {
    json!({"type": "string", "format": "date-time"})
}

pub(super) fn flag() -> Value {
    json!({"type": "boolean"})
}

pub(super) fn count() -> Value {
    json!({"type": "integer", "minimum": 0})
}

pub(super) fn number() -> Value {
    json!({"type": "number"})
}

pub(super) fn one_of(words: &[&str]) -> Value {
    json!({"type": "string", "enum": words})
}

/// An object whose members this API does not define.
pub(super) fn any_object() -> Value {
    json!({"type": "object"})
}

/// Any value at all.
pub(super) fn any_value() -> Value {
    json!({})
}
