use serde_json::Value;
use toolwarden_model::json::{Object, Pointer};
use toolwarden_model::keywords::subschemas;

use super::table::{Conversion, FieldTable, ToolField, field};
use crate::schema::{allow_null, map_schemas, rename_types};

pub(super) const TOOL: FieldTable = &[
    field("type", ToolField::Constant("function")),
    field("function", ToolField::Nested(FUNCTION)).required(),
];

const FUNCTION: FieldTable = &[
    field("name", ToolField::Name),
    field("description", ToolField::Description),
    field("parameters", ToolField::Inputs)
        .converted(&MEDIA_SCHEMA)
        .nullable(),
    field("return", ToolField::Outputs).converted(&MEDIA_SCHEMA),
];

/// Types of values that are not JSON.
const MEDIA: [&str; 3] = ["image", "audio", "video"];

/// JSON Schema with types of media, and with `nullable` as in OpenAPI 3.0.
static MEDIA_SCHEMA: Conversion = Conversion {
    decode: |value| {
        value.as_object()?;
        Some(map_schemas(value, &|schema| {
            rename_types(schema, |word| (!MEDIA.contains(&word)).then_some(word));
            if schema.get("nullable") == Some(&Value::Bool(true)) {
                schema.shift_remove("nullable");
                allow_null(schema);
            }
        }))
    },
    encode: |value| Some(value.clone()),
    is_reversible: |_| false,
    remainder: |value| {
        let types = unknown_types(value).into_iter();
        let types: Object = types
            .map(|(at, word)| (at.to_string(), Value::from(word)))
            .collect();
        (!types.is_empty()).then_some(Value::Object(types))
    },
    unknown_types,
};

fn unknown_types(schema: &Value) -> Vec<(Pointer, String)> {
    let mut found = Vec::new();
    let mut open = vec![(Pointer::root(), schema)];
    while let Some((at, schema)) = open.pop() {
        let Some(members) = schema.as_object() else {
            continue;
        };
        let word = members.get("type").and_then(Value::as_str);
        if let Some(word) = word.filter(|word| MEDIA.contains(word)) {
            found.push((at.child("type"), word.to_owned()));
        }
        open.extend(subschemas(members, &at));
    }
    found.sort();
    found
}
