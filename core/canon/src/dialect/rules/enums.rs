use std::borrow::Cow;

use serde_json::{Value, json};
use toolwarden_model::json::Pointer;

use crate::dialect::facts::{EnumFacts, KeywordSupport};
use crate::dialect::lint::DialectLevel;
use crate::dialect::violation::{SchemaContext, SchemaEdit, Violation};

/// Values of `enum` the dialect does not take.
pub(super) fn enumeration(node: SchemaContext<'_>) -> Vec<Violation> {
    let Some(Value::Array(values)) = node.schema.get("enum") else {
        return Vec::new();
    };
    let EnumFacts { numbers, mixed } = node.facts.enums;
    if !node.facts.accepts("enum") || values.iter().all(Value::is_string) {
        return Vec::new();
    }
    let (taken, what) = if values.iter().all(Value::is_number) {
        (numbers, "an `enum` of numbers")
    } else {
        (mixed, "an `enum` of several types")
    };
    let Some(level) = taken.finding_level() else {
        return Vec::new();
    };
    let message = match (level, numbers) {
        (DialectLevel::Ignored, _) => level.describe(what).into(),
        (DialectLevel::Rejected, KeywordSupport::Refused) => {
            "only strings are accepted in `enum`".into()
        }
        (DialectLevel::Rejected, KeywordSupport::Supported | KeywordSupport::Ignored) => {
            Cow::from("the values of `enum` must be of one type")
        }
    };
    let violation = Violation {
        level,
        ..Violation::rejected("enum", Pointer::of(["enum"]), message)
    };
    let split = split_null(node, values).filter(|_| numbers == KeywordSupport::Refused);
    vec![match split {
        Some(split) => violation.with_equivalent_remedy(vec![SchemaEdit::replace(split)]),
        None => violation.with_semantic_remedy(vec![SchemaEdit::remove("enum")]),
    }]
}

/// Moves null into a separate branch, if it is the only value that is not a string.
fn split_null(node: SchemaContext<'_>, values: &[Value]) -> Option<Value> {
    let strings: Vec<&Value> = values.iter().filter(|value| !value.is_null()).collect();
    let only_null_is_odd = strings.len() < values.len()
        && !strings.is_empty()
        && strings.iter().all(|it| it.is_string());
    let nullable = matches!(node.schema.get("type"), Some(Value::Array(words)) if *words == [json!("string"), json!("null")]);
    if !nullable
        || !only_null_is_odd
        || node.schema.contains_key("anyOf")
        || !node.facts.accepts("anyOf")
    {
        return None;
    }
    let mut split = node.schema.clone();
    split.shift_remove("type");
    split.shift_remove("enum");
    split.insert(
        "anyOf".to_owned(),
        json!([{"type": "string", "enum": strings}, {"type": "null"}]),
    );
    Some(Value::Object(split))
}
