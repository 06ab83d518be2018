use serde_json::Value;
use toolwarden_model::json::Pointer;

use super::keywords::description_step;
use crate::dialect::facts::FormatFacts;
use crate::dialect::violation::{SchemaContext, SchemaEdit, Violation};

/// A `format` the dialect does not know.
pub(super) fn format(node: SchemaContext<'_>) -> Vec<Violation> {
    let FormatFacts { known, others } = node.facts.formats;
    let (Some(level), Some(Value::String(format))) =
        (others.finding_level(), node.schema.get("format"))
    else {
        return Vec::new();
    };
    if known.contains(&format.as_str()) || !node.facts.accepts("format") {
        return Vec::new();
    }
    let what = format!("the format `{format}`");
    let violation = Violation::with_level(level, "format", Pointer::of(["format"]), &what);
    let mut steps = vec![SchemaEdit::remove("format")];
    steps.extend(description_step(node.facts, node.schema, "format"));
    vec![violation.with_semantic_remedy(steps)]
}

/// A pattern that uses lookaround.
pub(super) fn pattern(node: SchemaContext<'_>) -> Vec<Violation> {
    let (Some(level), Some(Value::String(pattern))) = (
        node.facts.lookaround.finding_level(),
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
    let violation = Violation::with_level(level, "pattern", at, what);
    let mut steps = vec![SchemaEdit::remove("pattern")];
    steps.extend(description_step(node.facts, node.schema, "pattern"));
    vec![violation.with_semantic_remedy(steps)]
}
