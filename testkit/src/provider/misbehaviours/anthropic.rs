#![expect(
    clippy::indexing_slicing,
    reason = "a synthetic reply of another shape must fail the test"
)]

use serde_json::{Value, json};

use super::{Misbehaviour, streamed, whole};
use crate::provider::provider_response::ProviderResponse;
use crate::provider::wire_replies::{anthropic, anthropic_events, named_events};

const WIRE: &str = "anthropic";

/// Deviations of the Messages API.
pub(super) fn all() -> Vec<Misbehaviour> {
    let correct = anthropic();
    let mut all = vec![Misbehaviour {
        id: "anthropic-correct",
        wire: WIRE,
        what: "a correct reply with two calls",
        nonstream: Some(correct.nonstream),
        stream: Some(correct.stream),
    }];
    all.extend(blocks());
    all.extend(bodies());
    all.extend(streams());
    all
}

fn remove(item: &mut Value, key: &str) {
    let _removed = item.as_object_mut().and_then(|it| it.remove(key));
}

/// The first call changed, in the whole reply and at the start of its streamed block.
fn both(id: &'static str, what: &'static str, change: impl Fn(&mut Value)) -> Misbehaviour {
    let (mut reply, mut events) = anthropic_events();
    change(&mut reply["content"][0]);
    let mut starts = events
        .iter_mut()
        .filter(|it| it["type"] == json!("content_block_start"));
    if let Some(start) = starts.next() {
        change(&mut start["content_block"]);
    }
    Misbehaviour {
        id,
        wire: WIRE,
        what,
        nonstream: Some(ProviderResponse::json(&reply)),
        stream: Some(named_events(&events)),
    }
}

fn blocks() -> Vec<Misbehaviour> {
    let nonstream = |row: Misbehaviour| Misbehaviour {
        stream: None,
        ..row
    };
    vec![
        both("anthropic-id-absent", "a call without an id", |it| {
            remove(it, "id")
        }),
        both("anthropic-id-empty", "an id that is empty", |it| {
            it["id"] = json!("")
        }),
        both("anthropic-id-duplicate", "two calls with one id", |it| {
            it["id"] = json!("toolu_01B")
        }),
        both("anthropic-name-absent", "a call without a name", |it| {
            remove(it, "name")
        }),
        both(
            "anthropic-type-unknown",
            "a block of a type that is not defined",
            |it| it["type"] = json!("function_call"),
        ),
        nonstream(both(
            "anthropic-input-text",
            "an input that is a text of JSON",
            |it| it["input"] = json!("{\"location\":\"Paris\"}"),
        )),
        nonstream(both(
            "anthropic-input-null",
            "an input that is null",
            |it| it["input"] = json!(null),
        )),
        nonstream(both(
            "anthropic-input-absent",
            "a call without an input",
            |it| remove(it, "input"),
        )),
    ]
}

fn bodies() -> Vec<Misbehaviour> {
    let (reply, events) = anthropic_events();
    let with = |key: &str, value: Value| {
        let mut body = reply.clone();
        body[key] = value;
        ProviderResponse::json(&body)
    };
    vec![
        whole(
            WIRE,
            "anthropic-content-text",
            "a content that is a text",
            with("content", json!("It is sunny.")),
        ),
        whole(
            WIRE,
            "anthropic-content-null",
            "a content that is null",
            with("content", json!(null)),
        ),
        whole(
            WIRE,
            "anthropic-stop-end-turn",
            "`end_turn` although tools are called",
            with("stop_reason", json!("end_turn")),
        ),
        whole(
            WIRE,
            "anthropic-stream-unasked",
            "a stream where JSON was requested",
            ProviderResponse::events(named_events(&events).body()),
        ),
        whole(
            WIRE,
            "anthropic-chat-body",
            "a chat completion instead of a message",
            ProviderResponse::json(&crate::provider::weather::chat_completion(
                &crate::provider::weather::good(),
                &json!("tool_calls"),
            )),
        ),
        whole(
            WIRE,
            "anthropic-leak",
            "a call as text",
            with(
                "content",
                json!([{"type": "text", "text": "<invoke name=\"get_weather\"></invoke>"}]),
            ),
        ),
        streamed(
            WIRE,
            "anthropic-json-for-stream",
            "JSON where a stream was requested",
            ProviderResponse::json(&reply),
        ),
    ]
}

fn streams() -> Vec<Misbehaviour> {
    let (_, events) = anthropic_events();
    let kept = |word: &str| -> Vec<Value> {
        let other = |it: &&Value| it["type"] != json!(word);
        events.iter().filter(other).cloned().collect()
    };
    let changed = |change: &dyn Fn(&mut Value)| -> Vec<Value> {
        let mut events = events.clone();
        events.iter_mut().for_each(change);
        events
    };
    let row = |id, what, events: &[Value]| streamed(WIRE, id, what, named_events(events));
    let unnamed: String = events.iter().map(|it| format!("data: {it}\n\n")).collect();
    let pieces = |first: &str, second: &str| {
        let mut left = vec![second.to_owned(), first.to_owned()];
        let mut events = events.clone();
        for event in &mut events {
            if event["type"] == json!("content_block_delta") && event["index"] == json!(0) {
                event["delta"]["partial_json"] = json!(left.pop().unwrap_or_default());
            }
        }
        events
    };
    let mut whole_input = kept("content_block_delta");
    for event in &mut whole_input {
        if event["type"] == json!("content_block_start") {
            event["content_block"]["input"] = json!({"location": "Paris", "days": 2});
        }
    }
    vec![
        row(
            "anthropic-index-zero",
            "two blocks that are both at index 0",
            &changed(&|event| {
                if event.get("index").is_some() {
                    event["index"] = json!(0);
                }
            }),
        ),
        row(
            "anthropic-index-one",
            "indexes that begin with 1",
            &changed(&|event| {
                if let Some(at) = event["index"].as_u64() {
                    event["index"] = json!(at + 1);
                }
            }),
        ),
        row(
            "anthropic-index-absent",
            "blocks without an index",
            &changed(&|event| remove(event, "index")),
        ),
        row(
            "anthropic-no-message-start",
            "a stream without `message_start`",
            &kept("message_start"),
        ),
        row(
            "anthropic-no-block-start",
            "a stream without `content_block_start`",
            &kept("content_block_start"),
        ),
        row(
            "anthropic-no-block-stop",
            "a stream without `content_block_stop`",
            &kept("content_block_stop"),
        ),
        row(
            "anthropic-no-message-stop",
            "a stream without `message_stop`",
            &kept("message_stop"),
        ),
        row(
            "anthropic-no-message-delta",
            "a stream without `message_delta`",
            &kept("message_delta"),
        ),
        row(
            "anthropic-input-in-start",
            "the whole input at the start of a block",
            &whole_input,
        ),
        row(
            "anthropic-partial-cut",
            "an input that ends inside a string",
            &pieces("{\"location\":", "\"Par"),
        ),
        row(
            "anthropic-partial-invalid",
            "an input that is not JSON",
            &pieces("{'location':", " 'Paris'}"),
        ),
        row(
            "anthropic-partial-object",
            "pieces of the input that are objects",
            &changed(&|event| {
                if event["type"] == json!("content_block_delta") {
                    event["delta"]["partial_json"] = json!({"location": "Paris"});
                }
            }),
        ),
        row(
            "anthropic-no-usage",
            "a stream without usage",
            &changed(&|event| {
                remove(event, "usage");
                if event.get("message").is_some() {
                    remove(&mut event["message"], "usage");
                }
            }),
        ),
        row(
            "anthropic-no-delta-usage",
            "`message_delta` without usage",
            &changed(&|event| remove(event, "usage")),
        ),
        streamed(
            WIRE,
            "anthropic-unnamed-events",
            "events without a name",
            ProviderResponse::events(unnamed),
        ),
        row(
            "anthropic-error-event",
            "an error in the middle of the stream",
            &[
                events[0].clone(),
                json!({"type": "error", "error": {"type": "overloaded_error", "message": "overloaded"}}),
            ],
        ),
    ]
}
