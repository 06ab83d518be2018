//! Patterns that need backtracking, such as lookahead. They are valid, and are not checked, because they
//! may take time without a bound.

use jsonschema::PatternOptions;
use serde_json::{Value, json};
use toolwarden_model::json::{Object, Pointer};

/// Keywords whose values are maps of schemas.
const SCHEMA_MAPS: [&str; 6] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
    "dependencies",
];

/// Keywords whose values are data and not schemas.
const DATA: [&str; 4] = ["const", "enum", "default", "examples"];

/// The schema without patterns that need backtracking, and where they were. Invalid patterns stay.
pub(crate) fn without_backtracking_patterns(schema: &Value) -> (Value, Vec<Pointer>) {
    let mut found = Vec::new();
    let rest = strip(schema, &Pointer::root(), &mut found);
    (rest, found)
}

fn strip(schema: &Value, at: &Pointer, found: &mut Vec<Pointer>) -> Value {
    match schema {
        Value::Object(members) => {
            let mut kept = Object::new();
            for (key, value) in members {
                let at = at.child(key);
                match value {
                    Value::String(pattern) if key == "pattern" && needs_backtracking(pattern) => {
                        found.push(at);
                    }
                    Value::Object(schemas) if SCHEMA_MAPS.contains(&key.as_str()) => {
                        let map = strip_map(key == "patternProperties", schemas, &at, found);
                        kept.insert(key.clone(), Value::Object(map));
                    }
                    value if DATA.contains(&key.as_str()) => {
                        kept.insert(key.clone(), value.clone());
                    }
                    value => {
                        kept.insert(key.clone(), strip(value, &at, found));
                    }
                }
            }
            Value::Object(kept)
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            let items = items.map(|(index, item)| strip(item, &at.index(index), found));
            Value::Array(items.collect())
        }
        other => other.clone(),
    }
}

fn strip_map(
    keys_are_patterns: bool,
    schemas: &Object,
    at: &Pointer,
    found: &mut Vec<Pointer>,
) -> Object {
    let mut kept = Object::new();
    for (name, schema) in schemas {
        let at = at.child(name);
        if keys_are_patterns && needs_backtracking(name) {
            found.push(at);
        } else {
            kept.insert(name.clone(), strip(schema, &at, found));
        }
    }
    kept
}

/// Whether a pattern is valid only for an engine that backtracks.
fn needs_backtracking(pattern: &str) -> bool {
    let schema = json!({"pattern": pattern});
    let linear = jsonschema::options().with_pattern_options(PatternOptions::regex());
    let backtracking = jsonschema::options().with_pattern_options(PatternOptions::fancy_regex());
    linear.build(&schema).is_err() && backtracking.build(&schema).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_patterns_that_need_backtracking_are_left_out() {
        // The pattern of Zod for e-mail addresses begins like this.
        let email = "^(?!\\.)(?!.*\\.\\.)([a-z]+)@([a-z]+)$";
        let schema = json!({
            "type": "object",
            "properties": {
                "email": {"type": "string", "pattern": email},
                "code": {"type": "string", "pattern": "^[A-Z]{3}$"},
                "pattern": {"type": "string"},
                "broken": {"pattern": "("},
                "sample": {"enum": [{"pattern": email}]}
            },
            "patternProperties": {"^(?=x)": {"type": "string"}, "^y": {}}
        });
        let (rest, found) = without_backtracking_patterns(&schema);
        let expected = json!({
            "type": "object",
            "properties": {
                "email": {"type": "string"},
                "code": {"type": "string", "pattern": "^[A-Z]{3}$"},
                "pattern": {"type": "string"},
                "broken": {"pattern": "("},
                "sample": {"enum": [{"pattern": email}]}
            },
            "patternProperties": {"^y": {}}
        });
        assert_eq!(rest, expected);
        let found: Vec<&str> = found.iter().map(Pointer::as_str).collect();
        assert_eq!(
            found,
            ["/properties/email/pattern", "/patternProperties/^(?=x)"]
        );
    }
}
