use serde_json::Value;
use toolwarden_model::json::Object;
use toolwarden_model::{AbsentParts, Format, KeyOrder, Tool};

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
    let schema_key = SCHEMA_KEYS
        .iter()
        .find(|key| definition.get(**key).is_some_and(Value::is_object));
    if let Some(Value::Object(schema)) = schema_key.and_then(|key| definition.shift_remove(*key)) {
        (tool.inputs, tool.absent.inputs) = (schema, false);
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
    let mut put = |absent: bool, candidates: &[&str], value: Value| {
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
    put(tool.absent.name, NAME_KEYS, Value::String(tool.name));
    put(
        tool.absent.description,
        &["description"],
        Value::String(tool.description),
    );
    put(tool.absent.inputs, SCHEMA_KEYS, Value::Object(tool.inputs));
    Value::Object(super::write::reorder_members(members, &keys))
}
