//! Python's type names in place of JSON's.

use super::table::Conversion;
use crate::schema::{any_type, map_schemas, rename_types};

/// A JSON Schema whose types are spelled as in Python.
pub(super) static PYTHON_SCHEMA: Conversion = Conversion {
    decode: |value| {
        value.as_object()?;
        Some(map_schemas(value, &|schema| {
            rename_types(schema, |word| match word {
                "any" => None,
                word => Some(json_type_of_python(word).unwrap_or(word)),
            });
        }))
    },
    encode: |value| {
        Some(map_schemas(value, &|schema| {
            rename_types(schema, |word| {
                Some(match word {
                    "object" => "dict",
                    "number" => "float",
                    word => word,
                })
            });
        }))
    },
    is_reversible: |value| {
        !any_type(value, &|word| {
            !["dict", "float", "string", "integer", "boolean", "array"].contains(&word)
        })
    },
};

/// The JSON type that a Python annotation denotes, if there is one.
pub(super) fn json_type_of_python(annotation: &str) -> Option<&'static str> {
    let base = annotation.split('[').next().unwrap_or_default().trim();
    match base {
        "str" | "String" | "string" => Some("string"),
        "int" | "integer" | "long" => Some("integer"),
        "float" | "double" | "number" => Some("number"),
        "bool" | "Boolean" | "boolean" => Some("boolean"),
        "list" | "List" | "tuple" | "Tuple" | "set" | "array" | "Array" | "ArrayList" => {
            Some("array")
        }
        "dict" | "Dict" | "HashMap" | "Hashtable" | "object" => Some("object"),
        _ => None,
    }
}
