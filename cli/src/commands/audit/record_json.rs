//! A record as JSON, from which its hash can be computed.

use serde::Serialize;
use serde_json::value::RawValue;
use toolwarden_store::RecordRow;

#[derive(Serialize)]
struct RecordJson<'r> {
    seq: u64,
    at: String,
    kind: &'r str,
    principal: Option<&'r str>,
    tool: Option<&'r str>,
    session: Option<&'r str>,
    code: &'r str,
    allowed: Option<bool>,
    // INVARIANT: body and hash come last, so that the text of the body can be cut out of the line.
    body: Body<'r>,
    hash: String,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Body<'r> {
    /// As it is kept, byte for byte.
    Object(&'r RawValue),
    /// A body that is not exactly one line of JSON: another program wrote it.
    Text(&'r str),
}

/// One line, without its end.
pub(super) fn line(row: &RecordRow<'_>) -> Result<String, serde_json::Error> {
    serde_json::to_string(&RecordJson {
        seq: row.seq,
        at: time(row.at_ms),
        kind: row.kind,
        principal: row.principal,
        tool: row.tool,
        session: row.session,
        code: row.code,
        allowed: row.allowed,
        body: body(row.body),
        hash: row.hash.to_string(),
    })
}

/// A time with milliseconds; the number itself where there is no such year.
pub(super) fn time(at_ms: i64) -> String {
    let time = jiff::Timestamp::from_millisecond(at_ms);
    time.map_or_else(|_| at_ms.to_string(), |time| format!("{time:.3}"))
}

fn body(text: &str) -> Body<'_> {
    let one_line = text.starts_with('{') && !text.contains(['\n', '\r']);
    let raw: Option<&RawValue> = one_line.then(|| serde_json::from_str(text).ok()).flatten();
    // White space around it is not part of a raw value, and yet of what was hashed.
    match raw.filter(|raw| raw.get() == text) {
        Some(raw) => Body::Object(raw),
        None => Body::Text(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolwarden_model::Fingerprint;

    fn line_of_body(body: &str) -> String {
        let row = RecordRow {
            seq: 7,
            at_ms: 1_790_000_000_123,
            kind: "decision",
            principal: Some("a\"b\n"),
            tool: None,
            session: None,
            code: "allowed",
            allowed: Some(true),
            body,
            hash: Fingerprint::from_bytes([0; 32]),
        };
        line(&row).unwrap()
    }

    #[test]
    fn the_body_is_verbatim_unless_it_is_no_object() {
        let zeros = "0".repeat(64);
        let around = |body: &str| {
            format!(
                r#"{{"seq":7,"at":"2026-09-21T14:13:20.123Z","kind":"decision","principal":"a\"b\n","tool":null,"session":null,"code":"allowed","allowed":true,"body":{body},"hash":"{zeros}"}}"#
            )
        };
        for body in ["{}", r#"{"n":1.50,"big":123456789012345678901234567890}"#] {
            assert_eq!(line_of_body(body), around(body));
        }
        assert_eq!(line_of_body("[1]"), around(r#""[1]""#));
        assert_eq!(line_of_body("{} "), around(r#""{} ""#));
        assert_eq!(line_of_body("{\n}"), around(r#""{\n}""#));
        assert_eq!(line_of_body("{\"a\""), around(r#""{\"a\"""#));
    }

    #[test]
    fn times_outside_the_calendar_are_numbers() {
        assert_eq!(time(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(time(i64::MAX), i64::MAX.to_string());
    }
}
