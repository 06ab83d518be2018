use serde_json::{Value, json};
use toolwarden_model::json::{Object, Pointer};

use crate::dialect::facts::KeywordSupport;
use crate::dialect::violation::{SchemaContext, SchemaEdit, Violation};

/// Objects that accept undeclared properties.
pub(super) fn closed(node: SchemaContext<'_>) -> Vec<Violation> {
    if !node.facts.closed_objects || !is_object(node.schema) {
        return Vec::new();
    }
    if node.schema.get("additionalProperties") == Some(&Value::Bool(false)) {
        return Vec::new();
    }
    let message = "an object must say `\"additionalProperties\": false`";
    let steps = vec![SchemaEdit::set("additionalProperties", json!(false))];
    vec![Violation::rejected("open-object", Pointer::root(), message).with_semantic_remedy(steps)]
}

/// Objects of any keys whose values have a schema.
pub(super) fn map(node: SchemaContext<'_>) -> Vec<Violation> {
    let Some(Value::Object(_)) = node.schema.get("additionalProperties") else {
        return Vec::new();
    };
    let level = node.facts.maps.finding_level();
    let at = Pointer::of(["additionalProperties"]);
    let what = "a schema in `additionalProperties`";
    level
        .filter(|_| node.facts.accepts("additionalProperties"))
        .map(|level| Violation::with_level(level, "map", at, what))
        .into_iter()
        .collect()
}

/// Tuples in the form of draft 7.
pub(super) fn tuple(node: SchemaContext<'_>) -> Vec<Violation> {
    let Some(Value::Array(items)) = node.schema.get("items") else {
        return Vec::new();
    };
    let level = node.facts.tuples.finding_level();
    let at = Pointer::of(["items"]);
    let rest = node.schema.get("additionalItems");
    level
        .map(|level| {
            let violation = Violation::with_level(level, "tuple", at, "a list in `items`");
            let mut steps = vec![any_item_type(items, rest)];
            if rest.is_some() {
                steps.push(SchemaEdit::remove("additionalItems"));
            }
            violation.with_semantic_remedy(steps)
        })
        .into_iter()
        .collect()
}

/// The closest schema to a tuple for a dialect without tuples: every item matches one of the schemas
/// in the tuple. Extra items that an open tuple accepts are lost.
pub(super) fn any_item_type(items: &[Value], rest: Option<&Value>) -> SchemaEdit {
    let mut kinds: Vec<&Value> = Vec::new();
    for kind in items.iter().chain(rest.filter(|rest| rest.is_object())) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let kind = match kinds.as_slice() {
        [] => json!({}),
        [only] => (*only).clone(),
        several => json!({"anyOf": several}),
    };
    SchemaEdit::set("items", kind)
}

/// Schemas that say too little for the dialect.
pub(super) fn underspecified(node: SchemaContext<'_>) -> Vec<Violation> {
    let facts = node.facts;
    let minded = [
        facts.untyped,
        facts.bare_arrays,
        facts.empty_objects,
        facts.empty_root,
    ];
    if minded.iter().all(|it| *it == KeywordSupport::Supported) {
        return Vec::new();
    }
    let says = |keywords: &[&str]| {
        keywords
            .iter()
            .any(|keyword| node.schema.contains_key(*keyword))
    };
    let untyped =
        !node.is_root && !says(&["type", "anyOf", "oneOf", "allOf", "$ref", "enum", "const"]);
    let array = node.schema.get("type").and_then(Value::as_str) == Some("array");
    let bare = array && !says(&["items", "prefixItems"]);
    let empty = node
        .schema
        .get("properties")
        .and_then(Value::as_object)
        .is_none_or(Object::is_empty);
    let empty = empty && is_object(node.schema);
    let rows = [
        (untyped, facts.untyped, "untyped", "a value without a type"),
        (
            bare,
            facts.bare_arrays,
            "untyped",
            "an array without `items`",
        ),
        (
            empty && !node.is_root,
            facts.empty_objects,
            "empty-object",
            "an object without properties",
        ),
        (
            empty && node.is_root,
            facts.empty_root,
            "empty-object",
            "a root without properties",
        ),
    ];
    rows.into_iter()
        .filter(|(found, ..)| *found)
        .filter_map(|(_, taken, rule, what)| Some((taken.finding_level()?, rule, what)))
        .map(|(level, rule, what)| Violation::with_level(level, rule, Pointer::root(), what))
        .collect()
}

pub(super) fn is_object(schema: &Object) -> bool {
    match schema.get("type") {
        Some(Value::String(word)) => word == "object",
        Some(Value::Array(words)) => words.iter().any(|word| word == "object"),
        _ => schema.contains_key("properties"),
    }
}
