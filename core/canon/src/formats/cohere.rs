use serde_json::{Value, json};
use toolwarden_model::json::Object;

use super::python_types::json_type_of_python;
use super::table::{Conversion, FieldTable, ToolField, field};

pub(super) const V1: FieldTable = &[
    field("name", ToolField::Name),
    field("description", ToolField::Description),
    field("parameter_definitions", ToolField::Inputs).converted(&PARAMETER_DEFINITIONS),
];

/// A flat map of parameters with Python type names.
static PARAMETER_DEFINITIONS: Conversion = Conversion::new(
    |value| {
        let mut properties = Object::new();
        let mut required = Vec::new();
        for (name, parameter) in value.as_object()? {
            let mut schema = Object::new();
            let type_name = parameter
                .get("type")
                .and_then(Value::as_str)
                .unwrap_or_default();
            if let Some(json_type) = json_type_of_python(type_name) {
                schema.insert("type".to_owned(), json!(json_type));
            }
            if let Some(description) = parameter.get("description") {
                schema.insert("description".to_owned(), description.clone());
            }
            if parameter.get("required") == Some(&Value::Bool(true)) {
                required.push(Value::from(name.clone()));
            }
            properties.insert(name.clone(), Value::Object(schema));
        }
        Some(json!({ "type": "object", "properties": properties, "required": required }))
    },
    |_| None,
);
