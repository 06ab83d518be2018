//! From a case to the body of a provider's request.
//!
//! A case speaks as chat completions do, for that is what suites are written in. What another wire
//! has no place for is told in the notes.

mod anthropic;
mod chat;
mod content;
mod gemini;
mod responses;
mod tools;

use serde_json::Value;
use toolwarden_model::Tool;
use toolwarden_model::json::Object;
use toolwarden_model::reply::{Mode, Wire};

use crate::RenamedTool;
use tools::Tools;

/// What a provider is asked.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The model.
    pub model: &'a str,
    /// The conversation, as chat completions have it.
    pub messages: &'a [Value],
    /// The tools on offer.
    pub tools: &'a [Tool],
    /// Whether and what to call, as chat completions say it: `auto`, `none`, `required`, or the
    /// function by name.
    pub tool_choice: Option<&'a Value>,
    /// Whether the answer shall come whole or in pieces.
    pub mode: Mode,
    /// The sampling temperature.
    pub temperature: Option<f64>,
    /// The most tokens of the answer.
    pub max_tokens: Option<u64>,
    /// Members that are merged into the body last; objects member by member.
    pub extra: &'a Object,
}

/// A request as a provider takes it.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestBody {
    /// What follows the base address.
    pub path: String,
    /// The body.
    pub body: Value,
    /// The tools that go by another name on this wire. A call has to be routed back.
    pub renamed: Vec<RenamedTool>,
    /// What could not be said, or is said in another way, in sentences.
    pub notes: Vec<String>,
}

/// Says a case on a wire.
#[must_use]
pub fn request(wire: Wire, ask: &Ask<'_>) -> RequestBody {
    let mut notes = Vec::new();
    let tools = Tools::emit(wire, ask.tools, &mut notes);
    let (path, mut body) = match wire {
        Wire::OpenaiChat => chat::body(ask, &tools),
        Wire::OpenaiResponses => responses::body(ask, &tools, &mut notes),
        Wire::Anthropic => anthropic::body(ask, &tools, &mut notes),
        Wire::Gemini => gemini::body(ask, &tools, &mut notes),
    };
    merge(&mut body, ask.extra);
    RequestBody {
        path,
        body: Value::Object(body),
        renamed: tools.renamed,
        notes,
    }
}

/// Puts members into an object, into its objects member by member.
fn merge(into: &mut Object, extra: &Object) {
    for (key, value) in extra {
        match (into.get_mut(key), value) {
            (Some(Value::Object(own)), Value::Object(more)) => merge(own, more),
            (Some(own), value) => *own = value.clone(),
            (None, value) => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Puts a member into an object if there is one.
fn put(members: &mut Object, key: &str, value: Option<Value>) {
    members.extend(value.map(|value| (key.to_owned(), value)));
}
