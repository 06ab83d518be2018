use serde_json::{Value, json};
use toolwarden_model::json::Object;

use super::python_types::json_type_of_python;
use super::table::{Conversion, FieldTable, ToolField, field};

pub(super) const FUNCTION: FieldTable = &[
    field("name", ToolField::Name),
    field("description", ToolField::Description),
    field("parameters", ToolField::Inputs).converted(&PARAMETER_LIST),
    field("return_parameter", ToolField::Outputs).converted(&RETURN_PARAMETER),
];

static PARAMETER_LIST: Conversion = Conversion::new(
    |value| {
        let mut properties = Object::new();
        let mut required = Vec::new();
        for parameter in value.as_array()? {
            let name = parameter.get("name")?.as_str()?;
            let mut schema = schema_of(parameter);
            if let Some(default) = parameter
                .get("default_value")
                .filter(|value| !value.is_null())
            {
                schema.insert("default".to_owned(), default.clone());
            }
            if parameter.get("is_required") == Some(&Value::Bool(true)) {
                required.push(Value::from(name));
            }
            properties.insert(name.to_owned(), Value::Object(schema));
        }
        Some(json!({ "type": "object", "properties": properties, "required": required }))
    },
    |_| None,
);

static RETURN_PARAMETER: Conversion = Conversion::new(
    |value| value.as_object().map(|_| Value::Object(schema_of(value))),
    |_| None,
);

/// The schema of one parameter: its own schema where it has one, else what its type name says.
fn schema_of(parameter: &Value) -> Object {
    let mut schema = match parameter.get("schema_data") {
        Some(Value::Object(schema)) => schema.clone(),
        _ => Object::new(),
    };
    let type_name = ["type_", "type"]
        .into_iter()
        .find_map(|key| parameter.get(key)?.as_str());
    if let Some(json_type) = type_name.and_then(json_type_of_python)
        && !schema.contains_key("type")
    {
        schema.insert("type".to_owned(), json!(json_type));
    }
    if let Some(description @ Value::String(_)) = parameter.get("description")
        && !schema.contains_key("description")
    {
        schema.insert("description".to_owned(), description.clone());
    }
    schema
}
