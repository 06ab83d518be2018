use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use toolwarden_model::json::Object;
use toolwarden_model::{Format, Tool};

use super::CallExample;

/// How deep the structure of arguments is described.
const MAX_DEPTH: usize = 8;

/// Tools for recorded calls whose definitions are not known: the schema says what all the calls have
/// in common.
#[must_use]
pub fn infer_tools(calls: &[CallExample]) -> Vec<Tool> {
    let mut by_tool: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for call in calls {
        let arguments = Value::Object(call.arguments.clone());
        by_tool.entry(&call.tool).or_default().push(arguments);
    }
    let tools = by_tool.into_iter().map(|(name, calls)| {
        let mut tool = Tool::new(Format::OpenaiChat);
        name.clone_into(&mut tool.name);
        tool.description = format!(
            "Inferred from {} recorded calls. Replace this by the definition of the tool.",
            calls.len()
        );
        let values: Vec<&Value> = calls.iter().collect();
        tool.inputs = schema(&values, 0);
        tool
    });
    tools.collect()
}

fn schema(values: &[&Value], depth: usize) -> Object {
    let types: BTreeSet<&str> = values.iter().map(|it| json_type(it)).collect();
    let mut schema = Object::new();
    let types: Vec<&str> = types.into_iter().collect();
    match types.as_slice() {
        [] => return schema,
        [only] => schema.insert("type".to_owned(), json!(only)),
        several => schema.insert("type".to_owned(), json!(several)),
    };
    let objects: Vec<&Object> = values.iter().filter_map(|it| it.as_object()).collect();
    if !objects.is_empty() && depth < MAX_DEPTH {
        let names: BTreeSet<&String> = objects.iter().flat_map(|it| it.keys()).collect();
        let mut properties = Object::new();
        let mut required = Vec::new();
        for name in names {
            let found: Vec<&Value> = objects.iter().filter_map(|it| it.get(name)).collect();
            if found.len() == objects.len() {
                required.push(name.clone());
            }
            let member = schema_value(&found, depth + 1);
            properties.insert(name.clone(), member);
        }
        schema.insert("properties".to_owned(), Value::Object(properties));
        if !required.is_empty() {
            schema.insert("required".to_owned(), json!(required));
        }
    }
    let items: Vec<&Value> = values
        .iter()
        .filter_map(|it| it.as_array())
        .flatten()
        .collect();
    if !items.is_empty() && depth < MAX_DEPTH {
        schema.insert("items".to_owned(), schema_value(&items, depth + 1));
    }
    schema
}

fn schema_value(values: &[&Value], depth: usize) -> Value {
    Value::Object(schema(values, depth))
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() || number.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
