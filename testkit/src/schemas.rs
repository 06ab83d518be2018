use std::collections::BTreeSet;

use serde_json::Value;

use crate::corpus::corpus_definitions;

/// The keys under which a definition contains a schema.
const SCHEMA_KEYS: &[&str] = &[
    "inputSchema",
    "outputSchema",
    "input_schema",
    "parameters",
    "parametersJsonSchema",
    "json",
];

/// Every distinct schema of the corpus with its origin, in a fixed order; `None` without a corpus.
#[must_use]
pub fn schemas() -> Option<Vec<(String, Value)>> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for sample in corpus_definitions()? {
        let Ok(definition) = serde_json::from_str::<Value>(&sample.text) else {
            continue;
        };
        for schema in schemas_of(&definition) {
            if seen.insert(schema.to_string()) {
                found.push((sample.origin.clone(), schema.clone()));
            }
        }
    }
    Some(found)
}

/// The schemas of one definition, wherever its format puts them.
fn schemas_of(definition: &Value) -> Vec<&Value> {
    let wrappers = ["function", "toolSpec"]
        .iter()
        .filter_map(|key| definition.get(key));
    let mut found = Vec::new();
    for holder in std::iter::once(definition).chain(wrappers) {
        for key in SCHEMA_KEYS {
            match holder.get(key) {
                Some(Value::Object(inner)) if inner.contains_key("json") => {
                    found.extend(inner.get("json"))
                }
                Some(schema @ Value::Object(_)) => found.push(schema),
                _ => {}
            }
        }
    }
    found
}
