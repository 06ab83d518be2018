use serde_json::{Value, json};
use toolwarden_model::json::{Object, Pointer};

use super::table::{Conversion, FieldTable, ToolField, field};

pub(super) const TOOL: FieldTable = &[
    field("name", ToolField::Name),
    field("description", ToolField::Description),
    field("inputs", ToolField::Inputs).converted(&INPUTS),
    field("output_schema", ToolField::Outputs),
];

/// Every input is required unless it is `nullable`; `image`, `audio` and `any` are not JSON types.
static INPUTS: Conversion = Conversion::new(
    |value| {
        let mut properties = Object::new();
        let mut required = Vec::new();
        for (name, input) in value.as_object()? {
            let mut schema = input.as_object()?.clone();
            let nullable = schema.shift_remove("nullable") == Some(Value::Bool(true));
            let json_type = schema
                .get("type")
                .and_then(Value::as_str)
                .and_then(json_type);
            match json_type {
                Some(json_type) if nullable => {
                    schema.insert("type".to_owned(), json!([json_type, "null"]));
                }
                Some(_) => {}
                None => {
                    schema.shift_remove("type");
                }
            }
            if !nullable {
                required.push(Value::from(name.clone()));
            }
            properties.insert(name.clone(), Value::Object(schema));
        }
        Some(json!({ "type": "object", "properties": properties, "required": required }))
    },
    |_| None,
)
.with_remainder(|value| {
    let types = unknown_types(value).into_iter();
    let types: Object = types
        .map(|(at, word)| (at.to_string(), Value::from(word)))
        .collect();
    (!types.is_empty()).then_some(Value::Object(types))
})
.with_unknown_types(unknown_types);

/// The types of inputs that are not JSON: a schema without a type accepts any value.
fn unknown_types(value: &Value) -> Vec<(Pointer, String)> {
    let inputs = value.as_object().into_iter().flatten();
    let unknown = inputs.filter_map(|(name, input)| {
        let word = input.get("type")?.as_str()?;
        let is_unknown = json_type(word).is_none() && word != "any";
        is_unknown.then(|| (Pointer::of([name.as_str(), "type"]), word.to_owned()))
    });
    unknown.collect()
}

fn json_type(word: &str) -> Option<&str> {
    [
        "string", "boolean", "integer", "number", "array", "object", "null",
    ]
    .contains(&word)
    .then_some(word)
}
