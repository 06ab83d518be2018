use std::collections::HashMap;

use serde_json::Value;
use toolwarden_model::json::Object;
use toolwarden_model::keywords::children;

/// The most schemas that may look at one value before a validator is not given the document: it
/// follows every reference anew.
const MAX_LOOKS: f64 = 100_000.0;

/// Whether a validator can be expected to end on any value. A few dozen definitions that refer to
/// each other twice make it look at one value a billion times.
pub(crate) fn is_affordable(lifted: &Value) -> bool {
    let definitions = lifted.get("$defs").and_then(Value::as_object);
    if definitions.is_none() {
        // Without references a document looks at a value no more often than it is long.
        return true;
    }
    let mut looks = Looks {
        definitions,
        known: HashMap::new(),
    };
    let mut open = vec![lifted];
    while let Some(schema) = open.pop() {
        if looks.of(schema) > MAX_LOOKS {
            return false;
        }
        if let Value::Object(members) = schema {
            open.extend(children(members));
        }
    }
    true
}

/// How many schemas look at one value on behalf of one.
struct Looks<'s> {
    definitions: Option<&'s Object>,
    known: HashMap<*const Value, f64>,
}

impl<'s> Looks<'s> {
    fn of(&mut self, schema: &'s Value) -> f64 {
        let Value::Object(members) = schema else {
            return 1.0;
        };
        let place = std::ptr::from_ref(schema);
        if let Some(known) = self.known.get(&place) {
            return *known;
        }
        // Whoever leads back to itself without a step inside is stopped by the validator.
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
