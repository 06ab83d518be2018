//! OpenAI's library for Node.js, the Responses API.

use serde_json::{Value, json};

use super::events::{IdMemory, openai_chunks};
use super::openai_node::{STREAM_ERROR, document, join_text, js_text};
use super::{ClientResult, HandedCall, HandedReply, HttpReply, raise, set_member};

/// `client.responses.create(…)`.
pub(super) fn whole(reply: HttpReply<'_>) -> ClientResult<HandedReply> {
    let response = document(reply)?;
    if !response.is_object() && !response.is_array() {
        return raise("TypeError", "the response is not an object");
    }
    let is_response = response.get("object").is_some_and(|it| it == "response");
    let text = if is_response {
        output_text(&response, "TypeError")?
    } else {
        String::new()
    };
    hand(&response, text)
}

fn hand(response: &Value, text: String) -> ClientResult<HandedReply> {
    let Some(Value::Array(output)) = response.get("output") else {
        return raise("TypeError", "`output` is not a list");
    };
    if output.iter().any(Value::is_null) {
        return raise("TypeError", "an item is null");
    }
    let calls = output.iter().filter(|it| is_type(it, "function_call"));
    let member = |item: &Value, key: &str| item.get(key).cloned().unwrap_or_default();
    let calls = calls.map(|item| HandedCall {
        id: member(item, "call_id"),
        name: member(item, "name"),
        arguments: member(item, "arguments"),
    });
    Ok(HandedReply {
        calls: calls.collect(),
        text: Value::String(text),
    })
}

fn is_type(item: &Value, kind: &str) -> bool {
    item.get("type").and_then(Value::as_str) == Some(kind)
}

fn output_text(response: &Value, class: &'static str) -> ClientResult<String> {
    let Some(Value::Array(output)) = response.get("output") else {
        return raise(class, "`output` is not a list");
    };
    let mut text = String::new();
    for item in output {
        if item.is_null() {
            return raise(class, "an item is null");
        }
        if !is_type(item, "message") {
            continue;
        }
        let Some(Value::Array(parts)) = item.get("content") else {
            return raise(class, "`content` is not a list");
        };
        for part in parts.iter().filter(|it| is_type(it, "output_text")) {
            text.push_str(&part.get("text").map(js_text).unwrap_or_default());
        }
    }
    Ok(text)
}

/// `client.responses.stream(…).finalResponse()`.
pub(super) fn stream(reply: HttpReply<'_>) -> ClientResult<HandedReply> {
    let mut snapshot: Option<Value> = None;
    for event in openai_chunks(reply, IdMemory::Ignored, STREAM_ERROR)? {
        let kind = event
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        match &mut snapshot {
            None if kind == "response.created" => {
                let response = event.get("response").filter(|it| it.is_object());
                let Some(response) = response else {
                    return raise(STREAM_ERROR, "the first event has no response");
                };
                snapshot = Some(response.clone());
            }
            None => return raise(STREAM_ERROR, "the first event is not `response.created`"),
            Some(response) => accumulate(response, kind, &event)?,
        }
    }
    let Some(response) = snapshot else {
        return raise(STREAM_ERROR, "the stream has no event");
    };
    let text = output_text(&response, STREAM_ERROR)?;
    match hand(&response, text) {
        Ok(handed) => Ok(handed),
        Err(error) => raise(STREAM_ERROR, error.what),
    }
}

fn accumulate(response: &mut Value, kind: &str, event: &Value) -> ClientResult<()> {
    let item = event.get("item").unwrap_or(&Value::Null);
    match kind {
        "response.output_item.added" => {
            let Some(Value::Array(output)) = response.get_mut("output") else {
                return raise(STREAM_ERROR, "`output` is not a list");
            };
            if item.is_null() {
                return raise(STREAM_ERROR, "an event has no item");
            }
            output.push(item.clone());
        }
        "response.output_item.done" => {
            let place = output_item(response, event)?;
            if item.is_null() {
                return raise(STREAM_ERROR, "an event has no item");
            }
            *place = item.clone();
        }
        "response.content_part.added" => {
            let part = event.get("part").unwrap_or(&Value::Null);
            let place = output_item(response, event)?;
            if is_type(place, "message") && !is_type(part, "reasoning_text") {
                match place.get_mut("content") {
                    Some(Value::Array(parts)) => parts.push(part.clone()),
                    _ => return raise(STREAM_ERROR, "`content` is not a list"),
                }
            }
        }
        "response.output_text.delta" | "response.output_text.done" => {
            let place = output_item(response, event)?;
            if is_type(place, "message") {
                let part = text_part(place, event)?;
                if kind == "response.output_text.done" {
                    set_member(part, "text", event.get("text").cloned().unwrap_or_default());
                } else {
                    let piece = event
                        .get("delta")
                        .cloned()
                        .unwrap_or_else(|| json!("undefined"));
                    join_member(part, "text", &piece);
                }
            }
        }
        "response.function_call_arguments.delta" => {
            let place = output_item(response, event)?;
            if is_type(place, "function_call") {
                let piece = event
                    .get("delta")
                    .cloned()
                    .unwrap_or_else(|| json!("undefined"));
                join_member(place, "arguments", &piece);
            }
        }
        "response.function_call_arguments.done" => {
            let place = output_item(response, event)?;
            if is_type(place, "function_call") {
                set_member(
                    place,
                    "arguments",
                    event.get("arguments").cloned().unwrap_or_default(),
                );
            }
        }
        "response.created"
        | "response.queued"
        | "response.in_progress"
        | "response.completed"
        | "response.failed"
        | "response.incomplete" => {
            let new = event.get("response").filter(|it| it.is_object());
            let Some(new) = new else {
                return raise(STREAM_ERROR, "an event has no response");
            };
            *response = new.clone();
        }
        _ => {}
    }
    Ok(())
}

/// `item.member += piece`.
fn join_member(item: &mut Value, key: &str, piece: &Value) {
    if let Value::Object(members) = item {
        let text = members.entry(key).or_insert_with(|| json!("undefined"));
        join_text(text, piece);
    }
}

/// The item that an event belongs to.
fn output_item<'r>(response: &'r mut Value, event: &Value) -> ClientResult<&'r mut Value> {
    let at = event.get("output_index").and_then(Value::as_u64);
    let at = at.and_then(|it| usize::try_from(it).ok());
    let output = response.get_mut("output").and_then(Value::as_array_mut);
    match output.and_then(|it| it.get_mut(at?)) {
        Some(item) if !item.is_null() => Ok(item),
        _ => raise(
            STREAM_ERROR,
            "an event belongs to an item that was not added",
        ),
    }
}

fn text_part<'r>(item: &'r mut Value, event: &Value) -> ClientResult<&'r mut Value> {
    let at = event.get("content_index").and_then(Value::as_u64);
    let at = at.and_then(|it| usize::try_from(it).ok());
    let parts = item.get_mut("content").and_then(Value::as_array_mut);
    match parts.and_then(|it| it.get_mut(at?)) {
        Some(part) if is_type(part, "output_text") => Ok(part),
        _ => raise(STREAM_ERROR, "text belongs to no part"),
    }
}
