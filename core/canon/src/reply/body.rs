//! Detects the kind of a body from its bytes alone, because a provider's content type is not
//! reliable.

use toolwarden_model::event_stream::{EventReader, ServerSentEvent};
use toolwarden_model::json::{self, JsonErrorKind, Object, Pointer, Value, type_name};
use toolwarden_model::reply::{NotMeasured, TrialFailure};

use super::builder::ReplyBuilder;
use super::{ReplyLimits, error_body, note_rules};

/// A response body: one JSON document or an event stream.
#[derive(Debug)]
pub(super) enum ReplyBody<'b> {
    Json(Value),
    Events(ReplyEvents<'b>),
}

/// The events of a body, one after the other.
#[derive(Debug)]
pub(super) struct ReplyEvents<'b> {
    rest: std::slice::Chunks<'b, u8>,
    reader: EventReader,
    ready: std::vec::IntoIter<ServerSentEvent>,
    ended: bool,
    /// Whether the last event lacks its terminating empty line.
    unterminated: bool,
}

/// One event with the JSON of its data.
#[derive(Debug)]
pub(super) enum EventData {
    /// Its data is JSON.
    Json {
        /// The event's type, often empty.
        name: String,
        value: Value,
    },
    /// The marker that ends a stream.
    Done,
}

const CHUNK_BYTES: usize = 1 << 16;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Detects the kind of a body, and parses it if it is JSON.
pub(super) fn sniff<'b>(
    body: &'b [u8],
    limits: &ReplyLimits,
) -> Result<ReplyBody<'b>, NotMeasured> {
    if body.len() > limits.body_bytes {
        let detail = format!(
            "the body has {} bytes, at most {} are read",
            body.len(),
            limits.body_bytes
        );
        return Err(not_measured(TrialFailure::TooLarge, detail));
    }
    let bytes = body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body);
    let start = bytes.trim_ascii_start();
    if start.is_empty() {
        return Err(not_measured(TrialFailure::Empty, "the body is empty"));
    }
    if is_event_line(start) {
        return Ok(ReplyBody::Events(ReplyEvents::new(bytes, limits)));
    }
    if start.starts_with(b"<") {
        let detail = format!("the body is HTML or XML: {}", excerpt(start));
        return Err(not_measured(TrialFailure::NotJson, detail));
    }
    parse(bytes).map(ReplyBody::Json)
}

/// Parses JSON and classifies the failure if it is invalid.
fn parse(bytes: &[u8]) -> Result<Value, NotMeasured> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            return Err(not_measured(
                TrialFailure::Truncated,
                "the body ends inside a character",
            ));
        }
        Err(error) => {
            let detail = format!("the body is not UTF-8 (byte {})", error.valid_up_to());
            return Err(not_measured(TrialFailure::NotJson, detail));
        }
    };
    json::parse(text)
        .map(|parsed| parsed.value)
        .map_err(|error| match error.kind {
            JsonErrorKind::Truncated => not_measured(
                TrialFailure::Truncated,
                format!(
                    "the JSON ends too early, at line {}, column {}",
                    error.position.line, error.position.column
                ),
            ),
            JsonErrorKind::TooDeep => not_measured(TrialFailure::TooLarge, error.to_string()),
            JsonErrorKind::InvalidUtf8 { .. }
            | JsonErrorKind::Utf16
            | JsonErrorKind::Syntax { .. } => not_measured(
                TrialFailure::NotJson,
                format!("{error}: {}", excerpt(text.as_bytes())),
            ),
        })
}

fn is_event_line(start: &[u8]) -> bool {
    let fields: [&[u8]; 5] = [b"data:", b"event:", b"id:", b"retry:", b":"];
    fields.iter().any(|field| start.starts_with(field))
}

impl<'b> ReplyEvents<'b> {
    fn new(bytes: &'b [u8], limits: &ReplyLimits) -> Self {
        Self {
            rest: bytes.chunks(CHUNK_BYTES),
            reader: EventReader::new(limits.body_bytes),
            ready: Vec::new().into_iter(),
            ended: false,
            unterminated: false,
        }
    }

    /// The next event of a wire API whose events are named objects; an error event becomes an error.
    pub(super) fn next_named(&mut self) -> Result<Option<(String, Object)>, NotMeasured> {
        while let Some(chunk) = self.next()? {
            let EventData::Json { name, value } = chunk else {
                continue;
            };
            error_body::reject_error_body(&value)?;
            if name == "error" {
                return Err(error_body::error_body(&value));
            }
            let Value::Object(event) = value else {
                let detail = format!("an event is {}, expected an object", type_name(&value));
                return Err(not_measured(TrialFailure::WrongEnvelope, detail));
            };
            return Ok(Some((name, event)));
        }
        Ok(None)
    }

    /// Notes whether the last event was unterminated, after all events were read.
    pub(super) fn note_end(&self, draft: &mut ReplyBuilder<'_>) {
        if self.unterminated {
            let message = "the last event lacks its empty line";
            draft.note(note_rules::UNTERMINATED_EVENT, Pointer::root(), message);
        }
    }

    /// The next event that has data.
    pub(super) fn next(&mut self) -> Result<Option<EventData>, NotMeasured> {
        loop {
            if let Some(event) = self.ready.next() {
                let data = event.data.trim_ascii();
                if data.is_empty() {
                    continue;
                }
                return self.chunk(&event.name, data).map(Some);
            }
            if self.ended {
                return Ok(None);
            }
            let events = match self.rest.next() {
                Some(piece) => self.reader.feed(piece),
                None => {
                    self.ended = true;
                    let events = self.reader.feed(b"\n\n");
                    self.unterminated = events.as_ref().is_ok_and(|it| !it.is_empty());
                    events
                }
            };
            let events =
                events.map_err(|error| not_measured(TrialFailure::TooLarge, error.to_string()))?;
            self.ready = events.into_iter();
        }
    }

    fn chunk(&self, name: &str, data: &[u8]) -> Result<EventData, NotMeasured> {
        if data == b"[DONE]" {
            return Ok(EventData::Done);
        }
        match parse(data) {
            Ok(value) => Ok(EventData::Json {
                name: name.to_owned(),
                value,
            }),
            // A truncated event means a truncated stream.
            Err(_cut) if self.unterminated => Err(not_measured(
                TrialFailure::Truncated,
                "the stream ends inside an event",
            )),
            Err(error) => Err(not_measured(
                match error.failure {
                    TrialFailure::Truncated => TrialFailure::NotJson,
                    other => other,
                },
                format!("an event is not JSON: {}", error.detail),
            )),
        }
    }
}

/// The beginning of a text, on one line and short.
pub(super) fn excerpt(bytes: &[u8]) -> String {
    const SHOWN: usize = 120;
    let head = bytes.get(..SHOWN * 4).unwrap_or(bytes);
    let text = String::from_utf8_lossy(head);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut shown: String = words
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .take(SHOWN)
        .collect();
    if words.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

pub(super) fn not_measured(failure: TrialFailure, detail: impl Into<String>) -> NotMeasured {
    NotMeasured {
        failure,
        detail: detail.into(),
    }
}
