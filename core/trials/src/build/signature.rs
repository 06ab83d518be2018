use serde_json::Value;
use toolwarden_model::json::to_canonical_string;
use toolwarden_model::reply::CallIdClass;

use crate::argument_shape::ArgumentShape;
use crate::tooldrift::finish_reason;
use crate::trial::MeasuredReply;

/// What two replies of the same kind have in common.
#[derive(Clone, Debug)]
pub(super) struct ReplySignature {
    /// Equal for the same tools, paths, types, encoding, kind of id and finish reason.
    pub(super) shape: String,
    /// Equal for the same tools and arguments.
    pub(super) arguments: String,
}

impl ReplySignature {
    pub(super) fn of(reply: &MeasuredReply) -> Self {
        let mut shapes = Vec::new();
        let mut values = Vec::new();
        for call in &reply.calls {
            let mut shape = ArgumentShape::default();
            if let Some(value) = &call.value {
                shape.observe(value, &Value::Null);
            }
            let paths = shape.signature();
            let id = CallIdClass::of(call.id.as_ref());
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
