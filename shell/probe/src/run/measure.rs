use serde_json::Value;
use toolwarden_canon::RenamedTool;
use toolwarden_canon::reply::{self, Limits};
use toolwarden_drift::contract::Measured;
use toolwarden_model::reply::{Mode, NotMeasured, Wire};

use crate::exchange::Exchange;
use crate::observe::Observer;
use crate::secret::Redactor;

/// How much of an error is told.
const TOLD: usize = 300;

/// How a reply is to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading<'a> {
    pub(super) wire: Wire,
    pub(super) mode: Mode,
    pub(super) observer: &'a Observer,
    /// The tools that go by another name on the wire.
    pub(super) renamed: &'a [RenamedTool],
    pub(super) redactor: Option<&'a Redactor>,
}

/// What an exchange says about the model.
pub(super) fn of_exchange(
    exchange: &Exchange,
    reading: &Reading<'_>,
) -> Result<Measured, NotMeasured> {
    if let Some(failure) = &exchange.failure {
        return Err(failure.clone());
    }
    let status = exchange.status.unwrap_or_default();
    if !(200..300).contains(&status) {
        return Err(NotMeasured {
            failure: reply::refusal(status, &exchange.body),
            detail: told_by_status(status, &exchange.body),
        });
    }
    measured(&exchange.body, reading)
}

/// What the body of a success says about the model.
pub(super) fn measured(body: &[u8], reading: &Reading<'_>) -> Result<Measured, NotMeasured> {
    let redactor = reading.redactor;
    // Whoever received the body has bounded it.
    let limits = Limits {
        body_bytes: body.len().max(Limits::default().body_bytes),
        ..Limits::default()
    };
    match reply::read(reading.wire, reading.mode, body, &limits) {
        Ok(reply) => Ok(reading.observer.observe(reply, reading.renamed, redactor)),
        Err(failure) => Err(match redactor {
            Some(redactor) => NotMeasured {
                detail: redactor.redact_text(&failure.detail),
                ..failure
            },
            None => failure,
        }),
    }
}

/// A status with the provider's own words, on one line.
fn told_by_status(status: u16, body: &[u8]) -> String {
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
    fn a_status_is_told_in_the_providers_words() {
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
            assert_eq!(told_by_status(429, body.as_bytes()), told);
        }
        let long = told_by_status(500, "é".repeat(2_000).as_bytes());
        assert_eq!(long, format!("HTTP 500: {}…", "é".repeat(300)));
    }
}
