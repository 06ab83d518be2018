use serde_json::{Value, json};
use toolwarden_model::reply::{StreamMode, WireApi};

use crate::capture::Capture;
use crate::exchange::{Exchange, RecordedMeasurement, SentRequest};
use crate::run::TrialKey;

/// One recorded response and its request.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedExchange {
    /// The provider that sent the response.
    pub(super) provider: String,
    /// The trial it belongs to, in the form that a run sends.
    pub(super) trial: Option<String>,
    /// The requested model.
    pub(super) model: String,
    pub(super) exchange: Exchange,
    /// A fixture measures nothing but the reply. Other clients than our runs get it any number of times.
    is_fixture: bool,
}

impl RecordedExchange {
    /// All responses of a capture.
    #[must_use]
    pub fn from_capture(capture: &Capture) -> Vec<Self> {
        let exchanges = capture.exchanges.iter().map(|(key, exchange)| Self {
            provider: capture.provider.clone(),
            trial: Some(trial_header(key)),
            model: capture.model_id.clone(),
            exchange: exchange.clone(),
            is_fixture: false,
        });
        exchanges.collect()
    }

    /// A body that answers every request for a provider's model on a wire.
    #[must_use]
    pub fn from_fixture(
        provider: &str,
        wire: WireApi,
        mode: StreamMode,
        model: &str,
        body: &[u8],
    ) -> Self {
        let url_path = match (wire, mode) {
            (WireApi::OpenaiChat, _) => "/chat/completions".to_owned(),
            (WireApi::OpenaiResponses, _) => "/responses".to_owned(),
            (WireApi::Anthropic, _) => "/messages".to_owned(),
            (WireApi::Gemini, StreamMode::Nonstream) => format!("/models/{model}:generateContent"),
            (WireApi::Gemini, StreamMode::Stream) => {
                format!("/models/{model}:streamGenerateContent?alt=sse")
            }
        };
        let content_type = match mode {
            StreamMode::Nonstream => "application/json",
            StreamMode::Stream => "text/event-stream",
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
                    body: json!({"model": model, "stream": mode == StreamMode::Stream}),
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

    /// Whether it is one reply of a model to any request.
    pub(super) const fn is_fixture(&self) -> bool {
        self.is_fixture
    }

    /// Whether the reply was requested whole or as a stream.
    pub(super) fn mode(&self) -> StreamMode {
        if self.wants_stream() {
            StreamMode::Stream
        } else {
            StreamMode::Nonstream
        }
    }

    /// The same reply as the recording of one trial.
    #[cfg(test)]
    pub(super) fn into_recording(self, trial: &str) -> Self {
        Self {
            trial: Some(trial.to_owned()),
            is_fixture: false,
            ..self
        }
    }

    /// Whether the response was a stream of events.
    pub(super) fn is_stream(&self) -> bool {
        let content_type = self.exchange.header("content-type");
        content_type.is_some_and(|it| it.starts_with("text/event-stream"))
    }

    /// Whether the request asked for a stream.
    pub(super) fn wants_stream(&self) -> bool {
        wants_stream(&self.exchange.request.url_path, &self.exchange.request.body)
    }

    /// The measurements of the recording, as a header value.
    pub(super) fn measurement_header(&self) -> Option<String> {
        if self.is_fixture {
            return None;
        }
        let exchange = &self.exchange;
        let failure = exchange.failure.as_ref();
        let recorded = RecordedMeasurement {
            status: exchange.status,
            headers_ms: exchange.headers_ms,
            first_event_ms: exchange.first_event_ms,
            total_ms: exchange.total_ms,
            failure: failure.map(|it| (it.failure.as_str().to_owned(), it.detail.clone())),
        };
        let text = serde_json::to_string(&recorded).ok()?;
        Some(escape_non_ascii(&text))
    }
}

/// The form in which a run sends a trial.
fn trial_header(key: &TrialKey) -> String {
    format!("{}/{}/{}", key.mode.as_str(), key.repetition, key.attempt)
}

/// Whether a request asks for a stream.
pub(super) fn wants_stream(path: &str, body: &Value) -> bool {
    body.get("stream") == Some(&Value::Bool(true)) || path.contains(":streamGenerateContent")
}

/// Escapes JSON so that a header can hold it.
fn escape_non_ascii(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for unit in json.encode_utf16() {
        match u8::try_from(unit) {
            Ok(byte @ b' '..=b'~') => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\u{unit:04x}")),
        }
    }
    out
}
