use serde_json::Value;
use toolwarden_model::json::Object;
use toolwarden_model::{AbsentParts, Format, KeyOrder, Tool};

use super::parameters::{
    describes_arguments, remainder_of_list, remainder_of_map, schema_of_list, schema_of_map,
};

const NAME_KEYS: &[&str] = &["name", "title"];
pub(super) const SCHEMA_KEYS: &[&str] = &[
    "input_schema",
    "inputSchema",
    "parameters",
    "args_schema",
    "schema",
    "inputs",
    "inputParameters",
    "input_parameters",
    "params",
];
/// Keys that hold other things as often, and are read if they look like a schema.
const LOOSE_SCHEMA_KEYS: &[&str] = &["arguments", "args", "input", "signature"];

/// Picks what looks like a name, a description and a schema, and keeps everything else.
pub(super) fn read(mut definition: Object) -> Tool {
    let mut tool = Tool::new(Format::Raw);
    tool.layout = KeyOrder::from([(String::new(), definition.keys().cloned().collect())]);
    tool.absent = AbsentParts {
        name: true,
        description: true,
        inputs: true,
    };
    let name_key = NAME_KEYS
        .iter()
        .find(|key| definition.get(**key).is_some_and(Value::is_string));
    if let Some(Value::String(name)) = name_key.and_then(|key| definition.shift_remove(*key)) {
        (tool.name, tool.absent.name) = (name, false);
    } else if let Some(name) = definition
        .get("function")
        .and_then(|function| function.get("name")?.as_str())
    {
        tool.name = name.to_owned();
    }
    if definition.get("description").is_some_and(Value::is_string)
        && let Some(Value::String(text)) = definition.shift_remove("description")
    {
        (tool.description, tool.absent.description) = (text, false);
    }
    let key = schema_key(&definition);
    let read = key.and_then(|key| reads_as(key, definition.get(key)?));
    match (read, key) {
        // Parameters in a form of their own are kept beside the schema that says the same.
        (Some(Value::Object(schema)), _) => (tool.inputs, tool.absent.inputs) = (schema, false),
        (_, Some(key)) => {
            if let Some(Value::Object(schema)) = definition.shift_remove(key) {
                (tool.inputs, tool.absent.inputs) = (schema, false);
            }
        }
        _ => {}
    }
    if !definition.is_empty() {
        tool.extensions.insert(Format::Raw, definition);
    }
    tool
}

/// Puts the picked values back under their original keys.
pub(super) fn write(mut tool: Tool) -> Value {
    let mut members = tool.extensions.remove(&Format::Raw).unwrap_or_default();
    let keys = tool.layout.remove("").unwrap_or_default();
    let put = |members: &mut Object, absent: bool, candidates: &[&str], value: Value| {
        let key = keys
            .iter()
            .find(|key| candidates.contains(&key.as_str()) && !members.contains_key(*key));
        if !absent {
            members.insert(
                key.map_or_else(
                    || candidates.first().copied().unwrap_or_default().to_owned(),
                    Clone::clone,
                ),
                value,
            );
        }
    };
    put(
        &mut members,
        tool.absent.name,
        NAME_KEYS,
        Value::String(tool.name),
    );
    put(
        &mut members,
        tool.absent.description,
        &["description"],
        Value::String(tool.description),
    );
    let inputs = Value::Object(tool.inputs);
    let candidates = [SCHEMA_KEYS, LOOSE_SCHEMA_KEYS].concat();
    // A schema was moved out of its member; parameters were read and left where they are.
    let is_moved = keys
        .iter()
        .any(|key| candidates.contains(&key.as_str()) && !members.contains_key(key));
    let listed = schema_key(&members).filter(|_| !is_moved && !tool.absent.inputs);
    let read = listed.and_then(|key| reads_as(key, members.get(key)?));
    match (listed, read) {
        (Some(_), Some(read)) if read == inputs => {}
        (Some(key), Some(_)) => {
            members.insert(key.to_owned(), inputs);
        }
        _ => put(&mut members, tool.absent.inputs, &candidates, inputs),
    }
    Value::Object(super::write::reorder_members(members, &keys))
}

/// The key that holds the arguments: a schema, or parameters that can be read as one.
pub(super) fn schema_key(definition: &Object) -> Option<&'static str> {
    let holds = |keys: &'static [&'static str], test: &dyn Fn(&str, &Value) -> bool| {
        let mut keys = keys.iter().copied();
        keys.find(|key| definition.get(*key).is_some_and(|value| test(key, value)))
    };
    let is_read = |key: &str, value: &Value| {
        (value.is_object() && describes_arguments(value)) || reads_as(key, value).is_some()
    };
    holds(SCHEMA_KEYS, &|_, value| value.is_object())
        .or_else(|| holds(SCHEMA_KEYS, &is_read))
        .or_else(|| holds(LOOSE_SCHEMA_KEYS, &is_read))
}

/// The schema that says the same as a list or map of parameters; `None` for a schema.
pub(super) fn reads_as(key: &str, value: &Value) -> Option<Value> {
    if !SCHEMA_KEYS.contains(&key) && !LOOSE_SCHEMA_KEYS.contains(&key) {
        return None;
    }
    match value {
        Value::Array(items) if !items.is_empty() => schema_of_list(value),
        Value::Object(members) if is_parameter_map(members) => schema_of_map(value),
        _ => None,
    }
}

/// What [`reads_as`] does not carry over.
pub(super) fn remainder(value: &Value) -> Option<Value> {
    match value {
        Value::Array(_) => remainder_of_list(value),
        _ => remainder_of_map(value),
    }
}

/// Whether every member is a parameter with a type, and none a keyword of a schema.
pub(crate) fn is_parameter_map(members: &Object) -> bool {
    let is_parameter = |value: &Value| value.get("type").is_some_and(Value::is_string);
    let keywords = ["$schema", "$ref", "properties", "anyOf", "oneOf", "allOf"];
    let is_schema = keywords.iter().any(|key| members.contains_key(*key));
    !members.is_empty() && !is_schema && members.values().all(is_parameter)
}
