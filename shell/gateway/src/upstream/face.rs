use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use toolwarden_mcp::Face;

/// What the gateway says of itself over its own link to a server: that it passes on what servers may
/// ask of agents.
#[must_use]
pub fn main_face() -> Face {
    let capabilities = json!({"roots": {"listChanged": true}, "sampling": {}, "elicitation": {}});
    let info = json!({"name": "toolwarden", "version": env!("CARGO_PKG_VERSION")});
    Face {
        capabilities: raw(&capabilities).into(),
        info: raw(&info).into(),
    }
}

fn raw(value: &serde_json::Value) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_else(|_never| RawValue::NULL.to_owned())
}
