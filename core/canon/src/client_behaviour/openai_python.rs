//! OpenAI's library for Python, whole replies.

use serde_json::Value;

use super::python_object::{attribute, document, first, is_truthy, items};
use super::{ClientResult, HandedCall, HandedReply, HttpReply, raise};

/// `client.chat.completions.create(…)`.
pub(super) fn chat(reply: HttpReply<'_>) -> ClientResult<HandedReply> {
    let completion = document(reply)?;
    let choices = attribute(&completion, "choices")?;
    let choice = first(choices, "choices")?;
    hand_message(attribute(choice, "message")?)
}

/// What a program reads from a message.
pub(super) fn hand_message(message: &Value) -> ClientResult<HandedReply> {
    let calls = attribute(message, "tool_calls")?;
    let mut handed = HandedReply {
        calls: Vec::new(),
        text: attribute(message, "content")?.clone(),
    };
    if is_truthy(calls) {
        for call in items(calls, "tool_calls")? {
            handed.calls.push(hand_call(&call)?);
        }
    }
    if !is_truthy(&handed.text) {
        handed.text = Value::String(String::new());
    }
    Ok(handed)
}

fn hand_call(call: &Value) -> ClientResult<HandedCall> {
    let id = attribute(call, "id")?;
    if call.get("type").and_then(Value::as_str) == Some("custom") {
        return raise(
            "AttributeError",
            "a call of a custom tool has no `function`",
        );
    }
    let function = attribute(call, "function")?;
    Ok(HandedCall {
        id: id.clone(),
        name: attribute(function, "name")?.clone(),
        arguments: attribute(function, "arguments")?.clone(),
    })
}

/// `client.responses.create(…)`.
pub(super) fn responses(reply: HttpReply<'_>) -> ClientResult<HandedReply> {
    hand_response(&document(reply)?)
}

/// What a program reads from a response.
pub(super) fn hand_response(response: &Value) -> ClientResult<HandedReply> {
    let output = items(attribute(response, "output")?, "output")?;
    let mut calls = Vec::new();
    let mut text = String::new();
    for item in &output {
        if attribute(item, "type")? == "function_call" {
            calls.push(HandedCall {
                id: attribute(item, "call_id")?.clone(),
                name: attribute(item, "name")?.clone(),
                arguments: attribute(item, "arguments")?.clone(),
            });
        }
    }
    for item in &output {
        if attribute(item, "type")? == "message" {
            for part in items(attribute(item, "content")?, "content")? {
                if attribute(&part, "type")? == "output_text" {
                    match attribute(&part, "text")? {
                        Value::String(part) => text.push_str(part),
                        _ => return raise("TypeError", "`text` is not a text"),
                    }
                }
            }
        }
    }
    Ok(HandedReply {
        calls,
        text: Value::String(text),
    })
}
