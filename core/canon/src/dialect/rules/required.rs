use serde_json::{Value, json};
use toolwarden_model::json::Pointer;

use crate::dialect::node::{Node, Step, Violation};

/// Optional properties: they become required and may be null instead.
pub(super) fn all_required(node: Node<'_>) -> Vec<Violation> {
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
    let mut steps = vec![Step::set("required", json!(all))];
    for name in optional {
        if let Some(nullable) = properties.get(name).and_then(nullable) {
            steps.push(Step {
                at: Pointer::of(["properties", name]),
                after: Some(nullable),
            });
        }
    }
    vec![Violation::rejected("optional-property", Pointer::root(), message).other(steps)]
}

/// The same schema with null let in, unless it already is.
fn nullable(schema: &Value) -> Option<Value> {
    let members = schema.as_object()?;
    let mut nullable = members.clone();
    match members.get("type") {
        Some(Value::String(word)) if word != "null" => {
            nullable.insert("type".to_owned(), json!([word, "null"]));
        }
        Some(Value::Array(words)) if !words.iter().any(|word| word == "null") => {
            let words: Vec<&Value> = words.iter().chain([&Value::Null]).collect();
            let words: Vec<Value> = words
                .into_iter()
                .map(|word| {
                    if word.is_null() {
                        json!("null")
                    } else {
                        word.clone()
                    }
                })
                .collect();
            nullable.insert("type".to_owned(), Value::Array(words));
        }
        Some(_) => return None,
        None if members.contains_key("$ref") => {
            return Some(json!({"anyOf": [schema, {"type": "null"}]}));
        }
        None => {
            let mut branches = members.get("anyOf")?.as_array()?.clone();
            let null = json!({"type": "null"});
            if branches.contains(&null) {
                return None;
            }
            branches.push(null);
            nullable.insert("anyOf".to_owned(), Value::Array(branches));
        }
    }
    if let Some(Value::Array(values)) = nullable.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    if let Some(value) = nullable.shift_remove("const") {
        nullable.insert("enum".to_owned(), json!([value, null]));
    }
    Some(Value::Object(nullable))
}
