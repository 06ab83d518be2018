use serde_json::{Value, json};
use toolwarden_model::reply::{Mode, Wire};

use crate::capture::Capture;
use crate::exchange::{Exchange, Recorded, SentRequest};
use crate::run::TrialKey;

/// One recorded answer, and what it was the answer to.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// The provider that answered.
    pub(super) provider: String,
    /// Which trial it belongs to, as a run tells it.
    pub(super) trial: Option<String>,
    /// The model that was asked for.
    pub(super) model: String,
    pub(super) exchange: Exchange,
    /// A fixture is no measurement of anything but the reply, and answers again and again.
    is_fixture: bool,
}

impl Recording {
    /// All answers of a capture.
    #[must_use]
    pub fn of_capture(capture: &Capture) -> Vec<Self> {
        let exchanges = capture.exchanges.iter().map(|(key, exchange)| Self {
            provider: capture.provider.clone(),
            trial: Some(trial_of(key)),
            model: capture.model_id.clone(),
            exchange: exchange.clone(),
            is_fixture: false,
        });
        exchanges.collect()
    }

    /// A body that answers every request for a provider's model on a wire.
    #[must_use]
    pub fn fixture(provider: &str, wire: Wire, mode: Mode, model: &str, body: &[u8]) -> Self {
        let url_path = match (wire, mode) {
            (Wire::OpenaiChat, _) => "/chat/completions".to_owned(),
            (Wire::OpenaiResponses, _) => "/responses".to_owned(),
            (Wire::Anthropic, _) => "/messages".to_owned(),
            (Wire::Gemini, Mode::Nonstream) => format!("/models/{model}:generateContent"),
            (Wire::Gemini, Mode::Stream) => {
                format!("/models/{model}:streamGenerateContent?alt=sse")
            }
        };
        let content_type = match mode {
            Mode::Nonstream => "application/json",
            Mode::Stream => "text/event-stream",
        };
        Self {
            provider: provider.to_owned(),
            trial: None,
            model: model.to_owned(),
            exchange: Exchange {
                request: SentRequest {
                    method: "POST".to_owned(),
                    url_path,
                    headers: Vec::new(),
                    body: json!({"model": model, "stream": mode == Mode::Stream}),
                },
                status: Some(200),
                headers: vec![("content-type".to_owned(), content_type.to_owned())],
                body: body.to_vec(),
                headers_ms: None,
                first_event_ms: None,
                total_ms: 0.0,
                failure: None,
            },
            is_fixture: true,
        }
    }

    /// Whether the answer came as events.
    pub(super) fn is_stream(&self) -> bool {
        let content_type = self.exchange.header("content-type");
        content_type.is_some_and(|it| it.starts_with("text/event-stream"))
    }

    /// Whether the request was for a stream.
    pub(super) fn wants_stream(&self) -> bool {
        wants_stream(&self.exchange.request.url_path, &self.exchange.request.body)
    }

    /// What was measured when it was recorded, as a header tells it.
    pub(super) fn recorded(&self) -> Option<String> {
        if self.is_fixture {
            return None;
        }
        let exchange = &self.exchange;
        let failure = exchange.failure.as_ref();
        let recorded = Recorded {
            status: exchange.status,
            headers_ms: exchange.headers_ms,
            first_event_ms: exchange.first_event_ms,
            total_ms: exchange.total_ms,
            failure: failure.map(|it| (it.failure.as_str().to_owned(), it.detail.clone())),
        };
        let text = serde_json::to_string(&recorded).ok()?;
        Some(in_ascii(&text))
    }
}

/// A trial as a run tells it.
fn trial_of(key: &TrialKey) -> String {
    format!("{}/{}/{}", key.mode.as_str(), key.repetition, key.attempt)
}

/// Whether a request is for a stream.
pub(super) fn wants_stream(path: &str, body: &Value) -> bool {
    body.get("stream") == Some(&Value::Bool(true)) || path.contains(":streamGenerateContent")
}

/// JSON that a header can hold.
fn in_ascii(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for unit in json.encode_utf16() {
        match u8::try_from(unit) {
            Ok(byte @ b' '..=b'~') => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\u{unit:04x}")),
        }
    }
    out
}
