//! Reads the model's reply from the bytes of a provider's response.
//!
//! Nothing is repaired silently: every oddity of a response, and every step taken to read it, becomes
//! a note. A response that says nothing about the model is a failure, not a reply.

mod anthropic;
mod arguments;
mod body;
mod builder;
mod chat;
mod error_body;
mod finish;
mod gemini;
mod leak_shapes;
mod leaks;
mod note_rules;
mod refusal;
mod responses;

use serde_json::Value;
use toolwarden_model::json::Pointer;
use toolwarden_model::reply::{NotMeasured, Reply, StreamMode, WireApi};

pub use arguments::{ClassifiedArguments, arguments};
pub use finish::classify_finish;
pub use leaks::find_leaks;
pub use note_rules::{NoteRule, RULES};
pub use refusal::classify_refusal;

use body::ReplyBody;
use builder::ReplyBuilder;

/// How much of a response is read. Nesting is bounded by
/// [`MAX_DEPTH`](toolwarden_model::json::MAX_DEPTH) besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyLimits {
    /// The largest body.
    pub body_bytes: usize,
    /// The most calls in one reply.
    pub calls: usize,
    /// The most notes of one rule; the rest are counted.
    pub notes: usize,
}

impl Default for ReplyLimits {
    fn default() -> Self {
        Self {
            body_bytes: 64 << 20,
            calls: 100_000,
            notes: 20,
        }
    }
}

/// Reads the body of a successful HTTP response (status 2xx).
///
/// A stream is assembled into one message and then read like a message that was not streamed. Both
/// forms of a reply therefore give the same calls at the same pointers.
///
/// # Errors
/// Says why the body contains no reply of the model.
pub fn read(
    wire: WireApi,
    mode: StreamMode,
    body: &[u8],
    limits: &ReplyLimits,
) -> Result<Reply, NotMeasured> {
    let mut draft = ReplyBuilder::new(wire, limits);
    let whole = match body::sniff(body, limits)? {
        ReplyBody::Json(Value::Array(chunks)) if wire == WireApi::Gemini => {
            let message = "the chunks of a stream came as one JSON array";
            draft.note(note_rules::ARRAY_STREAM, Pointer::root(), message);
            gemini::assemble(chunks.into_iter().map(Ok))?
        }
        ReplyBody::Json(value) => {
            if mode == StreamMode::Stream {
                let message = "events were asked for, and one JSON document came";
                draft.note(note_rules::JSON_FOR_STREAM, Pointer::root(), message);
            }
            value
        }
        ReplyBody::Events(events) => {
            if mode == StreamMode::Nonstream {
                let message = "one JSON document was asked for, and events came";
                draft.note(note_rules::STREAM_FOR_JSON, Pointer::root(), message);
            }
            match wire {
                WireApi::OpenaiChat => chat::assemble(events, &mut draft)?,
                WireApi::OpenaiResponses => responses::assemble(events, &mut draft)?,
                WireApi::Anthropic => anthropic::assemble(events, &mut draft)?,
                WireApi::Gemini => gemini::assemble_events(events, &mut draft)?,
            }
        }
    };
    error_body::reject_error_body(&whole)?;
    match wire {
        WireApi::OpenaiChat => chat::read(whole, &mut draft)?,
        WireApi::OpenaiResponses => responses::read(whole, &mut draft)?,
        WireApi::Anthropic => anthropic::read(whole, &mut draft)?,
        WireApi::Gemini => gemini::read(whole, &mut draft)?,
    }
    Ok(draft.finish())
}
