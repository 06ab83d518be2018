//! What both integrations of LangChain share: pieces of calls that are merged, and their final form.

use serde_json::{Value, json};

use super::partial_json::repair;
use super::{ClientResult, HandedCall, HandedReply, raise};

/// `tool_call_chunk` of LangChain.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CallChunk {
    pub(super) name: Value,
    pub(super) args: Value,
    pub(super) id: Value,
    pub(super) index: Value,
}

/// The sum of the chunks of a stream.
#[derive(Debug, Default)]
pub(super) struct ChunkSum {
    /// Whether there was a chunk.
    begun: bool,
    calls: Vec<CallChunk>,
    text: String,
}

impl ChunkSum {
    /// Adds a chunk, after the checks of its type.
    pub(super) fn add(&mut self, calls: Vec<CallChunk>, text: &str) -> ClientResult<()> {
        for call in &calls {
            let optional = |value: &Value| value.is_null() || value.is_string();
            if !optional(&call.name) || !optional(&call.args) || !optional(&call.id) {
                return raise(
                    "ValidationError",
                    "a name, an id or arguments are not texts",
                );
            }
        }
        self.text.push_str(text);
        if !self.begun {
            self.begun = true;
            // The entries of the first chunk are not merged with each other.
            self.calls = calls;
            return Ok(());
        }
        for call in calls {
            self.merge(call);
        }
        Ok(())
    }

    fn merge(&mut self, call: CallChunk) {
        let blank = |id: &Value| id.is_null() || id == "";
        let fits = |it: &CallChunk| {
            it.index == call.index && (blank(&it.id) || blank(&call.id) || it.id == call.id)
        };
        let found = if call.index.is_i64() {
            self.calls.iter_mut().find(|it| fits(it))
        } else {
            None
        };
        let Some(known) = found else {
            self.calls.push(call);
            return;
        };
        join(&mut known.name, &call.name);
        join(&mut known.args, &call.args);
        if known.id != call.id {
            join(&mut known.id, &call.id);
        }
    }

    /// What the program gets.
    pub(super) fn hand(self) -> ClientResult<HandedReply> {
        if !self.begun {
            return raise("ValueError", "the stream has no chunk");
        }
        let calls = self.calls.into_iter().filter_map(|call| {
            let args = match call.args.as_str() {
                None | Some("") => Some(json!({})),
                Some(text) => repair(text),
            };
            // Anything else becomes an invalid call, which is not among the calls.
            let arguments = args.filter(Value::is_object)?;
            Some(HandedCall {
                id: call.id,
                name: if call.name.is_null() {
                    json!("")
                } else {
                    call.name
                },
                arguments,
            })
        });
        Ok(HandedReply {
            calls: calls.collect(),
            text: Value::String(self.text),
        })
    }
}

/// `merge_dicts` on one member.
fn join(known: &mut Value, new: &Value) {
    match (&mut *known, new) {
        (Value::Null, new) => known.clone_from(new),
        (Value::String(known), Value::String(new)) => known.push_str(new),
        _ => {}
    }
}

/// The text of `content`: a text, or the texts of a list of parts.
pub(super) fn content_text(content: &Value) -> ClientResult<String> {
    match content {
        Value::String(text) => Ok(text.clone()),
        Value::Array(parts) => {
            if !parts.iter().all(|it| it.is_string() || it.is_object()) {
                return raise("ValidationError", "`content` is not a text");
            }
            let texts = parts.iter().filter_map(|part| match part {
                Value::String(text) => Some(text.as_str()),
                part if part.get("type").is_some_and(|it| it == "text") => {
                    part.get("text").and_then(Value::as_str)
                }
                _ => None,
            });
            Ok(texts.collect())
        }
        _ => raise("ValidationError", "`content` is not a text"),
    }
}

/// The checks of a complete call.
pub(super) fn checked_call(id: Value, name: Value, arguments: Value) -> ClientResult<HandedCall> {
    if !name.is_string() || !arguments.is_object() || !(id.is_null() || id.is_string()) {
        return raise(
            "ValidationError",
            "a name or an id is not a text, or arguments are not an object",
        );
    }
    Ok(HandedCall {
        id,
        name,
        arguments,
    })
}
