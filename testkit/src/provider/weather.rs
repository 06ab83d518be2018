#![expect(
    clippy::indexing_slicing,
    reason = "a synthetic reply of another shape must fail the test"
)]

use serde_json::{Value, json};

use super::provider_response::ProviderResponse;

/// The model that every synthetic reply names.
const MODEL: &str = "synthetic-1";

/// A tool call in the format of `/chat/completions`.
#[must_use]
pub fn tool_call(id: &str, name: &str, arguments: &str) -> Value {
    json!({
        "id": id,
        "type": "function",
        "function": {"name": name, "arguments": arguments}
    })
}

/// A message that calls both tools of the weather suite with valid arguments.
#[must_use]
pub fn good() -> Value {
    json!({
        "role": "assistant",
        "content": null,
        "tool_calls": [
            tool_call("call_0a1b2c3d4e", "get_weather", r#"{"location":"東京","unit":"celsius"}"#),
            tool_call(
                "call_1a1b2c3d4e",
                "get_forecast",
                r#"{"location":"Zürich","days":3,"include":{"wind":true}}"#
            ),
        ]
    })
}

/// The document that `/chat/completions` returns around a message.
#[must_use]
pub fn chat_completion(message: &Value, finish: &Value) -> Value {
    json!({
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_763_251_200,
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": usage()
    })
}

/// The response that `/chat/completions` streams for a message, in small pieces.
#[must_use]
pub fn streamed_completion(message: &Value, finish: &Value) -> ProviderResponse {
    let mut chunks = vec![delta(&json!({"role": "assistant"}))];
    for key in ["reasoning_content", "reasoning", "content"] {
        let text = message.get(key).and_then(Value::as_str).unwrap_or_default();
        chunks.extend(small_chunks(text).map(|piece| delta(&json!({ key: piece }))));
    }
    let calls = message.get("tool_calls").and_then(Value::as_array);
    for (index, call) in calls.into_iter().flatten().enumerate() {
        chunks.extend(call_deltas(index, call));
    }
    let mut last = chunk(&json!({"index": 0, "delta": {}}));
    if let Some(choice) = last.pointer_mut("/choices/0") {
        choice["finish_reason"].clone_from(finish);
    }
    chunks.push(last);
    chunks.push(usage_chunk());
    event_stream(&chunks)
}

/// Chunks as a stream of events, including its end.
#[must_use]
pub fn event_stream(chunks: &[Value]) -> ProviderResponse {
    let mut text: String = chunks.iter().map(|it| format!("data: {it}\n\n")).collect();
    text.push_str("data: [DONE]\n\n");
    ProviderResponse::events(text)
}

/// One chunk with the new part of the message.
pub(super) fn delta(delta: &Value) -> Value {
    chunk(&json!({"index": 0, "delta": delta, "finish_reason": null}))
}

/// One chunk that ends the message.
pub(super) fn finish(word: &str) -> Value {
    chunk(&json!({"index": 0, "delta": {}, "finish_reason": word}))
}

/// The chunk after the message, which reports the usage.
pub(super) fn usage_chunk() -> Value {
    let mut last = chunk(&json!(null));
    last["choices"] = json!([]);
    last["usage"] = usage();
    last
}

pub(super) fn chunk(choice: &Value) -> Value {
    json!({
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1_763_251_200,
        "model": MODEL,
        "choices": [choice]
    })
}

pub(super) fn usage() -> Value {
    json!({"prompt_tokens": 210, "completion_tokens": 40, "total_tokens": 250})
}

/// A call that begins with id and name and continues with arguments, if they are text.
fn call_deltas(index: usize, call: &Value) -> Vec<Value> {
    let arguments = call.pointer("/function/arguments");
    let Some(text) = arguments.and_then(Value::as_str) else {
        let mut whole = call.clone();
        whole["index"] = json!(index);
        return vec![delta(&json!({"tool_calls": [whole]}))];
    };
    let mut first = call.clone();
    first["index"] = json!(index);
    first["function"]["arguments"] = json!("");
    let more =
        small_chunks(text).map(|piece| json!({"index": index, "function": {"arguments": piece}}));
    let calls = [first].into_iter().chain(more);
    calls
        .map(|it| delta(&json!({"tool_calls": [it]})))
        .collect()
}

/// A text in pieces of a few characters, so that no marker arrives whole.
fn small_chunks(text: &str) -> impl Iterator<Item = String> {
    let characters: Vec<char> = text.chars().collect();
    let pieces: Vec<String> = characters.chunks(5).map(|it| it.iter().collect()).collect();
    pieces.into_iter()
}
