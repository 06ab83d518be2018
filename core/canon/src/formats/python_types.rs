//! Python's type names in place of JSON's.

use serde_json::{Value, json};
use toolwarden_model::json::Object;

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
    remainder: |_| None,
    unknown_types: |_| Vec::new(),
};

/// The deepest nesting of brackets in an annotation that is read.
const MAX_BRACKETS: usize = 16;

/// What an annotation says in JSON Schema.
#[derive(Debug, PartialEq)]
pub(super) struct PythonType {
    /// A schema that accepts at least the same values.
    pub(super) schema: Object,
    /// Whether it accepts no others.
    pub(super) is_exact: bool,
}

/// The schema of the values that a Python annotation denotes.
pub(super) fn schema_of_python(annotation: &str) -> PythonType {
    if let Some(Value::Object(schema)) = schema_within(annotation, MAX_BRACKETS) {
        return PythonType {
            schema,
            is_exact: true,
        };
    }
    let word = json_type_of_python(annotation).filter(|_| !annotation.contains('|'));
    let schema = word.map(|word| ("type".to_owned(), Value::from(word)));
    PythonType {
        schema: schema.into_iter().collect(),
        is_exact: false,
    }
}

fn schema_within(annotation: &str, depth: usize) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    let annotation = annotation.trim();
    let alternatives = split_outside_brackets(annotation, '|');
    if alternatives.len() > 1 {
        return union(&alternatives, depth);
    }
    let annotation = annotation.strip_prefix("typing.").unwrap_or(annotation);
    let Some((base, rest)) = annotation.split_once('[') else {
        return match annotation {
            "any" | "Any" => Some(json!({})),
            "None" | "NoneType" | "null" => Some(json!({ "type": "null" })),
            word => Some(json!({ "type": json_type_of_python(word)? })),
        };
    };
    let parts = split_outside_brackets(rest.strip_suffix(']')?, ',');
    match (base.trim(), parts.as_slice()) {
        ("Optional", [inner]) => union(&[*inner, "None"], depth),
        ("Union", alternatives) => union(alternatives, depth),
        ("Literal", words) => {
            let words = words.iter().map(|word| literal(word));
            Some(json!({ "enum": words.collect::<Option<Vec<_>>>()? }))
        }
        ("dict" | "Dict" | "Mapping", [key, value]) if key.trim() == "str" => {
            match schema_within(value, depth)? {
                Value::Object(any) if any.is_empty() => Some(json!({ "type": "object" })),
                values => Some(json!({ "type": "object", "additionalProperties": values })),
            }
        }
        (base, [inner]) if json_type_of_python(base) == Some("array") => {
            // A tuple of one type has one item.
            let exact = !matches!(base, "tuple" | "Tuple");
            let items = schema_within(inner, depth).filter(|_| exact)?;
            match items {
                Value::Object(any) if any.is_empty() => Some(json!({ "type": "array" })),
                items => Some(json!({ "type": "array", "items": items })),
            }
        }
        _ => None,
    }
}

/// The schema of values of any of the annotations.
fn union(alternatives: &[&str], depth: usize) -> Option<Value> {
    let schemas = alternatives.iter().map(|it| schema_within(it, depth));
    let mut distinct: Vec<Value> = Vec::new();
    for schema in schemas {
        let schema = schema?;
        if !distinct.contains(&schema) {
            distinct.push(schema);
        }
    }
    if let [only] = distinct.as_slice() {
        return Some(only.clone());
    }
    let word = |schema: &Value| match schema.as_object() {
        Some(members) if members.len() == 1 => members.get("type").cloned(),
        _ => None,
    };
    let words: Option<Vec<Value>> = distinct.iter().map(word).collect();
    match words {
        Some(words) if words.iter().all(Value::is_string) => Some(json!({ "type": words })),
        _ => Some(json!({ "anyOf": distinct })),
    }
}

fn literal(word: &str) -> Option<Value> {
    let word = word.trim();
    let quoted = |quote: char| word.strip_prefix(quote)?.strip_suffix(quote);
    match quoted('\'').or_else(|| quoted('"')) {
        Some(text) => (!text.contains('\\')).then(|| Value::from(text)),
        None => match word {
            "True" => Some(Value::Bool(true)),
            "False" => Some(Value::Bool(false)),
            "None" => Some(Value::Null),
            number => number.parse::<i64>().ok().map(Value::from),
        },
    }
}

/// The parts between separators that are outside brackets and quotes.
fn split_outside_brackets(text: &str, separator: char) -> Vec<&str> {
    let (mut depth, mut quote) = (0_usize, None);
    text.split(move |c: char| {
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (Some(_), _) => return false,
            (None, '\'' | '"') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') => depth = depth.saturating_sub(1),
            (None, _) => {}
        }
        c == separator && depth == 0
    })
    .collect()
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_become_schemas() {
        let nested = format!("{}str{}", "list[".repeat(40), "]".repeat(40));
        for (annotation, schema, is_exact) in [
            ("str", json!({"type": "string"}), true),
            ("Any", json!({}), true),
            (
                "List[str]",
                json!({"type": "array", "items": {"type": "string"}}),
                true,
            ),
            ("list[Any]", json!({"type": "array"}), true),
            ("list[Invoice]", json!({"type": "array"}), false),
            ("tuple[int]", json!({"type": "array"}), false),
            (
                "typing.Dict[str, List[int]]",
                json!({"type": "object", "additionalProperties": {"type": "array", "items": {"type": "integer"}}}),
                true,
            ),
            ("dict[int, str]", json!({"type": "object"}), false),
            ("Optional[int]", json!({"type": ["integer", "null"]}), true),
            (
                "Union[int, list[str]]",
                json!({"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "string"}}]}),
                true,
            ),
            ("Union[int, int]", json!({"type": "integer"}), true),
            (
                "str | int | str",
                json!({"type": ["string", "integer"]}),
                true,
            ),
            ("str | None", json!({"type": ["string", "null"]}), true),
            (
                "Literal['a, b', \"c|d\", 3, True]",
                json!({"enum": ["a, b", "c|d", 3, true]}),
                true,
            ),
            ("Image", json!({}), false),
            ("str | Image", json!({}), false),
            ("list[", json!({"type": "array"}), false),
            ("", json!({}), false),
            (&nested, json!({"type": "array"}), false),
        ] {
            let found = schema_of_python(annotation);
            let expected = PythonType {
                schema: schema.as_object().unwrap().clone(),
                is_exact,
            };
            assert_eq!(found, expected, "{annotation}");
        }
    }
}
