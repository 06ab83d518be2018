//! What a body is, told by its bytes alone: the content type of a provider is not to be trusted.

use toolwarden_model::event_stream::{Event, EventReader};
use toolwarden_model::json::{self, JsonErrorKind, Object, Pointer, Value, type_name};
use toolwarden_model::reply::{Failure, NotMeasured};

use super::draft::Draft;
use super::{Limits, fault, rules};

/// A body of a kind that is read.
#[derive(Debug)]
pub(super) enum Body<'b> {
    Json(Value),
    Events(Events<'b>),
}

/// The events of a body, one after the other.
#[derive(Debug)]
pub(super) struct Events<'b> {
    rest: std::slice::Chunks<'b, u8>,
    reader: EventReader,
    ready: std::vec::IntoIter<Event>,
    ended: bool,
    /// Whether the last event lacks its end.
    unterminated: bool,
}

/// One event with the JSON of its data.
#[derive(Debug)]
pub(super) enum Chunk {
    /// Its data is JSON.
    Json {
        /// The event's type, often empty.
        name: String,
        value: Value,
    },
    /// The word that ends a stream.
    Done,
}

const PIECE: usize = 1 << 16;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Finds out what a body is, and reads it if it is JSON.
pub(super) fn sniff<'b>(body: &'b [u8], limits: &Limits) -> Result<Body<'b>, NotMeasured> {
    if body.len() > limits.body_bytes {
        let detail = format!(
            "the body has {} bytes, at most {} are read",
            body.len(),
            limits.body_bytes
        );
        return Err(failed(Failure::TooLarge, detail));
    }
    let bytes = body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body);
    let start = bytes.trim_ascii_start();
    if start.is_empty() {
        return Err(failed(Failure::Empty, "the body is empty"));
    }
    if is_event_line(start) {
        return Ok(Body::Events(Events::new(bytes, limits)));
    }
    if start.starts_with(b"<") {
        let detail = format!("the body is HTML or XML: {}", excerpt(start));
        return Err(failed(Failure::NotJson, detail));
    }
    parse(bytes).map(Body::Json)
}

/// Reads JSON, told apart by what is wrong with it.
fn parse(bytes: &[u8]) -> Result<Value, NotMeasured> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            return Err(failed(
                Failure::Truncated,
                "the body ends inside a character",
            ));
        }
        Err(error) => {
            let detail = format!("the body is not UTF-8 (byte {})", error.valid_up_to());
            return Err(failed(Failure::NotJson, detail));
        }
    };
    json::parse(text)
        .map(|parsed| parsed.value)
        .map_err(|error| match error.kind {
            JsonErrorKind::Truncated => failed(
                Failure::Truncated,
                format!(
                    "the JSON ends too early, at line {}, column {}",
                    error.position.line, error.position.column
                ),
            ),
            JsonErrorKind::TooDeep => failed(Failure::TooLarge, error.to_string()),
            JsonErrorKind::InvalidUtf8 { .. }
            | JsonErrorKind::Utf16
            | JsonErrorKind::Syntax { .. } => failed(
                Failure::NotJson,
                format!("{error}: {}", excerpt(text.as_bytes())),
            ),
        })
}

fn is_event_line(start: &[u8]) -> bool {
    let fields: [&[u8]; 5] = [b"data:", b"event:", b"id:", b"retry:", b":"];
    fields.iter().any(|field| start.starts_with(field))
}

impl<'b> Events<'b> {
    fn new(bytes: &'b [u8], limits: &Limits) -> Self {
        Self {
            rest: bytes.chunks(PIECE),
            reader: EventReader::new(limits.body_bytes),
            ready: Vec::new().into_iter(),
            ended: false,
            unterminated: false,
        }
    }

    /// The next event of a wire whose events are named objects, and that is no error.
    pub(super) fn next_named(&mut self) -> Result<Option<(String, Object)>, NotMeasured> {
        while let Some(chunk) = self.next()? {
            let Chunk::Json { name, value } = chunk else {
                continue;
            };
            fault::check(&value)?;
            if name == "error" {
                return Err(fault::error_body(&value));
            }
            let Value::Object(event) = value else {
                let detail = format!("an event is {}, expected an object", type_name(&value));
                return Err(failed(Failure::WrongEnvelope, detail));
            };
            return Ok(Some((name, event)));
        }
        Ok(None)
    }

    /// Notes whether the last event lacked its end, once all were read.
    pub(super) fn note_end(&self, draft: &mut Draft<'_>) {
        if self.unterminated {
            let message = "the last event lacks its empty line";
            draft.note(rules::UNTERMINATED_EVENT, Pointer::root(), message);
        }
    }

    /// The next event that has data.
    pub(super) fn next(&mut self) -> Result<Option<Chunk>, NotMeasured> {
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
            let events = events.map_err(|error| failed(Failure::TooLarge, error.to_string()))?;
            self.ready = events.into_iter();
        }
    }

    fn chunk(&self, name: &str, data: &[u8]) -> Result<Chunk, NotMeasured> {
        if data == b"[DONE]" {
            return Ok(Chunk::Done);
        }
        match parse(data) {
            Ok(value) => Ok(Chunk::Json {
                name: name.to_owned(),
                value,
            }),
            // An event that was cut off is a stream that was cut off.
            Err(_cut) if self.unterminated => Err(failed(
                Failure::Truncated,
                "the stream ends inside an event",
            )),
            Err(error) => Err(failed(
                match error.failure {
                    Failure::Truncated => Failure::NotJson,
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

pub(super) fn failed(failure: Failure, detail: impl Into<String>) -> NotMeasured {
    NotMeasured {
        failure,
        detail: detail.into(),
    }
}
