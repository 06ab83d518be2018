use serde_json::{Value, json};
use toolwarden_model::json::Object;

use super::table::{Conversion, FieldTable, ToolField, field};
use crate::schema::{allow_null, rebuild, rename_types};

pub(super) const DECLARATION: FieldTable = &[
    field("name", ToolField::Name),
    field("description", ToolField::Description),
    field("parameters", ToolField::Inputs)
        .converted(&GEMINI_SCHEMA)
        .nullable(),
    field("response", ToolField::Outputs).converted(&GEMINI_SCHEMA),
];

pub(super) const DECLARATION_JSON_SCHEMA: FieldTable = &[
    field("name", ToolField::Name),
    field("description", ToolField::Description),
    field("parametersJsonSchema", ToolField::Inputs)
        .aliased(&["parameters_json_schema"])
        .nullable(),
    field("responseJsonSchema", ToolField::Outputs).aliased(&["response_json_schema"]),
];

/// Keys of a Gemini tool that name something the provider runs itself.
pub(crate) const HOSTED_KEYS: &[&str] = &[
    "googleSearch",
    "google_search",
    "googleSearchRetrieval",
    "google_search_retrieval",
    "codeExecution",
    "code_execution",
    "urlContext",
    "url_context",
    "computerUse",
    "computer_use",
    "googleMaps",
    "google_maps",
    "enterpriseWebSearch",
    "retrieval",
    "fileSearch",
    "file_search",
    "mcpServers",
];

const TYPES: &[(&str, &str)] = &[
    ("OBJECT", "object"),
    ("ARRAY", "array"),
    ("STRING", "string"),
    ("NUMBER", "number"),
    ("INTEGER", "integer"),
    ("BOOLEAN", "boolean"),
    ("NULL", "null"),
];

/// Gemini's names for keywords, and the snake-case spelling its Python SDK writes.
const KEYWORDS: &[(&str, &str, &str)] = &[
    ("defs", "defs", "$defs"),
    ("ref", "ref", "$ref"),
    ("anyOf", "any_of", "anyOf"),
    ("minItems", "min_items", "minItems"),
    ("maxItems", "max_items", "maxItems"),
    ("minLength", "min_length", "minLength"),
    ("maxLength", "max_length", "maxLength"),
    ("minProperties", "min_properties", "minProperties"),
    ("maxProperties", "max_properties", "maxProperties"),
    ("propertyOrdering", "property_ordering", "propertyOrdering"),
    (
        "additionalProperties",
        "additional_properties",
        "additionalProperties",
    ),
];

/// Gemini's schema dialect and JSON Schema. Rewriting a schema until it fits the dialect is the
/// business of `dialect`; this is only the other spelling.
static GEMINI_SCHEMA: Conversion = Conversion::new(decode, encode);

fn decode(schema: &Value) -> Option<Value> {
    schema.as_object()?;
    Some(rebuild(schema, &json_keyword, &|schema| {
        rename_types(schema, |word| {
            Some(
                TYPES
                    .iter()
                    .find(|(upper, _)| *upper == word)
                    .map_or(word, |(_, json)| json),
            )
        });
        move_reference(schema, "#/defs/", "#/$defs/");
        for limit in [
            "minItems",
            "maxItems",
            "minLength",
            "maxLength",
            "minProperties",
            "maxProperties",
        ] {
            // Gemini's JSON spells 64-bit numbers as strings.
            let number = schema
                .get(limit)
                .and_then(Value::as_str)
                .and_then(|text| text.parse::<u64>().ok());
            if let Some(number) = number {
                schema.insert(limit.to_owned(), number.into());
            }
        }
        if schema.shift_remove("nullable") == Some(Value::Bool(true)) {
            allow_null(schema);
        }
        if let Some(example) = schema.get_mut("example").map(Value::take) {
            schema.shift_remove("example");
            schema.insert("examples".to_owned(), json!([example]));
        }
    }))
}

fn encode(schema: &Value) -> Option<Value> {
    schema.as_object()?;
    Some(rebuild(schema, &gemini_keyword, &|schema| {
        // `nullable` lets null in past everything else, so it only says the same where there is
        // nothing else.
        let alone = !["enum", "const", "anyOf"]
            .iter()
            .any(|key| schema.contains_key(*key));
        if let Some([Value::String(word), Value::String(null)]) = schema
            .get("type")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            && null == "null"
            && alone
        {
            let word = word.clone();
            schema.insert("type".to_owned(), Value::String(word));
            schema.insert("nullable".to_owned(), Value::Bool(true));
        }
        rename_types(schema, |word| {
            Some(
                TYPES
                    .iter()
                    .find(|(_, json)| *json == word)
                    .map_or(word, |(upper, _)| upper),
            )
        });
        move_reference(schema, "#/$defs/", "#/defs/");
        if let Some([example]) = schema
            .get("examples")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
        {
            let example = example.clone();
            schema.shift_remove("examples");
            schema.insert("example".to_owned(), example);
        }
    }))
}

fn json_keyword(written: &str) -> &str {
    let found = KEYWORDS
        .iter()
        .find(|(gemini, snake, _)| written == *gemini || written == *snake);
    found.map_or(written, |(_, _, json)| json)
}

fn gemini_keyword(written: &str) -> &str {
    KEYWORDS
        .iter()
        .find(|(_, _, json)| written == *json)
        .map_or(written, |(gemini, _, _)| gemini)
}

fn move_reference(schema: &mut Object, from: &str, to: &str) {
    for key in ["ref", "$ref"] {
        let moved = schema
            .get(key)
            .and_then(Value::as_str)
            .and_then(|text| text.strip_prefix(from));
        if let Some(name) = moved {
            let moved = Value::String(format!("{to}{name}"));
            schema.insert(key.to_owned(), moved);
        }
    }
}
