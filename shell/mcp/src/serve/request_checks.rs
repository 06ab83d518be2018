//! The checks of a stateless request, in the order in which they refuse it.

use std::borrow::Cow;

use serde_json::Value;
use serde_json::value::RawValue;
use toolwarden_model::json::RawObject;

use super::ReceivedHeader;
use crate::error_codes::{
    HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, MISSING_CAPABILITY,
    PARSE_ERROR, UNSUPPORTED_VERSION,
};
use crate::protocol::{
    CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, METHOD_HEADER, NAME_HEADER, PROTOCOL_VERSION,
    STATELESS_VERSION, VERSION_HEADER, decode_header, name_member,
};
use crate::rpc_message::RpcError;

/// How a stateless request describes its client.
#[derive(Debug, Clone)]
pub struct StatelessEnvelope {
    /// The protocol version, one that this server supports.
    pub version: String,
    /// The client's capabilities, byte for byte.
    pub capabilities: Box<RawValue>,
    /// The client's name and version, byte for byte.
    pub info: Option<Box<RawValue>>,
    /// The minimum level of log messages that the client wants.
    pub log_level: Option<String>,
}

/// Why a request is refused.
#[derive(Debug, Clone)]
pub struct RequestRefusal {
    /// The code of the JSON-RPC error.
    pub code: i64,
    /// Its text.
    pub message: String,
    /// Its data.
    pub data: Option<Box<RawValue>>,
    /// The HTTP status of the response.
    pub http_status: u16,
}

impl RequestRefusal {
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

impl From<RequestRefusal> for RpcError {
    fn from(refusal: RequestRefusal) -> Self {
        Self {
            code: refusal.code,
            message: refusal.message,
            data: refusal.data,
        }
    }
}

/// The HTTP status of a response with this error, regardless of which server produced it.
#[must_use]
pub fn http_status(code: i64) -> u16 {
    match code {
        PARSE_ERROR | INVALID_REQUEST | INVALID_PARAMS | HEADER_MISMATCH | MISSING_CAPABILITY
        | UNSUPPORTED_VERSION => 400,
        METHOD_NOT_FOUND => 404,
        _ => 200,
    }
}

/// Checks a request that arrived over HTTP. Headers are looked up by their lowercase names.
///
/// # Errors
/// The first check that fails: a duplicate header, the envelope in `_meta`, headers that disagree
/// with the body, the version.
pub fn check<'h>(
    method: &str,
    params: Option<&RawValue>,
    header: impl Fn(&str) -> ReceivedHeader<'h>,
) -> Result<StatelessEnvelope, RequestRefusal> {
    for name in [VERSION_HEADER, METHOD_HEADER, NAME_HEADER] {
        if header(name) == ReceivedHeader::Repeated {
            return Err(mismatch(format!("{name} header appears more than once")));
        }
    }
    let params = RawObject::parse_optional(params);
    let meta = require_meta(&params)?;
    let version = meta.text(PROTOCOL_VERSION);
    if !header_equals(header(VERSION_HEADER), version.as_deref()) {
        return Err(mismatch(format!(
            "{VERSION_HEADER} header does not match the request envelope's protocol version"
        )));
    }
    if !header_equals(header(METHOD_HEADER), Some(method)) {
        return Err(mismatch(format!(
            "{METHOD_HEADER} header does not match the request body's method"
        )));
    }
    if let Some(member) = name_member(method) {
        check_name(&params, member, header(NAME_HEADER))?;
    }
    parse_envelope(&meta)
}

/// Checks a request that arrived without headers.
///
/// # Errors
/// Like [`check`], without the header checks.
pub fn check_stdio_request(params: Option<&RawValue>) -> Result<StatelessEnvelope, RequestRefusal> {
    let params = RawObject::parse_optional(params);
    parse_envelope(&require_meta(&params)?)
}

/// The refusal of an unsupported version; it also applies to notifications.
#[must_use]
pub fn unsupported_version(version: &str) -> Option<RequestRefusal> {
    if version == STATELESS_VERSION {
        return None;
    }
    let requested = Value::from(version);
    let data = format!(r#"{{"supported":["{STATELESS_VERSION}"],"requested":{requested}}}"#);
    Some(RequestRefusal {
        data: RawValue::from_string(data).ok(),
        ..RequestRefusal::new(UNSUPPORTED_VERSION, "Unsupported protocol version")
    })
}

/// The `_meta` of a request, with its required members present.
fn require_meta<'p>(params: &'p RawObject<'_>) -> Result<RawObject<'p>, RequestRefusal> {
    let Some(meta) = params.object("_meta") else {
        return Err(RequestRefusal::new(
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
        Err(RequestRefusal::new(
            INVALID_PARAMS,
            format!("params._meta is missing the required envelope key(s): {keys}"),
        ))
    }
}

fn parse_envelope(meta: &RawObject<'_>) -> Result<StatelessEnvelope, RequestRefusal> {
    let Some(version) = meta.text(PROTOCOL_VERSION) else {
        // A value of the wrong type is not a version mismatch; reporting one would make clients
        // choose another version.
        return Err(RequestRefusal::new(
            INVALID_PARAMS,
            "the protocol-version envelope value must be a string",
        ));
    };
    if let Some(refusal) = unsupported_version(&version) {
        return Err(refusal);
    }
    Ok(StatelessEnvelope {
        version: version.into_owned(),
        capabilities: raw(meta, CLIENT_CAPABILITIES).unwrap_or_else(|| RawValue::NULL.to_owned()),
        info: raw(meta, CLIENT_INFO),
        log_level: meta.text(LOG_LEVEL).map(Cow::into_owned),
    })
}

/// An argument that is `null` or absent needs no header; the server itself refuses it.
fn check_name(
    params: &RawObject<'_>,
    member: &str,
    sent: ReceivedHeader<'_>,
) -> Result<(), RequestRefusal> {
    if params.get(member).is_none_or(|value| value == "null") {
        return Ok(());
    }
    let named = match sent {
        ReceivedHeader::Once(value) => decode_header(value),
        ReceivedHeader::Absent | ReceivedHeader::Unreadable | ReceivedHeader::Repeated => None,
    };
    if named.is_some() && named == params.text(member) {
        return Ok(());
    }
    Err(mismatch(format!(
        "{NAME_HEADER} header does not match the request body's `{member}` parameter"
    )))
}

fn header_equals(sent: ReceivedHeader<'_>, wanted: Option<&str>) -> bool {
    wanted.is_some_and(|wanted| sent == ReceivedHeader::Once(wanted))
}

fn raw(meta: &RawObject<'_>, key: &str) -> Option<Box<RawValue>> {
    RawValue::from_string(meta.get(key)?.to_owned()).ok()
}

fn mismatch(message: String) -> RequestRefusal {
    RequestRefusal::new(HEADER_MISMATCH, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    type Headers = [(&'static str, ReceivedHeader<'static>)];

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

    fn outcome_json(outcome: Result<StatelessEnvelope, RequestRefusal>) -> Value {
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
            Err(RequestRefusal {
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
                .map_or(ReceivedHeader::Absent, |(_, sent)| *sent)
        };
        outcome_json(check(method, params.as_deref(), lookup))
    }

    const GOOD: [(&str, ReceivedHeader<'static>); 3] = [
        (VERSION_HEADER, ReceivedHeader::Once("2026-07-28")),
        (METHOD_HEADER, ReceivedHeader::Once("tools/call")),
        (NAME_HEADER, ReceivedHeader::Once("=?base64?Z3LDtsOfZQ==?=")),
    ];

    fn good_but(
        name: &'static str,
        sent: ReceivedHeader<'static>,
    ) -> [(&'static str, ReceivedHeader<'static>); 3] {
        GOOD.map(|(header, good)| (header, if header == name { sent } else { good }))
    }

    #[test]
    fn a_good_request_passes() {
        let passed = json!(["2026-07-28", r#"{"roots":{}}"#, r#"{"name":"a"}"#, "info"]);
        let good = params(&json!("2026-07-28"));
        assert_eq!(over_http("tools/call", Some(&good), &GOOD), passed);
        assert_eq!(
            outcome_json(check_stdio_request(Some(&raw_of(&good)))),
            passed
        );
        // Other methods have no name, and clients need not identify themselves.
        let bare = json!({"_meta": {PROTOCOL_VERSION: "2026-07-28", CLIENT_CAPABILITIES: {}}});
        let headers = good_but(METHOD_HEADER, ReceivedHeader::Once("tools/list"));
        assert_eq!(
            over_http("tools/list", Some(&bare), &headers[..2]),
            json!(["2026-07-28", "{}", null, null])
        );
    }

    #[test]
    fn the_first_failure_is_reported() {
        let good = params(&json!("2026-07-28"));
        let name = "mcp-name header does not match the request body's `name` parameter";
        let version =
            "mcp-protocol-version header does not match the request envelope's protocol version";
        let method = "mcp-method header does not match the request body's method";
        for (header, sent, text) in [
            (
                VERSION_HEADER,
                ReceivedHeader::Repeated,
                "mcp-protocol-version header appears more than once",
            ),
            (
                NAME_HEADER,
                ReceivedHeader::Repeated,
                "mcp-name header appears more than once",
            ),
            (VERSION_HEADER, ReceivedHeader::Absent, version),
            (VERSION_HEADER, ReceivedHeader::Once("2025-11-25"), version),
            (METHOD_HEADER, ReceivedHeader::Once("tools/list"), method),
            (METHOD_HEADER, ReceivedHeader::Unreadable, method),
            (NAME_HEADER, ReceivedHeader::Once("x"), name),
            (NAME_HEADER, ReceivedHeader::Absent, name),
            (
                NAME_HEADER,
                ReceivedHeader::Once("=?base64?Z3LDtsOfZQ=?="),
                name,
            ),
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
        let old = good_but(VERSION_HEADER, ReceivedHeader::Once("2027-01-01"));
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
            outcome_json(check_stdio_request(Some(&raw_of(&params(&json!(7)))))),
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
