//! JSON text with sorted keys, as Python writes it.

use serde_json::Value;
use toolwarden_model::json::Object;

/// Formats a document with sorted keys, two spaces per level and a final newline.
pub(super) fn to_sorted_text(document: Value) -> String {
    let mut text = serde_json::to_string_pretty(&sorted(document)).unwrap_or_default();
    text.push('\n');
    text
}

/// UTF-8 byte order equals code point order, which Python sorts by.
pub(super) fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<(String, Value)> = members.into_iter().collect();
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            let members = members.into_iter().map(|(key, value)| (key, sorted(value)));
            Value::Object(members.collect::<Object>())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}
