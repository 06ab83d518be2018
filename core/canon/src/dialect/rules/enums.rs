use std::borrow::Cow;

use serde_json::{Value, json};
use toolwarden_model::json::Pointer;

use crate::dialect::facts::{Enums, Taken};
use crate::dialect::lint::Level;
use crate::dialect::node::{Node, Step, Violation};

/// Values of `enum` the dialect does not take.
pub(super) fn enumeration(node: Node<'_>) -> Vec<Violation> {
    let Some(Value::Array(values)) = node.schema.get("enum") else {
        return Vec::new();
    };
    let Enums { numbers, mixed } = node.facts.enums;
    if !node.facts.accepts("enum") || values.iter().all(Value::is_string) {
        return Vec::new();
    }
    let (taken, what) = if values.iter().all(Value::is_number) {
        (numbers, "an `enum` of numbers")
    } else {
        (mixed, "an `enum` of several types")
    };
    let Some(level) = taken.objection() else {
        return Vec::new();
    };
    let message = match (level, numbers) {
        (Level::Ignored, _) => level.said_of(what).into(),
        (Level::Rejected, Taken::Refused) => "only strings are accepted in `enum`".into(),
        (Level::Rejected, Taken::Honoured | Taken::Ignored) => {
            Cow::from("the values of `enum` must be of one type")
        }
    };
    let violation = Violation {
        level,
        ..Violation::rejected("enum", Pointer::of(["enum"]), message)
    };
    let split = null_aside(node, values).filter(|_| numbers == Taken::Refused);
    vec![match split {
        Some(split) => violation.same(vec![Step::replace(split)]),
        None => violation.other(vec![Step::remove("enum")]),
    }]
}

/// Where null is the only value that is no string, it can stand in a branch of its own.
fn null_aside(node: Node<'_>, values: &[Value]) -> Option<Value> {
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
