use toolwarden_model::json::{Object, Pointer, Value};

/// Where the formats we know keep the name of a tool.
const NAMES: [&[&str]; 3] = [&["name"], &["function", "name"], &["toolSpec", "name"]];

/// Where they keep the schema of the arguments.
const INPUTS: [&[&str]; 6] = [
    &["inputSchema"],
    &["input_schema"],
    &["parameters"],
    &["function", "parameters"],
    &["toolSpec", "inputSchema", "json"],
    &["args_schema"],
];

/// The name a definition gives its tool, and where.
pub(super) fn tool_name(definition: &Value) -> Option<(Pointer, &str)> {
    NAMES.iter().find_map(|path| {
        let name = find(definition, path)?.as_str()?;
        Some((Pointer::of(path.iter().copied()), name))
    })
}

/// The properties of the arguments.
pub(super) fn arguments(definition: &Value) -> Option<&Object> {
    INPUTS
        .iter()
        .find_map(|path| find(definition, path)?.get("properties")?.as_object())
}

fn find<'v>(definition: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter()
        .try_fold(definition, |value, key| value.get(key))
}
