//! Builds the body of a provider's request from a case.
//!
//! Cases use the message format of chat completions, because suites are written in it. The notes
//! list what another wire API cannot express.

mod anthropic;
mod chat;
mod follow_up;
mod gemini;
mod messages;
mod responses;
mod tools;

use serde_json::Value;
use toolwarden_model::Tool;
use toolwarden_model::json::Object;
use toolwarden_model::reply::{StreamMode, WireApi};

use crate::RenamedTool;
use tools::EmittedTools;

pub use follow_up::{reply_message, result_messages};

/// A request to a model, before it is written for a wire API.
#[derive(Clone, Copy, Debug)]
pub struct ModelRequest<'a> {
    /// The model.
    pub model: &'a str,
    /// The conversation, in the format of chat completions.
    pub messages: &'a [Value],
    /// The tools offered to the model.
    pub tools: &'a [Tool],
    /// The tool choice, in the format of chat completions: `auto`, `none`, `required`, or a function
    /// by name.
    pub tool_choice: Option<&'a Value>,
    /// Whether the provider sends the reply as one document or as a stream.
    pub mode: StreamMode,
    /// The sampling temperature.
    pub temperature: Option<f64>,
    /// The most tokens of the reply.
    pub max_tokens: Option<u64>,
    /// Members that are merged into the body last; objects member by member.
    pub extra: &'a Object,
}

/// A request in the format of a provider.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestBody {
    /// The path after the base URL.
    pub path: String,
    /// The body.
    pub body: Value,
    /// The tools that have another name on this wire API. A call has to be routed back.
    pub renamed: Vec<RenamedTool>,
    /// Sentences about what could not be expressed or is expressed differently.
    pub notes: Vec<String>,
}

/// Builds the request of a case for a wire API.
#[must_use]
pub fn request(wire: WireApi, ask: &ModelRequest<'_>) -> RequestBody {
    let mut notes = Vec::new();
    let tools = EmittedTools::emit(wire, ask.tools, &mut notes);
    let (path, mut body) = match wire {
        WireApi::OpenaiChat => chat::body(ask, &tools),
        WireApi::OpenaiResponses => responses::body(ask, &tools, &mut notes),
        WireApi::Anthropic => anthropic::body(ask, &tools, &mut notes),
        WireApi::Gemini => gemini::body(ask, &tools, &mut notes),
    };
    merge(&mut body, ask.extra);
    RequestBody {
        path,
        body: Value::Object(body),
        renamed: tools.renamed,
        notes,
    }
}

/// Merges members into an object; nested objects are merged member by member.
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
fn insert_some(members: &mut Object, key: &str, value: Option<Value>) {
    members.extend(value.map(|value| (key.to_owned(), value)));
}
