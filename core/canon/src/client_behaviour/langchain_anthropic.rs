//! LangChain's integration of Anthropic.

use serde_json::{Value, json};

use super::anthropic_python::named_events;
use super::langchain::{CallChunk, ChunkSum, checked_call};
use super::python_object::{attribute, document, is_truthy, items, object};
use super::{ClientResult, HandedReply, HttpReply, raise};

/// `ChatAnthropic(…).invoke(…)`.
pub(super) fn whole(reply: HttpReply<'_>) -> ClientResult<HandedReply> {
    let message = document(reply)?;
    let content = items(attribute(&message, "content")?, "content")?;
    let mut calls = Vec::new();
    let mut text = String::new();
    let mut rejected = None;
    for block in &content {
        let Value::Object(members) = block else {
            return raise("TypeError", "a block is not an object");
        };
        let member = |key: &str| members.get(key).cloned().unwrap_or_default();
        if member("type") == "text" {
            text.push_str(member("text").as_str().unwrap_or_default());
        }
        if member("type") == "tool_use" {
            match checked_call(member("id"), member("name"), member("input")) {
                Ok(call) => calls.push(call),
                Err(error) => rejected = Some(error),
            }
        }
    }
    match rejected {
        Some(error) => Err(error),
        None => Ok(HandedReply {
            calls,
            text: Value::String(text),
        }),
    }
}

/// The sum of `ChatAnthropic(…).stream(…)`.
pub(super) fn stream(reply: HttpReply<'_>) -> ClientResult<HandedReply> {
    let mut sum = ChunkSum::default();
    let mut is_in_call = false;
    for event in named_events(reply)? {
        let index = event.get("index").cloned().unwrap_or_default();
        match attribute(&event, "type")?.as_str().unwrap_or_default() {
            "message_start" => {
                object(attribute(&event, "message")?, "message")?;
                sum.add(Vec::new(), "")?;
            }
            "content_block_start" => {
                let block = attribute(&event, "content_block")?;
                if block.is_null() {
                    continue;
                }
                let Some(kind) = attribute(block, "type")?.as_str() else {
                    return raise("TypeError", "a block has no type");
                };
                if kind == "tool_use" {
                    is_in_call = true;
                    let member = |key: &str| block.get(key).cloned().unwrap_or_default();
                    let input = member("input");
                    let args = if input.is_object() && is_truthy(&input) {
                        json!(input.to_string())
                    } else {
                        json!("")
                    };
                    let call = CallChunk {
                        name: member("name"),
                        args,
                        id: member("id"),
                        index,
                    };
                    sum.add(vec![call], "")?;
                } else if kind == "text" || kind == "thinking" {
                    is_in_call = false;
                    let text = block.get("text").and_then(Value::as_str);
                    sum.add(Vec::new(), text.unwrap_or_default())?;
                }
            }
            "content_block_delta" => {
                let delta = attribute(&event, "delta")?;
                match attribute(delta, "type")?.as_str().unwrap_or_default() {
                    "text_delta" => {
                        let text = attribute(delta, "text")?.as_str();
                        sum.add(Vec::new(), text.unwrap_or_default())?;
                    }
                    "input_json_delta" if is_in_call => {
                        let call = CallChunk {
                            args: attribute(delta, "partial_json")?.clone(),
                            index,
                            ..CallChunk::default()
                        };
                        sum.add(vec![call], "")?;
                    }
                    "input_json_delta" => sum.add(Vec::new(), "")?,
                    _ => {}
                }
            }
            "message_delta" => {
                object(attribute(&event, "delta")?, "delta")?;
                sum.add(Vec::new(), "")?;
            }
            _ => {}
        }
    }
    sum.hand()
}
