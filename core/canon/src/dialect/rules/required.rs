use serde_json::{Value, json};
use toolwarden_model::json::Pointer;

use crate::dialect::violation::{SchemaContext, SchemaEdit, Violation};
use crate::schema::allow_null;

/// Optional properties: they become required and may be null instead.
pub(super) fn all_required(node: SchemaContext<'_>) -> Vec<Violation> {
    let Some(Value::Object(properties)) = node
        .schema
        .get("properties")
        .filter(|_| node.facts.all_required)
    else {
        return Vec::new();
    };
    let listed = node.schema.get("required").and_then(Value::as_array);
    let is_listed = |name: &str| {
        listed.is_some_and(|listed| listed.iter().any(|word| word.as_str() == Some(name)))
    };
    let optional: Vec<&String> = properties.keys().filter(|name| !is_listed(name)).collect();
    if optional.is_empty() {
        return Vec::new();
    }
    let names: Vec<&str> = optional.iter().map(|name| name.as_str()).collect();
    let message = format!(
        "every property must be required; optional: {}",
        names.join(", ")
    );
    let all: Vec<&String> = properties.keys().collect();
    let mut steps = vec![SchemaEdit::set("required", json!(all))];
    for name in optional {
        if let Some(nullable) = properties.get(name).and_then(nullable) {
            steps.push(SchemaEdit {
                at: Pointer::of(["properties", name]),
                after: Some(nullable),
            });
        }
    }
    vec![
        Violation::rejected("optional-property", Pointer::root(), message)
            .with_semantic_remedy(steps),
    ]
}

/// The same schema that also accepts null, unless it already does.
fn nullable(schema: &Value) -> Option<Value> {
    let mut nullable = schema.as_object()?.clone();
    let is_null = |schema: &Value| *schema == json!({"type": "null"}) || *schema == json!("null");
    let holds_null = |key: &str| {
        nullable
            .get(key)
            .and_then(Value::as_array)
            .is_some_and(|it| it.iter().any(is_null))
    };
    if holds_null("type") || holds_null("anyOf") {
        return None;
    }
    if let Some(Value::Array(branches)) = nullable
        .get_mut("anyOf")
        .filter(|_| schema.get("type").is_none())
    {
        branches.push(json!({"type": "null"}));
        return Some(Value::Object(nullable));
    }
    let typed = nullable.get("type").is_some_and(Value::is_string);
    if let (true, Some(Value::Array(values))) = (typed, nullable.get_mut("enum")) {
        values.push(Value::Null);
    } else if let (true, Some(value)) = (typed, nullable.shift_remove("const")) {
        nullable.insert("enum".to_owned(), json!([value, null]));
    } else {
        allow_null(&mut nullable);
        return Some(Value::Object(nullable)).filter(|nullable| nullable != schema);
    }
    let word = nullable.get("type").cloned();
    nullable.insert("type".to_owned(), json!([word, "null"]));
    Some(Value::Object(nullable))
}
