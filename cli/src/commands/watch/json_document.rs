//! Comparisons as JSON.

use serde_json::{Value, json};
use toolwarden_drift::drift_json;
use toolwarden_model::json::Object;
use toolwarden_schema::Callers;

use super::comparison::ServerComparison;
use crate::ci_escape::escape_json;

/// The members every document about a comparison has.
pub(super) fn comparison_members(comparison: &ServerComparison<'_>) -> Object {
    let drift = comparison.drift;
    let tools: Vec<Value> = drift.tools.iter().map(drift_json::tool).collect();
    let mut members = Object::new();
    let policy = match comparison.options.callers {
        Callers::Declared => "declared",
        Callers::Open => "open",
    };
    members.insert("policy".to_owned(), json!(policy));
    members.insert("unchanged".to_owned(), json!(drift.unchanged));
    members.insert("tools".to_owned(), Value::Array(tools));
    if !drift.results.is_empty() {
        let results = drift.results.iter();
        let results = results.map(|(tool, said)| (tool.clone(), drift_json::results_to_json(said)));
        members.insert("results".to_owned(), Value::Object(results.collect()));
    }
    members
}

pub(super) fn to_text(document: &Value) -> String {
    escape_json(serde_json::to_string_pretty(document).unwrap_or_default()) + "\n"
}

/// A text that is kept as JSON.
pub(super) fn parse(text: &str) -> Value {
    // INVARIANT: what is kept was written as JSON.
    serde_json::from_str(text).unwrap_or(Value::Null)
}
