use serde_json::{Value, json};
use toolwarden_model::json::Object;
use toolwarden_model::{AbsentParts, Format, KeyOrder, Tool};

use super::table::{Conversion, FieldTable, ToolField, field};

pub(super) const TOOL: FieldTable = &[
    field("name", ToolField::Name),
    field("description", ToolField::Description),
    field("args_schema", ToolField::Inputs).converted(&ARGS_SCHEMA),
    field("metadata", ToolField::Annotations).converted(&METADATA),
];

pub(super) const ARGS: FieldTable = &[
    field("name", ToolField::Name),
    field("description", ToolField::Description),
    field("args", ToolField::Inputs).converted(&BARE_PROPERTIES),
];

pub(super) const SCHEMA: FieldTable = &[
    field("name", ToolField::Name),
    field("description", ToolField::Description),
    field("schema", ToolField::Inputs).converted(&ARGS_SCHEMA),
];

/// A JSON Schema, or the fields of a Pydantic model, which say no more than what is required.
static ARGS_SCHEMA: Conversion = Conversion::new(
    |value| {
        let schema = value.as_object()?;
        let Some(Value::Object(fields)) = schema.get("model_fields") else {
            return Some(value.clone());
        };
        let required = |field: &Value| field.get("is_required") == Some(&Value::Bool(true));
        let properties: Object = fields
            .keys()
            .map(|name| (name.clone(), json!({ "type": "string" })))
            .collect();
        let required: Vec<&String> = fields
            .iter()
            .filter(|(_, field)| required(field))
            .map(|(name, _)| name)
            .collect();
        Some(json!({ "type": "object", "properties": properties, "required": required }))
    },
    |value| Some(value.clone()),
);

/// LangChain's MCP adapter puts the annotations of a tool into its metadata. Any other
/// metadata belongs to the application.
static METADATA: Conversion = Conversion::new(
    |value| has_hint(value).then(|| value.clone()),
    |value| has_hint(value).then(|| value.clone()),
);

fn has_hint(value: &Value) -> bool {
    let hints = [
        "readOnlyHint",
        "destructiveHint",
        "idempotentHint",
        "openWorldHint",
    ];
    hints.iter().any(|hint| value.get(hint).is_some())
}

static BARE_PROPERTIES: Conversion = Conversion::new(
    |value| {
        value
            .as_object()
            .map(|properties| json!({ "type": "object", "properties": properties }))
    },
    |value| match value.as_object() {
        Some(schema) if schema.len() == 2 => value.get("properties").cloned(),
        _ => None,
    },
);

/// Reads a name beside a schema's own keywords.
pub(super) fn read_flat(definition: Object) -> Tool {
    let mut tool = Tool::new(Format::LangchainFlat);
    tool.layout = KeyOrder::from([(String::new(), definition.keys().cloned().collect())]);
    let mut extension = Object::new();
    tool.absent = AbsentParts {
        name: true,
        description: true,
        inputs: false,
    };
    if !definition.contains_key("type") {
        tool.inputs.insert("type".to_owned(), json!("object"));
    }
    for (key, value) in definition {
        match (key.as_str(), value) {
            ("name", Value::String(name)) => (tool.name, tool.absent.name) = (name, false),
            ("description", Value::String(text)) => {
                (tool.description, tool.absent.description) = (text, false);
            }
            ("name" | "description", value) => {
                extension.insert(key, value);
            }
            (_, value) => {
                tool.inputs.insert(key, value);
            }
        }
    }
    if !extension.is_empty() {
        tool.extensions.insert(Format::LangchainFlat, extension);
    }
    tool
}

/// Undoes [`read_flat`].
pub(super) fn write_flat(mut tool: Tool) -> Value {
    let mut members = Object::new();
    if !tool.absent.name {
        members.insert("name".to_owned(), Value::String(tool.name));
    }
    if !tool.absent.description {
        members.insert("description".to_owned(), Value::String(tool.description));
    }
    members.extend(tool.inputs);
    members.extend(
        tool.extensions
            .remove(&Format::LangchainFlat)
            .unwrap_or_default(),
    );
    let Some(keys) = tool.layout.remove("") else {
        return Value::Object(members);
    };
    if !keys.iter().any(|key| key == "type") {
        members.shift_remove("type");
    }
    Value::Object(super::write::reorder_members(members, &keys))
}
