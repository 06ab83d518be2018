//! The checks of a request of the stateless era, in the order in which they refuse.

use std::borrow::Cow;

use serde_json::Value;
use serde_json::value::RawValue;

use super::Sent;
use crate::codes::{
    HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, MISSING_CAPABILITY,
    PARSE_ERROR, UNSUPPORTED_VERSION,
};
use crate::members::Members;
use crate::message::RpcError;
use crate::protocol::{
    CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, METHOD_HEADER, NAME_HEADER, PROTOCOL_VERSION,
    STATELESS_VERSION, VERSION_HEADER, decoded_header, name_member,
};

/// What a request of the stateless era says of its client.
#[derive(Debug, Clone)]
pub struct StatelessEnvelope {
    /// The protocol version, one that is served.
    pub version: String,
    /// The client's capabilities, byte for byte.
    pub capabilities: Box<RawValue>,
    /// The client's name and version, byte for byte.
    pub info: Option<Box<RawValue>>,
    /// From which level on the client wants to hear log messages.
    pub log_level: Option<String>,
}

/// Why a request is not served.
#[derive(Debug, Clone)]
pub struct Refusal {
    /// The code of the JSON-RPC error.
    pub code: i64,
    /// Its text.
    pub message: String,
    /// Its data.
    pub data: Option<Box<RawValue>>,
    /// The status of the HTTP answer.
    pub http_status: u16,
}

impl Refusal {
    /// A refusal without data.
    #[must_use]
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
            http_status: http_status(code),
        }
    }
}

impl From<Refusal> for RpcError {
    fn from(refusal: Refusal) -> Self {
        Self {
            code: refusal.code,
            message: refusal.message,
            data: refusal.data,
        }
    }
}

/// The status of an HTTP answer with this error, whoever made it.
#[must_use]
pub fn http_status(code: i64) -> u16 {
    match code {
        PARSE_ERROR | INVALID_REQUEST | INVALID_PARAMS | HEADER_MISMATCH | MISSING_CAPABILITY
        | UNSUPPORTED_VERSION => 400,
        METHOD_NOT_FOUND => 404,
        _ => 200,
    }
}

/// Checks a request that came over HTTP. Headers are looked up by their names in lower case.
///
/// # Errors
/// The first check that fails: a header that came twice, the envelope in `_meta`, headers that
/// disagree with the body, the version.
pub fn check<'h>(
    method: &str,
    params: Option<&RawValue>,
    header: impl Fn(&str) -> Sent<'h>,
) -> Result<StatelessEnvelope, Refusal> {
    for name in [VERSION_HEADER, METHOD_HEADER, NAME_HEADER] {
        if header(name) == Sent::Repeated {
            return Err(mismatch(format!("{name} header appears more than once")));
        }
    }
    let params = Members::of_optional(params);
    let meta = envelope(&params)?;
    let version = meta.text(PROTOCOL_VERSION);
    if !says(header(VERSION_HEADER), version.as_deref()) {
        return Err(mismatch(format!(
            "{VERSION_HEADER} header does not match the request envelope's protocol version"
        )));
    }
    if !says(header(METHOD_HEADER), Some(method)) {
        return Err(mismatch(format!(
            "{METHOD_HEADER} header does not match the request body's method"
        )));
    }
    if let Some(member) = name_member(method) {
        check_name(&params, member, header(NAME_HEADER))?;
    }
    read(&meta)
}

/// Checks a request that came without headers.
///
/// # Errors
/// As [`check`], without what concerns headers.
pub fn check_without_headers(params: Option<&RawValue>) -> Result<StatelessEnvelope, Refusal> {
    let params = Members::of_optional(params);
    read(&envelope(&params)?)
}

/// The refusal of a version that is not served; notifications are told as well.
#[must_use]
pub fn unsupported(version: &str) -> Option<Refusal> {
    if version == STATELESS_VERSION {
        return None;
    }
    let requested = Value::from(version);
    let data = format!(r#"{{"supported":["{STATELESS_VERSION}"],"requested":{requested}}}"#);
    Some(Refusal {
        data: RawValue::from_string(data).ok(),
        ..Refusal::new(UNSUPPORTED_VERSION, "Unsupported protocol version")
    })
}

/// The `_meta` of a request with the members that must be there.
fn envelope<'p>(params: &'p Members<'_>) -> Result<Members<'p>, Refusal> {
    let Some(meta) = params.object("_meta") else {
        return Err(Refusal::new(
            INVALID_PARAMS,
            format!(
                "params._meta must be an object carrying the required `{PROTOCOL_VERSION}` and `{CLIENT_CAPABILITIES}` envelope keys"
            ),
        ));
    };
    let mut missing = Vec::new();
    for key in [PROTOCOL_VERSION, CLIENT_CAPABILITIES] {
        if meta.get(key).is_none() {
            missing.push(key);
        }
    }
    if missing.is_empty() {
        Ok(meta)
    } else {
        let keys = missing.join(", ");
        Err(Refusal::new(
            INVALID_PARAMS,
            format!("params._meta is missing the required envelope key(s): {keys}"),
        ))
    }
}

fn read(meta: &Members<'_>) -> Result<StatelessEnvelope, Refusal> {
    let Some(version) = meta.text(PROTOCOL_VERSION) else {
        // A shape that is wrong is no question of versions, which would make clients choose another.
        return Err(Refusal::new(
            INVALID_PARAMS,
            "the protocol-version envelope value must be a string",
        ));
    };
    if let Some(refusal) = unsupported(&version) {
        return Err(refusal);
    }
    Ok(StatelessEnvelope {
        version: version.into_owned(),
        capabilities: raw(meta, CLIENT_CAPABILITIES).unwrap_or_else(|| RawValue::NULL.to_owned()),
        info: raw(meta, CLIENT_INFO),
        log_level: meta.text(LOG_LEVEL).map(Cow::into_owned),
    })
}

/// An argument that is `null` or absent needs no header; the server refuses it by itself.
fn check_name(params: &Members<'_>, member: &str, sent: Sent<'_>) -> Result<(), Refusal> {
    if params.get(member).is_none_or(|value| value == "null") {
        return Ok(());
    }
    let named = match sent {
        Sent::Once(value) => decoded_header(value),
        Sent::Absent | Sent::Unreadable | Sent::Repeated => None,
    };
    if named.is_some() && named == params.text(member) {
        return Ok(());
    }
    Err(mismatch(format!(
        "{NAME_HEADER} header does not match the request body's `{member}` parameter"
    )))
}

fn says(sent: Sent<'_>, wanted: Option<&str>) -> bool {
    wanted.is_some_and(|wanted| sent == Sent::Once(wanted))
}

fn raw(meta: &Members<'_>, key: &str) -> Option<Box<RawValue>> {
    RawValue::from_string(meta.get(key)?.to_owned()).ok()
}

fn mismatch(message: String) -> Refusal {
    Refusal::new(HEADER_MISMATCH, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    type Headers = [(&'static str, Sent<'static>)];

    fn params(version: &Value) -> Value {
        json!({"name": "größe", "_meta": {
            PROTOCOL_VERSION: version,
            CLIENT_CAPABILITIES: {"roots": {}},
            CLIENT_INFO: {"name": "a"},
            LOG_LEVEL: "info",
        }})
    }

    fn raw_of(value: &Value) -> Box<RawValue> {
        RawValue::from_string(value.to_string()).unwrap()
    }

    fn told(outcome: Result<StatelessEnvelope, Refusal>) -> Value {
        match outcome {
            Ok(StatelessEnvelope {
                version,
                capabilities,
                info,
                log_level,
            }) => json!([
                version,
                capabilities.get(),
                info.map(|info| info.get().to_owned()),
                log_level
            ]),
            Err(Refusal {
                code,
                message,
                data,
                http_status,
            }) => json!([
                code,
                message,
                data.map(|data| data.get().to_owned()),
                http_status
            ]),
        }
    }

    fn over_http(method: &str, params: Option<&Value>, headers: &Headers) -> Value {
        let params = params.map(raw_of);
        let lookup = |name: &str| {
            let mut all = headers.iter();
            all.find(|(header, _)| *header == name)
                .map_or(Sent::Absent, |(_, sent)| *sent)
        };
        told(check(method, params.as_deref(), lookup))
    }

    const GOOD: [(&str, Sent<'static>); 3] = [
        (VERSION_HEADER, Sent::Once("2026-07-28")),
        (METHOD_HEADER, Sent::Once("tools/call")),
        (NAME_HEADER, Sent::Once("=?base64?Z3LDtsOfZQ==?=")),
    ];

    fn good_but(name: &'static str, sent: Sent<'static>) -> [(&'static str, Sent<'static>); 3] {
        GOOD.map(|(header, good)| (header, if header == name { sent } else { good }))
    }

    #[test]
    fn a_good_request_passes() {
        let passed = json!(["2026-07-28", r#"{"roots":{}}"#, r#"{"name":"a"}"#, "info"]);
        let good = params(&json!("2026-07-28"));
        assert_eq!(over_http("tools/call", Some(&good), &GOOD), passed);
        assert_eq!(told(check_without_headers(Some(&raw_of(&good)))), passed);
        // Other methods have no name, and a client need not name itself.
        let bare = json!({"_meta": {PROTOCOL_VERSION: "2026-07-28", CLIENT_CAPABILITIES: {}}});
        let headers = good_but(METHOD_HEADER, Sent::Once("tools/list"));
        assert_eq!(
            over_http("tools/list", Some(&bare), &headers[..2]),
            json!(["2026-07-28", "{}", null, null])
        );
    }

    #[test]
    fn the_first_failure_is_told() {
        let good = params(&json!("2026-07-28"));
        let name = "mcp-name header does not match the request body's `name` parameter";
        let version =
            "mcp-protocol-version header does not match the request envelope's protocol version";
        let method = "mcp-method header does not match the request body's method";
        for (header, sent, text) in [
            (
                VERSION_HEADER,
                Sent::Repeated,
                "mcp-protocol-version header appears more than once",
            ),
            (
                NAME_HEADER,
                Sent::Repeated,
                "mcp-name header appears more than once",
            ),
            (VERSION_HEADER, Sent::Absent, version),
            (VERSION_HEADER, Sent::Once("2025-11-25"), version),
            (METHOD_HEADER, Sent::Once("tools/list"), method),
            (METHOD_HEADER, Sent::Unreadable, method),
            (NAME_HEADER, Sent::Once("x"), name),
            (NAME_HEADER, Sent::Absent, name),
            (NAME_HEADER, Sent::Once("=?base64?Z3LDtsOfZQ=?="), name),
        ] {
            assert_eq!(
                over_http("tools/call", Some(&good), &good_but(header, sent)),
                json!([-32020, text, null, 400]),
                "{header} {sent:?}"
            );
        }
    }

    #[test]
    fn envelopes_are_checked_before_headers() {
        assert_eq!(
            over_http("tools/call", None, &[]),
            json!([
                -32602,
                "params._meta must be an object carrying the required `io.modelcontextprotocol/protocolVersion` and `io.modelcontextprotocol/clientCapabilities` envelope keys",
                null,
                400
            ])
        );
        assert_eq!(
            over_http(
                "tools/call",
                Some(&json!({"_meta": {CLIENT_INFO: {}}})),
                &[]
            ),
            json!([
                -32602,
                "params._meta is missing the required envelope key(s): io.modelcontextprotocol/protocolVersion, io.modelcontextprotocol/clientCapabilities",
                null,
                400
            ])
        );
    }

    #[test]
    fn versions_are_checked_last() {
        let old = good_but(VERSION_HEADER, Sent::Once("2027-01-01"));
        assert_eq!(
            over_http("tools/call", Some(&params(&json!("2027-01-01"))), &old),
            json!([
                -32022,
                "Unsupported protocol version",
                r#"{"supported":["2026-07-28"],"requested":"2027-01-01"}"#,
                400
            ])
        );
        assert_eq!(
            told(check_without_headers(Some(&raw_of(&params(&json!(7)))))),
            json!([
                -32602,
                "the protocol-version envelope value must be a string",
                null,
                400
            ])
        );
    }

    #[test]
    fn statuses() {
        for (code, status) in [(-32700, 400), (-32601, 404), (-32603, 200), (-32002, 200)] {
            assert_eq!(http_status(code), status);
        }
    }
}
