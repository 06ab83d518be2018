use serde_json::Value;
use toolwarden_model::json::Pointer;

use super::keywords::description_step;
use crate::dialect::node::{Node, Step, Violation};

/// A `format` the dialect does not know.
pub(super) fn format(node: Node<'_>) -> Vec<Violation> {
    let (Some(known), Some(Value::String(format))) =
        (node.facts.formats, node.schema.get("format"))
    else {
        return Vec::new();
    };
    if known.contains(&format.as_str()) || !node.facts.accepts("format") {
        return Vec::new();
    }
    let message = format!("the format `{format}` is not accepted");
    let violation = Violation::rejected("format", Pointer::of(["format"]), message);
    let mut steps = vec![Step::remove("format")];
    steps.extend(description_step(node.facts, node.schema, "format"));
    vec![violation.other(steps)]
}

/// A pattern that looks around.
pub(super) fn pattern(node: Node<'_>) -> Vec<Violation> {
    let Some(Value::String(pattern)) = node.schema.get("pattern") else {
        return Vec::new();
    };
    let looks_around = ["(?=", "(?!", "(?<=", "(?<!"]
        .iter()
        .any(|group| pattern.contains(group));
    if node.facts.look_around || !looks_around {
        return Vec::new();
    }
    let violation = Violation::rejected(
        "pattern",
        Pointer::of(["pattern"]),
        "a pattern that looks around is not accepted",
    );
    let mut steps = vec![Step::remove("pattern")];
    steps.extend(description_step(node.facts, node.schema, "pattern"));
    vec![violation.other(steps)]
}
