use serde_json::Value;
use toolwarden_model::json::Pointer;

use super::keywords::description_step;
use crate::dialect::facts::Formats;
use crate::dialect::node::{Node, Step, Violation};

/// A `format` the dialect does not know.
pub(super) fn format(node: Node<'_>) -> Vec<Violation> {
    let Formats { known, others } = node.facts.formats;
    let (Some(level), Some(Value::String(format))) =
        (others.objection(), node.schema.get("format"))
    else {
        return Vec::new();
    };
    if known.contains(&format.as_str()) || !node.facts.accepts("format") {
        return Vec::new();
    }
    let what = format!("the format `{format}`");
    let violation = Violation::minded(level, "format", Pointer::of(["format"]), &what);
    let mut steps = vec![Step::remove("format")];
    steps.extend(description_step(node.facts, node.schema, "format"));
    vec![violation.other(steps)]
}

/// A pattern that looks around.
pub(super) fn pattern(node: Node<'_>) -> Vec<Violation> {
    let (Some(level), Some(Value::String(pattern))) = (
        node.facts.look_around.objection(),
        node.schema.get("pattern"),
    ) else {
        return Vec::new();
    };
    let looks_around = ["(?=", "(?!", "(?<=", "(?<!"]
        .iter()
        .any(|group| pattern.contains(group));
    if !looks_around || !node.facts.accepts("pattern") {
        return Vec::new();
    }
    let (at, what) = (Pointer::of(["pattern"]), "a pattern that looks around");
    let violation = Violation::minded(level, "pattern", at, what);
    let mut steps = vec![Step::remove("pattern")];
    steps.extend(description_step(node.facts, node.schema, "pattern"));
    vec![violation.other(steps)]
}
