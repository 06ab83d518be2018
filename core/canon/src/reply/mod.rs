//! From the bytes a provider answered with to what the model returned.
//!
//! Nothing is repaired in silence: what is odd about an answer, and each step that reading it took,
//! is a note. What says nothing about the model is not a reply but a failure.

mod anthropic;
mod arguments;
mod body;
mod chat;
mod draft;
mod fault;
mod finish;
mod gemini;
mod leaks;
mod refusal;
mod responses;
mod rules;

use serde_json::Value;
use toolwarden_model::json::Pointer;
use toolwarden_model::reply::{Mode, NotMeasured, Reply, Wire};

pub use arguments::{Sorted, arguments};
pub use finish::finish_class;
pub use leaks::leaks;
pub use refusal::refusal;
pub use rules::{RULES, Rule};

use body::Body;
use draft::Draft;

/// How much of an answer is read. Nesting is bounded by
/// [`MAX_DEPTH`](toolwarden_model::json::MAX_DEPTH) besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest body.
    pub body_bytes: usize,
    /// The most calls in one reply.
    pub calls: usize,
    /// The most notes of one rule; the rest are counted.
    pub notes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 64 << 20,
            calls: 100_000,
            notes: 20,
        }
    }
}

/// Reads the body of a successful HTTP answer (status 2xx).
///
/// A stream is put together to the message its pieces make, and that is read like one that came
/// whole. So both forms of one answer give the same calls at the same pointers.
///
/// # Errors
/// Says why the body tells nothing about the model.
pub fn read(wire: Wire, mode: Mode, body: &[u8], limits: &Limits) -> Result<Reply, NotMeasured> {
    let mut draft = Draft::new(wire, limits);
    let whole = match body::sniff(body, limits)? {
        Body::Json(Value::Array(chunks)) if wire == Wire::Gemini => {
            let message = "the chunks of a stream came as one JSON array";
            draft.note(rules::ARRAY_STREAM, Pointer::root(), message);
            gemini::assemble(chunks.into_iter().map(Ok))?
        }
        Body::Json(value) => {
            if mode == Mode::Stream {
                let message = "events were asked for, and one JSON document came";
                draft.note(rules::JSON_FOR_STREAM, Pointer::root(), message);
            }
            value
        }
        Body::Events(events) => {
            if mode == Mode::Nonstream {
                let message = "one JSON document was asked for, and events came";
                draft.note(rules::STREAM_FOR_JSON, Pointer::root(), message);
            }
            match wire {
                Wire::OpenaiChat => chat::assemble(events, &mut draft)?,
                Wire::OpenaiResponses => responses::assemble(events, &mut draft)?,
                Wire::Anthropic => anthropic::assemble(events, &mut draft)?,
                Wire::Gemini => gemini::assemble_events(events, &mut draft)?,
            }
        }
    };
    fault::check(&whole)?;
    match wire {
        Wire::OpenaiChat => chat::read(whole, &mut draft)?,
        Wire::OpenaiResponses => responses::read(whole, &mut draft)?,
        Wire::Anthropic => anthropic::read(whole, &mut draft)?,
        Wire::Gemini => gemini::read(whole, &mut draft)?,
    }
    Ok(draft.finish())
}
