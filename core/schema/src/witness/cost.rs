use std::collections::HashMap;

use serde_json::Value;
use toolwarden_model::json::Object;
use toolwarden_model::keywords::children;

/// The most schema evaluations per value for which the validator is used. The validator follows
/// every reference again.
const MAX_VISITS: f64 = 100_000.0;

/// Whether a validator can be expected to finish on any value. A few dozen definitions that refer to
/// each other twice make it evaluate one value a billion times.
pub(crate) fn is_affordable(lifted: &Value) -> bool {
    let definitions = lifted.get("$defs").and_then(Value::as_object);
    if definitions.is_none() {
        // Without references, the evaluations per value are bounded by the length of the document.
        return true;
    }
    let mut looks = VisitCounter {
        definitions,
        known: HashMap::new(),
    };
    let mut open = vec![lifted];
    while let Some(schema) = open.pop() {
        if looks.of(schema) > MAX_VISITS {
            return false;
        }
        if let Value::Object(members) = schema {
            open.extend(children(members));
        }
    }
    true
}

/// How many schema evaluations one schema causes per value.
struct VisitCounter<'s> {
    definitions: Option<&'s Object>,
    known: HashMap<*const Value, f64>,
}

impl<'s> VisitCounter<'s> {
    fn of(&mut self, schema: &'s Value) -> f64 {
        let Value::Object(members) = schema else {
            return 1.0;
        };
        let place = std::ptr::from_ref(schema);
        if let Some(known) = self.known.get(&place) {
            return *known;
        }
        // The validator stops a schema that refers back to itself without descending into the value.
        self.known.insert(place, 1.0);
        let mut looks = 1.0;
        for (keyword, value) in members {
            looks += match (keyword.as_str(), value) {
                ("$ref", Value::String(reference)) => {
                    let name = reference.trim_start_matches("#/$defs/");
                    let target = self
                        .definitions
                        .and_then(|definitions| definitions.get(name));
                    target.map_or(0.0, |target| self.of(target))
                }
                ("allOf" | "anyOf" | "oneOf", Value::Array(branches)) => {
                    branches.iter().map(|branch| self.of(branch)).sum()
                }
                ("dependentSchemas", Value::Object(map)) => {
                    map.values().map(|schema| self.of(schema)).sum()
                }
                ("not" | "if" | "then" | "else", schema) => self.of(schema),
                _ => 0.0,
            };
        }
        self.known.insert(place, looks);
        looks
    }
}
