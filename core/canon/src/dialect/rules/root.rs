use serde_json::{Value, json};
use toolwarden_model::json::Pointer;

use crate::dialect::facts::KeywordSupport;
use crate::dialect::lint::DialectLevel;
use crate::dialect::violation::{SchemaContext, SchemaEdit, Violation};

/// Arguments are an object, and the root has to say so.
pub(super) fn object_at_the_root(node: SchemaContext<'_>) -> Vec<Violation> {
    if !node.is_root || node.schema.get("type").and_then(Value::as_str) == Some("object") {
        return Vec::new();
    }
    let message = "the root must say `\"type\": \"object\"`";
    let violation = Violation::rejected("root-type", Pointer::root(), message);
    if node.schema.contains_key("type") {
        return vec![violation];
    }
    match node.facts.untyped_root {
        KeywordSupport::Supported => return Vec::new(),
        KeywordSupport::Ignored => {
            let what = "a schema without a type at the root";
            let at = Pointer::root();
            return vec![Violation::with_level(
                DialectLevel::Ignored,
                "root-type",
                at,
                what,
            )];
        }
        KeywordSupport::Refused => {}
    }
    vec![violation.with_equivalent_remedy(vec![SchemaEdit::set("type", json!("object"))])]
}
