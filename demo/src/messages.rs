//! Serializes messages and results.

use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolwarden_mcp::Era;

/// Why a request is not answered with a result.
#[derive(Clone, Debug)]
pub(super) struct DemoError {
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Option<Value>,
}

macro_rules! info {
    () => {
        concat!(
            r#"{"name":"toolwarden-demo-shop","title":"A small shop","version":""#,
            env!("CARGO_PKG_VERSION"),
            r#"","x-shop":{"region":"eu"}}"#
        )
    };
}

/// The server's description of itself.
pub(super) const INFO: &str = info!();
/// The last members of a result of the stateless era.
const META: &str = concat!(
    r#""_meta":{"io.modelcontextprotocol/serverInfo":"#,
    info!(),
    "}"
);

impl DemoError {
    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(-32602, message)
    }

    pub(super) fn unknown_method(method: &str) -> Self {
        Self::new(-32601, format!("method `{method}` is not offered"))
    }

    pub(super) fn unsupported_version(requested: &str, supported: &[&str]) -> Self {
        Self {
            code: -32022,
            message: "the protocol version is not supported".to_owned(),
            data: Some(json!({"supported": supported, "requested": requested})),
        }
    }

    /// The HTTP status that the stateless era gives a refusal.
    pub(super) fn status(&self) -> u16 {
        match self.code {
            -32700 | -32600 | -32602 | -32020 | -32021 | -32022 => 400,
            -32601 => 404,
            _ => 200,
        }
    }
}

/// A whole result from its members, which have no braces.
pub(super) fn complete_result(era: Era, members: &str) -> String {
    match era {
        Era::Handshake => format!("{{{members}}}"),
        Era::Stateless => {
            let comma = if members.is_empty() { "" } else { "," };
            format!(r#"{{{members}{comma}"resultType":"complete",{META}}}"#)
        }
    }
}

/// Like [`complete`], for results that the client may cache.
pub(super) fn cacheable_result(era: Era, members: &str) -> String {
    match era {
        Era::Handshake => complete_result(era, members),
        Era::Stateless => complete_result(
            era,
            &format!(r#"{members},"ttlMs":60000,"cacheScope":"public""#),
        ),
    }
}

/// A result that asks for input first; only the stateless era has it.
pub(super) fn input_required(requests: &Value, request_state: &str) -> String {
    let state = Value::from(request_state);
    format!(
        r#"{{"resultType":"input_required","inputRequests":{requests},"requestState":{state},{META}}}"#
    )
}

/// The answer to a request.
pub(super) fn response(id: &RawValue, outcome: &Result<String, DemoError>) -> String {
    let id = id.get();
    match outcome {
        Ok(result) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#),
        Err(DemoError {
            code,
            message,
            data,
        }) => {
            let message = Value::from(message.as_str());
            let data = match data {
                Some(data) => format!(r#","data":{data}"#),
                None => String::new(),
            };
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{message}{data}}}}}"#
            )
        }
    }
}

/// A notification.
pub(super) fn notification(method: &str, params: &Value) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
}

/// A request of the server.
pub(super) fn request(id: i64, method: &str, params: &Value) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}
