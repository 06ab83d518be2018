use serde_json::{Value, json};
use toolwarden_model::json::Pointer;

use crate::dialect::facts::Enums;
use crate::dialect::node::{Node, Step, Violation};

/// Values of `enum` the dialect does not take.
pub(super) fn enumeration(node: Node<'_>) -> Vec<Violation> {
    let Some(Value::Array(values)) = node.schema.get("enum") else {
        return Vec::new();
    };
    let violation =
        |message: &'static str| Violation::rejected("enum", Pointer::of(["enum"]), message);
    let drop = vec![Step::remove("enum")];
    match node.facts.enums {
        Enums::Anything => Vec::new(),
        Enums::Strings if values.iter().all(Value::is_string) => Vec::new(),
        Enums::Strings => {
            let violation = violation("only strings are accepted in `enum`");
            vec![match null_aside(node, values) {
                Some(split) => violation.same(vec![Step::replace(split)]),
                None => violation.other(drop),
            }]
        }
        Enums::OneType if is_of_one_type(values) => Vec::new(),
        Enums::OneType => vec![violation("the values of `enum` must be of one type").other(drop)],
    }
}

/// Where null is the only value that is no string, it can stand in a branch of its own.
fn null_aside(node: Node<'_>, values: &[Value]) -> Option<Value> {
    let strings: Vec<&Value> = values.iter().filter(|value| !value.is_null()).collect();
    let only_null_is_odd = strings.len() < values.len()
        && !strings.is_empty()
        && strings.iter().all(|it| it.is_string());
    let nullable = matches!(node.schema.get("type"), Some(Value::Array(words)) if *words == [json!("string"), json!("null")]);
    if !nullable || !only_null_is_odd || node.schema.contains_key("anyOf") {
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

fn is_of_one_type(values: &[Value]) -> bool {
    let integers = |value: &Value| value.is_i64() || value.is_u64();
    values.iter().all(Value::is_string)
        || values.iter().all(integers)
        || values.iter().all(Value::is_number)
}
