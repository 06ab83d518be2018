//! Parses the messages of a case.

use serde_json::{Value, json};
use toolwarden_model::json::{self, Object};

use super::tools::EmittedTools;

/// A message of a case.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum CaseMessage {
    /// The system prompt.
    System(String),
    User(Vec<ContentPart>),
    Assistant {
        text: String,
        calls: Vec<MessageCall>,
    },
    /// What a tool returned.
    Tool {
        id: String,
        /// The tool, if the message or the call before it says so.
        name: Option<String>,
        text: String,
    },
}

/// A part of what a user said.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ContentPart {
    Text(String),
    /// An image by its address, or as a `data:` address.
    Image(String),
}

/// A call in the conversation so far.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MessageCall {
    pub(super) id: String,
    pub(super) name: String,
    /// The arguments, as sent.
    pub(super) arguments: Option<Value>,
    /// What Gemini signed the call with.
    pub(super) signature: Option<String>,
}

impl MessageCall {
    /// The arguments as an object, for wires that send objects.
    pub(super) fn object(&self, notes: &mut Vec<String>) -> Object {
        match &self.arguments {
            Some(Value::Object(members)) => members.clone(),
            Some(Value::String(text)) => match json::parse(text).map(|it| it.value) {
                Ok(Value::Object(members)) => members,
                _ if text.trim().is_empty() => Object::new(),
                _ => {
                    let name = &self.name;
                    notes.push(format!(
                        "the arguments of the earlier call of `{name}` are not an object; left out"
                    ));
                    Object::new()
                }
            },
            _ => Object::new(),
        }
    }
}

/// Parses the messages. An entry that is not a message is left out with a note.
pub(super) fn parse_messages(
    messages: &[Value],
    tools: &EmittedTools,
    notes: &mut Vec<String>,
) -> Vec<CaseMessage> {
    let mut found: Vec<CaseMessage> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let content = message.get("content");
        let read = match message.get("role").and_then(Value::as_str) {
            Some("system" | "developer") => CaseMessage::System(text(content, at, notes)),
            Some("user") => CaseMessage::User(parts(content, at, notes)),
            Some("assistant") => {
                for key in ["reasoning_content", "reasoning", "reasoning_details"] {
                    if message.get(key).is_some() {
                        notes.push(format!("message {at}: `{key}` is left out"));
                    }
                }
                CaseMessage::Assistant {
                    text: text(content, at, notes),
                    calls: calls(message.get("tool_calls"), tools, at, notes),
                }
            }
            Some("tool") => {
                let id = string(message, "tool_call_id").unwrap_or_default();
                let called = found.iter().rev().find_map(|it| tool_name_of(it, &id));
                let own = string(message, "name").map(|it| tools.name(&it).to_owned());
                CaseMessage::Tool {
                    name: called.or(own),
                    text: text(content, at, notes),
                    id,
                }
            }
            _ => {
                notes.push(format!("message {at} has no known role; left out"));
                continue;
            }
        };
        found.push(read);
    }
    found
}

fn tool_name_of(message: &CaseMessage, id: &str) -> Option<String> {
    let CaseMessage::Assistant { calls, .. } = message else {
        return None;
    };
    let call = calls.iter().find(|call| call.id == id)?;
    Some(call.name.clone())
}

fn calls(
    calls: Option<&Value>,
    tools: &EmittedTools,
    at: usize,
    notes: &mut Vec<String>,
) -> Vec<MessageCall> {
    let calls = calls.and_then(Value::as_array).into_iter().flatten();
    let mut found = Vec::new();
    for call in calls {
        let function = call.get("function");
        let Some(name) = function.and_then(|it| string(it, "name")) else {
            notes.push(format!("message {at} has a call without a name; left out"));
            continue;
        };
        found.push(MessageCall {
            id: string(call, "id").unwrap_or_default(),
            name: tools.name(&name).to_owned(),
            arguments: function.and_then(|it| it.get("arguments")).cloned(),
            signature: call
                .pointer("/extra_content/google")
                .and_then(|it| string(it, "thought_signature")),
        });
    }
    found
}

fn parts(content: Option<&Value>, at: usize, notes: &mut Vec<String>) -> Vec<ContentPart> {
    let Some(Value::Array(items)) = content else {
        return vec![ContentPart::Text(text(content, at, notes))];
    };
    let mut found = Vec::new();
    for item in items {
        let image = item.pointer("/image_url/url").and_then(Value::as_str);
        match (string(item, "text"), image) {
            (Some(text), _) => found.push(ContentPart::Text(text)),
            (None, Some(url)) => found.push(ContentPart::Image(url.to_owned())),
            (None, None) => notes.push(format!(
                "message {at} has a part that is neither text nor an image; left out"
            )),
        }
    }
    found
}

/// The text of a content, its parts joined.
fn text(content: Option<&Value>, at: usize, notes: &mut Vec<String>) -> String {
    match content {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) => {
            let texts = items.iter().filter_map(|it| it.get("text")?.as_str());
            let texts: Vec<&str> = texts.collect();
            if texts.len() < items.len() {
                notes.push(format!(
                    "message {at} has a part that is not text; left out"
                ));
            }
            texts.concat()
        }
        Some(other) => {
            notes.push(format!("message {at} has content that is not text"));
            other.to_string()
        }
    }
}

fn string(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(str::to_owned)
}

/// The type and the data of a `data:` address.
pub(super) fn inline_data(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}

/// What a tool returned as an object, for wires that want one.
pub(super) fn result_object(text: &str) -> Value {
    match json::parse(text).map(|it| it.value) {
        Ok(Value::Object(members)) => Value::Object(members),
        Ok(other) => json!({ "result": other }),
        Err(_not_json) => json!({ "result": text }),
    }
}
