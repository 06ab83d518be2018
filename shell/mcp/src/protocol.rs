//! Names and versions fixed by the MCP specification.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

/// The two ways the protocol opens a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// `initialize` first, then a session: 2024-11-05 to 2025-11-25.
    Handshake,
    /// Every request describes the client itself: 2026-07-28.
    Stateless,
}

/// Versions reached by `initialize`, oldest first. The first is a draft that early servers speak.
pub(crate) const HANDSHAKE_VERSIONS: [&str; 5] = [
    "2024-10-07",
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
];
/// The version offered by `initialize`.
pub(crate) const NEWEST_HANDSHAKE_VERSION: &str = "2025-11-25";
/// The only version of the stateless era so far.
pub(crate) const STATELESS_VERSION: &str = "2026-07-28";

const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

pub(crate) const SESSION_HEADER: &str = "mcp-session-id";
pub(crate) const VERSION_HEADER: &str = "mcp-protocol-version";
pub(crate) const METHOD_HEADER: &str = "mcp-method";
pub(crate) const NAME_HEADER: &str = "mcp-name";
/// Start of the headers that repeat single arguments.
pub(crate) const PARAM_HEADER_PREFIX: &str = "mcp-param-";

/// How this client names itself.
pub(crate) fn client_info() -> Value {
    json!({"name": "toolwarden", "version": env!("CARGO_PKG_VERSION")})
}

/// Adds what every stateless request says about the client to its `_meta`.
pub(crate) fn stamp_meta(params: &mut Map<String, Value>) {
    let meta = params.entry("_meta").or_insert_with(|| json!({}));
    // A `_meta` that is no object would be refused by every server, so it is replaced.
    if !meta.is_object() {
        *meta = json!({});
    }
    if let Value::Object(meta) = meta {
        meta.insert(PROTOCOL_VERSION.to_owned(), json!(STATELESS_VERSION));
        meta.insert(CLIENT_INFO.to_owned(), client_info());
        meta.insert(CLIENT_CAPABILITIES.to_owned(), json!({}));
    }
}

/// The member of the parameters that the `Mcp-Name` header repeats.
pub(crate) fn name_member(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        _ => None,
    }
}

/// A text as a header value: itself if it survives there, else wrapped in base64.
pub(crate) fn header_value(text: &str) -> String {
    let printable = text.bytes().all(|byte| (0x20..=0x7e).contains(&byte));
    let wrapped = text.starts_with("=?base64?") && text.ends_with("?=");
    if printable && text.trim() == text && !wrapped {
        text.to_owned()
    } else {
        format!("=?base64?{}?=", STANDARD.encode(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_values_survive() {
        assert_eq!(header_value("get_time"), "get_time");
        assert_eq!(header_value("größe"), "=?base64?Z3LDtsOfZQ==?=");
        assert_eq!(header_value(" a"), "=?base64?IGE=?=");
        assert_eq!(
            header_value("=?base64?eA==?="),
            "=?base64?PT9iYXNlNjQ/ZUE9PT89?="
        );
    }
}
