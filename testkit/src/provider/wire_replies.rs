#![expect(
    clippy::indexing_slicing,
    reason = "a synthetic reply of another shape must fail the test"
)]

use serde_json::{Value, json};

use super::provider_response::ProviderResponse;
use super::weather::{chat_completion, good, streamed_completion};

/// The two correct calls of the weather suite on one wire, whole and as a stream.
#[derive(Clone, Debug)]
pub struct WireReplies {
    /// The name of the wire.
    pub wire: &'static str,
    /// The whole reply.
    pub nonstream: ProviderResponse,
    /// The stream.
    pub stream: ProviderResponse,
}

/// Correct replies on every wire.
#[must_use]
pub fn wire_replies() -> Vec<WireReplies> {
    vec![
        WireReplies {
            wire: "openai-chat",
            nonstream: ProviderResponse::json(&chat_completion(&good(), &json!("tool_calls"))),
            stream: streamed_completion(&good(), &json!("tool_calls")),
        },
        responses(),
        anthropic(),
        gemini(),
    ]
}

const WEATHER: &str = r#"{"location":"東京","unit":"celsius"}"#;
const FORECAST: &str = r#"{"location":"Zürich","days":3,"include":{"wind":true}}"#;

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

pub(super) fn named_events(events: &[Value]) -> ProviderResponse {
    let text: String = events
        .iter()
        .map(|event| {
            let name = event
                .get("type")
                .and_then(Value::as_str)
                .unwrap_or_default();
            format!("event: {name}\ndata: {event}\n\n")
        })
        .collect();
    ProviderResponse::events(text)
}

/// The two halves of a text, split at a character boundary.
fn halves(text: &str) -> (&str, &str) {
    let middle = (text.len() / 2..).find(|at| text.is_char_boundary(*at));
    text.split_at(middle.unwrap_or_default())
}

pub(super) fn responses() -> WireReplies {
    let (reply, events) = responses_events();
    WireReplies {
        wire: "openai-responses",
        nonstream: ProviderResponse::json(&reply),
        stream: named_events(&events),
    }
}

/// A correct response and its events.
pub(super) fn responses_events() -> (Value, Vec<Value>) {
    let call = |at: usize, name: &str, arguments: &str| {
        json!({
            "type": "function_call", "id": format!("fc_{at}"), "call_id": format!("call_{at}a1b2c3d4e"),
            "name": name, "arguments": arguments, "status": "completed"
        })
    };
    let items = [
        call(0, "get_weather", WEATHER),
        call(1, "get_forecast", FORECAST),
    ];
    responses_of(&items)
}

/// A response with these items, and its events.
pub(super) fn responses_of(items: &[Value]) -> (Value, Vec<Value>) {
    let reply = json!({
        "id": "resp_1", "object": "response", "status": "completed", "model": "synthetic-1",
        "output": items,
        "usage": {"input_tokens": 210, "output_tokens": 40, "total_tokens": 250}
    });
    let mut started = reply.clone();
    started["status"] = json!("in_progress");
    started["output"] = json!([]);
    started["usage"] = Value::Null;
    let mut events = vec![json!({"type": "response.created", "response": started})];
    for (at, item) in items.iter().enumerate() {
        let mut begun = item.clone();
        begun["status"] = json!("in_progress");
        let id = &item["id"];
        let Some(arguments) = item.get("arguments").and_then(Value::as_str) else {
            let texts = begun["content"].take();
            if texts.is_array() {
                begun["content"] = json!([]);
            } else {
                let _removed = begun.as_object_mut().and_then(|it| it.remove("content"));
            }
            events.push(
                json!({"type": "response.output_item.added", "output_index": at, "item": begun}),
            );
            for (part_at, part) in texts.as_array().into_iter().flatten().enumerate() {
                let place = json!({"item_id": id, "output_index": at, "content_index": part_at});
                events.extend(part_events(&place, part));
            }
            events.push(
                json!({"type": "response.output_item.done", "output_index": at, "item": item}),
            );
            continue;
        };
        begun["arguments"] = json!("");
        let (one, other) = halves(arguments);
        events
            .push(json!({"type": "response.output_item.added", "output_index": at, "item": begun}));
        for piece in [one, other] {
            events.push(json!({
                "type": "response.function_call_arguments.delta",
                "item_id": id, "output_index": at, "delta": piece
            }));
        }
        events.push(json!({
            "type": "response.function_call_arguments.done",
            "item_id": id, "output_index": at, "arguments": arguments
        }));
        events.push(json!({"type": "response.output_item.done", "output_index": at, "item": item}));
    }
    events.push(json!({"type": "response.completed", "response": reply}));
    (reply, events)
}

/// The events of one part of a message.
fn part_events(place: &Value, part: &Value) -> Vec<Value> {
    let event = |kind: &str, key: &str, value: Value| {
        let mut event = place.clone();
        event["type"] = json!(kind);
        event[key] = value;
        event
    };
    let mut begun = part.clone();
    begun["text"] = json!("");
    vec![
        event("response.content_part.added", "part", begun),
        event("response.output_text.delta", "delta", part["text"].clone()),
        event("response.output_text.done", "text", part["text"].clone()),
        event("response.content_part.done", "part", part.clone()),
    ]
}

pub(super) fn anthropic() -> WireReplies {
    let (reply, events) = anthropic_events();
    WireReplies {
        wire: "anthropic",
        nonstream: ProviderResponse::json(&reply),
        stream: named_events(&events),
    }
}

/// A correct message and its events.
pub(super) fn anthropic_events() -> (Value, Vec<Value>) {
    let calls = [
        ("toolu_01A", "get_weather", WEATHER),
        ("toolu_01B", "get_forecast", FORECAST),
    ];
    let content: Vec<Value> = calls
        .iter()
        .map(|(id, name, input)| {
            json!({"type": "tool_use", "id": id, "name": name, "input": parse(input)})
        })
        .collect();
    let reply = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "synthetic-1",
        "content": content, "stop_reason": "tool_use", "stop_sequence": null,
        "usage": {"input_tokens": 210, "output_tokens": 40}
    });
    let mut started = reply.clone();
    started["content"] = json!([]);
    started["stop_reason"] = Value::Null;
    let mut events = vec![json!({"type": "message_start", "message": started})];
    for (at, (id, name, input)) in calls.iter().enumerate() {
        let (one, other) = halves(input);
        let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
        events.push(json!({"type": "content_block_start", "index": at, "content_block": block}));
        for piece in [one, other] {
            let delta = json!({"type": "input_json_delta", "partial_json": piece});
            events.push(json!({"type": "content_block_delta", "index": at, "delta": delta}));
        }
        events.push(json!({"type": "content_block_stop", "index": at}));
    }
    events.push(json!({
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": null},
        "usage": {"output_tokens": 40}
    }));
    events.push(json!({"type": "message_stop"}));
    (reply, events)
}

pub(super) fn gemini() -> WireReplies {
    let part =
        |name: &str, args: &str| json!({"functionCall": {"name": name, "args": parse(args)}});
    let parts = [part("get_weather", WEATHER), part("get_forecast", FORECAST)];
    let reply = |parts: &[Value], finish: Option<&str>| {
        let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
        if let Some(finish) = finish {
            candidate["finishReason"] = json!(finish);
        }
        json!({
            "candidates": [candidate],
            "modelVersion": "synthetic-1",
            "usageMetadata": {
                "promptTokenCount": 210, "candidatesTokenCount": 40, "totalTokenCount": 250
            }
        })
    };
    let last = parts.len() - 1;
    let text: String = parts
        .iter()
        .enumerate()
        .map(|(at, part)| {
            let chunk = reply(std::slice::from_ref(part), (at == last).then_some("STOP"));
            format!("data: {chunk}\r\n\r\n")
        })
        .collect();
    WireReplies {
        wire: "gemini",
        nonstream: ProviderResponse::json(&reply(&parts, Some("STOP"))),
        stream: ProviderResponse::events(text),
    }
}
