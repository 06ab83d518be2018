use serde_json::Value;
use toolwarden_model::json::to_canonical_string;
use toolwarden_model::reply::IdClass;

use crate::contract::arguments::ArgumentShape;
use crate::contract::tooldrift::finish_reason;
use crate::contract::trial::Measured;

/// What two replies have in common if they are of the same kind.
#[derive(Clone, Debug)]
pub(super) struct Signature {
    /// Equal for the same tools, paths, types, encoding, kind of id and reason to stop.
    pub(super) shape: String,
    /// Equal for the same tools and arguments.
    pub(super) arguments: String,
}

impl Signature {
    pub(super) fn of(reply: &Measured) -> Self {
        let mut shapes = Vec::new();
        let mut values = Vec::new();
        for call in &reply.calls {
            let mut shape = ArgumentShape::default();
            if let Some(value) = &call.value {
                shape.observe(value, &Value::Null);
            }
            let paths = shape.signature();
            let id = IdClass::of(call.id.as_ref());
            let class = call.class.as_str();
            shapes.push(format!("{}\n{class}\n{}\n{paths}", call.name, id.as_str()));
            let value = call.value.clone().map(Value::Object);
            let value = value.as_ref().map_or_else(String::new, to_canonical_string);
            values.push(format!("{}\n{value}", call.name));
        }
        // Parallel calls have no order.
        shapes.sort();
        values.sort();
        shapes.push(finish_reason(reply.finish.as_ref()));
        Self {
            shape: digest(&shapes),
            arguments: digest(&values),
        }
    }
}

fn digest(parts: &[String]) -> String {
    let parts = parts.iter().map(String::as_str);
    toolwarden_model::Fingerprint::tagged("toolwarden/reply/v1", parts).to_string()
}
