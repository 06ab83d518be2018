//! Anthropic's library for Python.

use std::collections::BTreeMap;

use serde_json::Value;
use toolwarden_model::json as parser;

use super::events::{IdMemory, decode_events};
use super::partial_json::parse_incomplete;
use super::python_object::{attribute, document, items, object};
use super::{ClientResult, HandedCall, HandedReply, HttpReply, raise, set_member};

/// `client.messages.create(…)`.
pub(super) fn whole(reply: HttpReply<'_>) -> ClientResult<HandedReply> {
    let message = document(reply)?;
    hand(&items(attribute(&message, "content")?, "content")?)
}

fn hand(content: &[Value]) -> ClientResult<HandedReply> {
    let mut calls = Vec::new();
    let mut text = String::new();
    for block in content {
        if attribute(block, "type")? == "tool_use" {
            calls.push(HandedCall {
                id: attribute(block, "id")?.clone(),
                name: attribute(block, "name")?.clone(),
                arguments: attribute(block, "input")?.clone(),
            });
        }
    }
    for block in content {
        if attribute(block, "type")? == "text" {
            match attribute(block, "text")? {
                Value::String(part) => text.push_str(part),
                _ => return raise("TypeError", "`text` is not a text"),
            }
        }
    }
    Ok(HandedReply {
        calls,
        text: Value::String(text),
    })
}

/// The events of a stream that have a name, as both integrations see them.
pub(super) fn named_events(reply: HttpReply<'_>) -> ClientResult<Vec<Value>> {
    let mut events = Vec::new();
    for event in decode_events(reply.body, IdMemory::Kept) {
        match event.name.as_str() {
            "" | "ping" => continue,
            "error" => return raise("APIStatusError", "the stream reports an error"),
            _ if event.data.is_empty() => continue,
            _ => {}
        }
        match parser::parse(&event.data) {
            Ok(parsed) => events.push(parsed.value),
            Err(_) => return raise("JSONDecodeError", "an event is not JSON"),
        }
    }
    Ok(events)
}

/// `client.messages.stream(…).get_final_message()`.
pub(super) fn stream(reply: HttpReply<'_>) -> ClientResult<HandedReply> {
    let mut message: Option<Message> = None;
    for event in named_events(reply)? {
        let kind = attribute(&event, "type")?.as_str().unwrap_or_default();
        match &mut message {
            None if kind == "message_start" => {
                let started = object(attribute(&event, "message")?, "message")?;
                message = Some(Message {
                    content: started.get("content").cloned().unwrap_or_default(),
                    has_usage: started.get("usage").is_some_and(Value::is_object),
                    buffers: BTreeMap::new(),
                });
            }
            None => {}
            Some(message) => message.accumulate(kind, &event)?,
        }
    }
    match message {
        Some(mut message) => {
            let open: Vec<usize> = message.buffers.keys().copied().collect();
            for at in open {
                message.parse_input(at)?;
            }
            hand(&items(&message.content, "content")?)
        }
        None => raise("AssertionError", "the stream has no `message_start`"),
    }
}

struct Message {
    content: Value,
    has_usage: bool,
    /// The pieces of the input of each block.
    buffers: BTreeMap<usize, String>,
}

impl Message {
    fn accumulate(&mut self, kind: &str, event: &Value) -> ClientResult<()> {
        match kind {
            "content_block_start" => {
                let block = attribute(event, "content_block")?;
                object(block, "content_block")?;
                match &mut self.content {
                    Value::Array(content) => content.push(block.clone()),
                    _ => return raise("AttributeError", "`content` is not a list"),
                }
            }
            "content_block_delta" => self.add_delta(event)?,
            "content_block_stop" => {
                let at = self.position(event)?;
                self.parse_input(at)?;
            }
            "message_delta" => {
                object(attribute(event, "delta")?, "delta")?;
                object(attribute(event, "usage")?, "usage")?;
                if !self.has_usage {
                    return raise("AttributeError", "`message_start` has no usage");
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The block that an event belongs to.
    fn position(&self, event: &Value) -> ClientResult<usize> {
        let Some(index) = attribute(event, "index")?.as_i64() else {
            return raise("TypeError", "an event has no index of its block");
        };
        let length = self.content.as_array().map_or(0, Vec::len);
        let length = i64::try_from(length).unwrap_or(i64::MAX);
        let at = if index < 0 { index + length } else { index };
        match usize::try_from(at) {
            Ok(found) if at < length => Ok(found),
            _ => raise("IndexError", "an event belongs to no block"),
        }
    }

    /// The client parses the input after every piece. What it finds in the last piece counts, and text
    /// that is not JSON does not become JSON by adding to it.
    fn parse_input(&mut self, at: usize) -> ClientResult<()> {
        let buffer = self.buffers.get(&at).filter(|it| !it.is_empty());
        let (Some(buffer), Some(block)) = (buffer, self.content.get_mut(at)) else {
            return Ok(());
        };
        match parse_incomplete(buffer) {
            Some(input) => {
                set_member(block, "input", input);
                Ok(())
            }
            None => raise("ValueError", "the input is not JSON"),
        }
    }

    fn add_delta(&mut self, event: &Value) -> ClientResult<()> {
        let at = self.position(event)?;
        let delta = attribute(event, "delta")?;
        let kind = attribute(delta, "type")?.as_str().unwrap_or_default();
        let Some(block) = self.content.get_mut(at) else {
            return Ok(());
        };
        let is_type = |word: &str| block.get("type").is_some_and(|it| it == word);
        match kind {
            "text_delta" if is_type("text") => {
                let piece = attribute(delta, "text")?.as_str();
                match (block.get_mut("text"), piece) {
                    (Some(Value::String(text)), Some(piece)) => text.push_str(piece),
                    _ => return raise("TypeError", "text is not a text"),
                }
            }
            "input_json_delta" if is_type("tool_use") || is_type("server_tool_use") => {
                let Some(piece) = attribute(delta, "partial_json")?.as_str() else {
                    return raise("TypeError", "a piece of the input is not a text");
                };
                self.buffers.entry(at).or_default().push_str(piece);
            }
            _ => {}
        }
        Ok(())
    }
}
