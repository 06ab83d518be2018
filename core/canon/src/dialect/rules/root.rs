use serde_json::{Value, json};
use toolwarden_model::json::Pointer;

use crate::dialect::node::{Node, Step, Violation};

/// Arguments are an object, and the root has to say so.
pub(super) fn object_at_the_root(node: Node<'_>) -> Vec<Violation> {
    if !node.is_root || node.schema.get("type").and_then(Value::as_str) == Some("object") {
        return Vec::new();
    }
    let violation = Violation::rejected(
        "root-type",
        Pointer::root(),
        "the root must say `\"type\": \"object\"`",
    );
    if node.schema.contains_key("type") {
        return vec![violation];
    }
    vec![violation.same(vec![Step::set("type", json!("object"))])]
}
