use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use toolwarden_mcp::ClientInfo;

/// How the gateway describes itself over its own link to a server: as a client that forwards server requests
/// to agents.
#[must_use]
pub fn gateway_client_info() -> ClientInfo {
    let capabilities = json!({"roots": {"listChanged": true}, "sampling": {}, "elicitation": {}});
    let info = json!({"name": "toolwarden", "version": env!("CARGO_PKG_VERSION")});
    ClientInfo {
        capabilities: raw(&capabilities).into(),
        info: raw(&info).into(),
    }
}

fn raw(value: &serde_json::Value) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_else(|_never| RawValue::NULL.to_owned())
}
