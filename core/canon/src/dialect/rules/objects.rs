use serde_json::{Value, json};
use toolwarden_model::json::{Object, Pointer};

use crate::dialect::node::{Node, Step, Violation};

/// Objects that let other properties in.
pub(super) fn closed(node: Node<'_>) -> Vec<Violation> {
    if !node.facts.closed_objects || !is_object(node.schema) {
        return Vec::new();
    }
    if node.schema.get("additionalProperties") == Some(&Value::Bool(false)) {
        return Vec::new();
    }
    let message = "an object must say `\"additionalProperties\": false`";
    let steps = vec![Step::set("additionalProperties", json!(false))];
    vec![Violation::rejected("open-object", Pointer::root(), message).other(steps)]
}

/// Schemas that say too little for the dialect.
pub(super) fn nothing_said(node: Node<'_>) -> Vec<Violation> {
    let says = |keywords: &[&str]| {
        keywords
            .iter()
            .any(|keyword| node.schema.contains_key(*keyword))
    };
    let mut found = Vec::new();
    if !node.facts.untyped
        && !node.is_root
        && !says(&["type", "anyOf", "oneOf", "allOf", "$ref", "enum", "const"])
    {
        found.push(Violation::rejected(
            "untyped",
            Pointer::root(),
            "a value without a type is not accepted",
        ));
    }
    let array = node.schema.get("type").and_then(Value::as_str) == Some("array");
    if !node.facts.untyped && array && !says(&["items", "prefixItems"]) {
        found.push(Violation::rejected(
            "untyped",
            Pointer::root(),
            "an array without `items` is not accepted",
        ));
    }
    let empty = node
        .schema
        .get("properties")
        .and_then(Value::as_object)
        .is_none_or(Object::is_empty);
    if !node.facts.empty_objects && !node.is_root && is_object(node.schema) && empty {
        found.push(Violation::rejected(
            "empty-object",
            Pointer::root(),
            "an object without properties is not accepted",
        ));
    }
    found
}

pub(super) fn is_object(schema: &Object) -> bool {
    match schema.get("type") {
        Some(Value::String(word)) => word == "object",
        Some(Value::Array(words)) => words.iter().any(|word| word == "object"),
        _ => schema.contains_key("properties"),
    }
}
