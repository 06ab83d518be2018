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

/// Keywords that may reject more values if the schemas in them accept more.
const NOT_MONOTONIC: [&str; 4] = ["not", "if", "oneOf", "contains"];

/// Keywords that reject what no other keyword read.
const UNEVALUATED: [&str; 2] = ["unevaluatedProperties", "unevaluatedItems"];

/// The schema without patterns that need backtracking, and where they were. Invalid patterns stay. Whatever
/// would reject more values without these patterns is left out as well.
pub(crate) fn without_backtracking_patterns(schema: &Value) -> (Value, Vec<Pointer>) {
    let mut first = PatternRemoval::default();
    let rest = first.strip(schema, &Pointer::root());
    if first.found.is_empty() {
        return (rest, Vec::new());
    }
    // A reference may lead to a schema that lost a pattern.
    let mut second = PatternRemoval {
        references_changed: true,
        ..PatternRemoval::default()
    };
    let rest = second.strip(schema, &Pointer::root());
    if !second.lost_keywords {
        return (rest, second.found);
    }
    let mut third = PatternRemoval {
        references_changed: true,
        without_unevaluated: true,
        ..PatternRemoval::default()
    };
    let rest = third.strip(schema, &Pointer::root());
    (rest, third.found)
}

#[derive(Default)]
struct PatternRemoval {
    /// Whether schemas behind references may accept more than they say.
    references_changed: bool,
    /// Whether to leave out keywords that reject what no other keyword read.
    without_unevaluated: bool,
    /// Where the patterns were.
    found: Vec<Pointer>,
    /// How many schemas so far accept more than they say.
    changes: usize,
    /// Whether more than values of `pattern` was left out.
    lost_keywords: bool,
}

impl PatternRemoval {
    fn strip(&mut self, schema: &Value, at: &Pointer) -> Value {
        match schema {
            Value::Object(members) => Value::Object(self.strip_object(members, at)),
            Value::Array(items) => {
                let items = items.iter().enumerate();
                let items = items.map(|(index, item)| self.strip(item, &at.index(index)));
                Value::Array(items.collect())
            }
            other => other.clone(),
        }
    }

    fn strip_object(&mut self, members: &Object, at: &Pointer) -> Object {
        let mut kept = Object::new();
        let patterns = members.get("patternProperties").and_then(Value::as_object);
        let loses_names = patterns.is_some_and(|it| it.keys().any(|name| needs_backtracking(name)));
        for (key, value) in members {
            let at = at.child(key);
            let before = self.changes;
            let stripped = match value {
                Value::String(pattern) if key == "pattern" && needs_backtracking(pattern) => {
                    self.found.push(at);
                    self.changes += 1;
                    continue;
                }
                Value::Object(schemas) if SCHEMA_MAPS.contains(&key.as_str()) => {
                    Value::Object(self.strip_map(key == "patternProperties", schemas, &at))
                }
                value if DATA.contains(&key.as_str()) => value.clone(),
                value => self.strip(value, &at),
            };
            if matches!(key.as_str(), "$ref" | "$dynamicRef" | "$recursiveRef") {
                self.changes += usize::from(self.references_changed);
            }
            let key_text = key.as_str();
            let is_left_out = NOT_MONOTONIC.contains(&key_text) && self.changes > before
                || key == "additionalProperties" && loses_names
                || UNEVALUATED.contains(&key_text) && self.without_unevaluated;
            if is_left_out {
                self.changes += 1;
                self.lost_keywords = true;
            } else {
                kept.insert(key.clone(), stripped);
            }
        }
        kept
    }

    fn strip_map(&mut self, keys_are_patterns: bool, schemas: &Object, at: &Pointer) -> Object {
        let mut kept = Object::new();
        for (name, schema) in schemas {
            let at = at.child(name);
            if keys_are_patterns && needs_backtracking(name) {
                self.found.push(at);
                self.changes += 1;
                self.lost_keywords = true;
            } else {
                kept.insert(name.clone(), self.strip(schema, &at));
            }
        }
        kept
    }
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

    #[test]
    fn keywords_that_would_reject_more_without_a_pattern_are_left_out() {
        let ahead = json!({"pattern": "^(?=x)y"});
        let by_reference = json!({
            "$defs": {"a": ahead},
            "properties": {"b": {"not": {"$ref": "#/$defs/a"}}, "c": {"not": {"const": 1}}}
        });
        let unevaluated = json!({
            "allOf": [{"patternProperties": {"^(?!_)": {}}}],
            "unevaluatedProperties": false
        });
        let cases = [
            (
                json!({"not": ahead, "type": "string"}),
                json!({"type": "string"}),
                "/not/pattern",
            ),
            (
                json!({"if": ahead, "then": false}),
                json!({"then": false}),
                "/if/pattern",
            ),
            (
                json!({"oneOf": [ahead, {"type": "string"}]}),
                json!({}),
                "/oneOf/0/pattern",
            ),
            (
                json!({"contains": ahead, "maxContains": 1}),
                json!({"maxContains": 1}),
                "/contains/pattern",
            ),
            (
                json!({"anyOf": [ahead, {"not": {}}]}),
                json!({"anyOf": [{}, {"not": {}}]}),
                "/anyOf/0/pattern",
            ),
            (
                json!({"patternProperties": {"^(?!_)": {}}, "additionalProperties": false}),
                json!({"patternProperties": {}}),
                "/patternProperties/^(?!_)",
            ),
            (
                by_reference,
                json!({"$defs": {"a": {}}, "properties": {"b": {}, "c": {"not": {"const": 1}}}}),
                "/$defs/a/pattern",
            ),
            (
                unevaluated,
                json!({"allOf": [{"patternProperties": {}}]}),
                "/allOf/0/patternProperties/^(?!_)",
            ),
        ];
        for (schema, expected, place) in cases {
            let (rest, found) = without_backtracking_patterns(&schema);
            assert_eq!(rest, expected, "{schema}");
            let found: Vec<&str> = found.iter().map(Pointer::as_str).collect();
            assert_eq!(found, [place], "{schema}");
        }
    }
}
