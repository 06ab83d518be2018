use serde_json::Value;
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
            vec![match without_null(node, values) {
                Some(steps) => violation.same(steps),
                None => violation.other(drop),
            }]
        }
        Enums::OneType if is_of_one_type(values) => Vec::new(),
        Enums::OneType => vec![violation("the values of `enum` must be of one type").other(drop)],
    }
}

/// Where null is among the values of a nullable string, the type alone lets it in.
fn without_null(node: Node<'_>, values: &[Value]) -> Option<Vec<Step>> {
    let strings: Vec<Value> = values
        .iter()
        .filter(|value| !value.is_null())
        .cloned()
        .collect();
    let nullable = matches!(node.schema.get("type"), Some(Value::Array(words)) if words.iter().any(|word| word == "null"));
    let only_null_is_odd =
        strings.len() < values.len() && !strings.is_empty() && strings.iter().all(Value::is_string);
    // Gemini's `nullable` lets null pass beside the enumerated strings.
    (nullable && only_null_is_odd).then(|| vec![Step::set("enum", Value::Array(strings))])
}

fn is_of_one_type(values: &[Value]) -> bool {
    let integers = |value: &Value| value.is_i64() || value.is_u64();
    values.iter().all(Value::is_string)
        || values.iter().all(integers)
        || values.iter().all(Value::is_number)
}
