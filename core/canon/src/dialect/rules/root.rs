use serde_json::{Value, json};
use toolwarden_model::json::Pointer;

use crate::dialect::facts::Taken;
use crate::dialect::lint::Level;
use crate::dialect::node::{Node, Step, Violation};

/// Arguments are an object, and the root has to say so.
pub(super) fn object_at_the_root(node: Node<'_>) -> Vec<Violation> {
    if !node.is_root || node.schema.get("type").and_then(Value::as_str) == Some("object") {
        return Vec::new();
    }
    let message = "the root must say `\"type\": \"object\"`";
    let violation = Violation::rejected("root-type", Pointer::root(), message);
    if node.schema.contains_key("type") {
        return vec![violation];
    }
    match node.facts.untyped_root {
        Taken::Honoured => return Vec::new(),
        Taken::Ignored => {
            let what = "a schema without a type at the root";
            let at = Pointer::root();
            return vec![Violation::minded(Level::Ignored, "root-type", at, what)];
        }
        Taken::Refused => {}
    }
    vec![violation.same(vec![Step::set("type", json!("object"))])]
}
