//! Names and versions defined by the MCP specification.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;
use toolwarden_model::json::RawObject;

use crate::client_info::ClientInfo;

/// The two ways the protocol opens a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// `initialize` first, then a session: 2024-11-05 to 2025-11-25.
    Handshake,
    /// Every request describes the client itself: 2026-07-28.
    Stateless,
}

/// Which era to use for a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EraPreference {
    /// The stateless era where the server speaks it, else the handshake era.
    #[default]
    Newest,
    /// The handshake era where the server speaks it, else the stateless era.
    Handshake,
    /// One era; a server that does not speak it is refused.
    Only(Era),
}

/// Versions negotiated by `initialize`, oldest first. The first is a draft that early servers
/// speak.
pub(crate) const HANDSHAKE_VERSIONS: [&str; 5] = [
    "2024-10-07",
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
];
/// The version offered by `initialize`.
pub const NEWEST_HANDSHAKE_VERSION: &str = "2025-11-25";
/// The only version of the stateless era so far.
pub const STATELESS_VERSION: &str = "2026-07-28";

/// The member of `_meta` that names the version of a stateless request.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The member of `_meta` with the client's name and version.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// The member of `_meta` with the client's capabilities.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The member of `_meta` that requests log messages from a minimum level.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// The header that names a session of the handshake era.
pub const SESSION_HEADER: &str = "mcp-session-id";
/// The header that names the protocol version.
pub const VERSION_HEADER: &str = "mcp-protocol-version";
/// The header that repeats the method of a stateless request.
pub const METHOD_HEADER: &str = "mcp-method";
/// The header that repeats the name a stateless request is about.
pub const NAME_HEADER: &str = "mcp-name";
/// Start of the headers that repeat single arguments.
pub const PARAM_HEADER_PREFIX: &str = "mcp-param-";

/// The parameters, with the client's description that every stateless request carries in `_meta`.
#[must_use]
pub fn with_client_meta(params: Option<&RawValue>, client_info: &ClientInfo) -> Box<RawValue> {
    let mut members = RawObject::parse_optional(params);
    // Every server would refuse a `_meta` that is not an object, so it is replaced.
    let mut meta = members.object("_meta").unwrap_or_default();
    meta.set(PROTOCOL_VERSION, format!("\"{STATELESS_VERSION}\""));
    meta.set(CLIENT_INFO, client_info.info.get());
    meta.set(CLIENT_CAPABILITIES, client_info.capabilities.get());
    let meta = meta.to_string();
    members.set("_meta", meta);
    members.to_raw()
}

/// The parameters without the client's description of a stateless request. All other text stays
/// byte for byte.
#[must_use]
pub fn without_client_meta(params: &RawValue) -> Cow<'_, RawValue> {
    let Ok(mut members) = RawObject::parse(params) else {
        return Cow::Borrowed(params);
    };
    let Some(mut meta) = members.object("_meta") else {
        return Cow::Borrowed(params);
    };
    let reserved = [
        PROTOCOL_VERSION,
        CLIENT_INFO,
        CLIENT_CAPABILITIES,
        LOG_LEVEL,
    ];
    if reserved.iter().all(|key| meta.get(key).is_none()) {
        return Cow::Borrowed(params);
    }
    meta.retain(|key| !reserved.contains(&key));
    let rest = (!meta.is_empty()).then(|| meta.to_string());
    match rest {
        Some(rest) => members.set("_meta", rest),
        None => members.remove("_meta"),
    }
    Cow::Owned(members.to_raw())
}

/// The member of the parameters that the `Mcp-Name` header repeats.
#[must_use]
pub fn name_member(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        // The tasks extension.
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    }
}

/// A text as a header value: unchanged if the header can carry it, else wrapped in base64.
#[must_use]
pub fn encode_header(text: &str) -> Cow<'_, str> {
    let printable = text.bytes().all(|byte| (0x20..=0x7e).contains(&byte));
    if printable && text.trim() == text && base64_payload(text).is_none() {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("=?base64?{}?=", STANDARD.encode(text)))
    }
}

/// The text of a header value; `None` if its base64 is invalid.
#[must_use]
pub fn decode_header(value: &str) -> Option<Cow<'_, str>> {
    let Some(payload) = base64_payload(value) else {
        return Some(Cow::Borrowed(value));
    };
    // The decoder accepts only the form that the encoder writes.
    let bytes = STANDARD.decode(payload).ok()?;
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

fn base64_payload(value: &str) -> Option<&str> {
    value.strip_prefix("=?base64?")?.strip_suffix("?=")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn header_values_survive() {
        for (text, value) in [
            ("get_time", "get_time"),
            ("größe", "=?base64?Z3LDtsOfZQ==?="),
            (" a", "=?base64?IGE=?="),
            ("=?base64?eA==?=", "=?base64?PT9iYXNlNjQ/ZUE9PT89?="),
        ] {
            assert_eq!(encode_header(text), value);
            assert_eq!(decode_header(value).as_deref(), Some(text));
        }
        for unreadable in [
            "=?base64?eB==?=",
            "=?base64?eA?=",
            "=?base64?/w==?=",
            "=?base64?é?=",
        ] {
            assert_eq!(decode_header(unreadable), None, "{unreadable}");
        }
    }

    #[test]
    fn client_meta_is_added_and_removed() {
        let client_info = ClientInfo {
            capabilities: raw(r#"{ "roots":{}}"#).into(),
            info: raw(r#"{"name":"a"}"#).into(),
        };
        let stamp = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"a"},"io.modelcontextprotocol/clientCapabilities":{ "roots":{}}"#;
        let check = |params: &str, stamped_text: String, back: &str| {
            let stamped = with_client_meta(Some(&raw(params)), &client_info);
            assert_eq!(stamped.get(), stamped_text);
            assert_eq!(without_client_meta(&stamped).get(), back);
        };
        check(
            r#"{"n":1.0,"_meta":{"progressToken": "x" }}"#,
            format!(r#"{{"n":1.0,"_meta":{{"progressToken":"x",{stamp}}}}}"#),
            r#"{"n":1.0,"_meta":{"progressToken":"x"}}"#,
        );
        check("{}", format!(r#"{{"_meta":{{{stamp}}}}}"#), "{}");
        check(
            r#"{"_meta":7,"a":[ ]}"#,
            format!(r#"{{"_meta":{{{stamp}}},"a":[ ]}}"#),
            r#"{"a":[ ]}"#,
        );
        assert_eq!(
            with_client_meta(None, &client_info).get(),
            format!(r#"{{"_meta":{{{stamp}}}}}"#)
        );
        // A new stamp replaces the old one, and unstamped parameters stay unchanged.
        let twice = with_client_meta(
            Some(&with_client_meta(None, &ClientInfo::default())),
            &client_info,
        );
        assert_eq!(without_client_meta(&twice).get(), "{}");
        for untouched in [r#"{ "a" : 1 }"#, r#"{ "_meta" : { "x" : 1 } }"#, "[ 1 ]"] {
            let params = raw(untouched);
            assert!(
                matches!(without_client_meta(&params), Cow::Borrowed(same) if same.get() == untouched)
            );
        }
    }
}
