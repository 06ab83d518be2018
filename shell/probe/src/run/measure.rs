use serde_json::Value;
use toolwarden_canon::RenamedTool;
use toolwarden_canon::client_behaviour::{HttpReply, judge};
use toolwarden_canon::reply::{self, ReplyLimits};
use toolwarden_model::reply::{NotMeasured, StreamMode, WireApi};
use toolwarden_trials::MeasuredReply;

use crate::exchange::Exchange;
use crate::reply_observer::ReplyObserver;
use crate::secret::Redactor;

/// The maximum length of a reported error.
const TOLD: usize = 300;

/// How to read a reply.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplyContext<'a> {
    pub(super) wire: WireApi,
    pub(super) mode: StreamMode,
    pub(super) observer: &'a ReplyObserver,
    /// The tools that were renamed on the wire.
    pub(super) renamed: &'a [RenamedTool],
    pub(super) redactor: Option<&'a Redactor>,
}

/// Evaluates an exchange.
pub(super) fn measure_exchange(
    exchange: &Exchange,
    reading: &ReplyContext<'_>,
) -> Result<MeasuredReply, NotMeasured> {
    if let Some(failure) = &exchange.failure {
        return Err(failure.clone());
    }
    let status = exchange.status.unwrap_or_default();
    if !(200..300).contains(&status) {
        return Err(NotMeasured {
            failure: reply::classify_refusal(status, &exchange.body),
            detail: status_message(status, &exchange.body),
        });
    }
    let content_type = exchange.header("content-type").unwrap_or_default();
    measure_body(content_type, &exchange.body, reading)
}

/// Evaluates the body of a successful response.
pub(super) fn measure_body(
    content_type: &str,
    body: &[u8],
    reading: &ReplyContext<'_>,
) -> Result<MeasuredReply, NotMeasured> {
    let redactor = reading.redactor;
    // The code that received the body has already limited its size.
    let limits = ReplyLimits {
        body_bytes: body.len().max(ReplyLimits::default().body_bytes),
        ..ReplyLimits::default()
    };
    match reply::read(reading.wire, reading.mode, body, &limits) {
        Ok(reply) => {
            let response = HttpReply { content_type, body };
            let findings = judge(reading.wire, reading.mode, response, &reply);
            let mut measured = reading.observer.observe(reply, reading.renamed, redactor);
            let notes = findings.iter().map(|it| {
                let message = it.message();
                let message = redactor.map_or(message.clone(), |by| by.redact_text(&message));
                (it.rule(), String::new(), message)
            });
            measured.notes.extend(notes);
            Ok(measured)
        }
        Err(failure) => Err(match redactor {
            Some(redactor) => NotMeasured {
                detail: redactor.redact_text(&failure.detail),
                ..failure
            },
            None => failure,
        }),
    }
}

/// A status with the provider's own message, on one line.
fn status_message(status: u16, body: &[u8]) -> String {
    let document: Value = serde_json::from_slice(body).unwrap_or_default();
    let places = [
        "/error/message",
        "/message",
        "/error",
        "/detail",
        "/0/error/message",
    ];
    let message = places.iter().find_map(|it| document.pointer(it)?.as_str());
    let head = body.get(..TOLD * 4).unwrap_or(body);
    let whole = String::from_utf8_lossy(head);
    let text = message.unwrap_or(&whole);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let clean = words
        .chars()
        .map(|it| if it.is_control() { '\u{fffd}' } else { it });
    let mut told: String = clean.take(TOLD).collect();
    if words.chars().nth(TOLD).is_some() {
        told.push('…');
    }
    if told.is_empty() {
        format!("HTTP {status}")
    } else {
        format!("HTTP {status}: {told}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_message_quotes_the_provider() {
        for (body, told) in [
            (r#"{"error":{"message":"too\nmany"}}"#, "HTTP 429: too many"),
            (r#"{"error":"slow down"}"#, "HTTP 429: slow down"),
            (r#"[{"error":{"message":"quota"}}]"#, "HTTP 429: quota"),
            (
                "<html>\u{1b}[31mno</html>",
                "HTTP 429: <html>\u{fffd}[31mno</html>",
            ),
            ("", "HTTP 429"),
        ] {
            assert_eq!(status_message(429, body.as_bytes()), told);
        }
        let long = status_message(500, "é".repeat(2_000).as_bytes());
        assert_eq!(long, format!("HTTP 500: {}…", "é".repeat(300)));
    }
}
