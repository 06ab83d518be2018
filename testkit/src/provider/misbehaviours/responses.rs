#![expect(
    clippy::indexing_slicing,
    reason = "a synthetic reply of another shape must fail the test"
)]

use serde_json::{Value, json};

use super::{Misbehaviour, streamed, whole};
use crate::provider::provider_response::ProviderResponse;
use crate::provider::wire_replies::{named_events, responses, responses_events};

const WIRE: &str = "openai-responses";

/// Deviations of the Responses API.
pub(super) fn all() -> Vec<Misbehaviour> {
    let correct = responses();
    let mut all = vec![Misbehaviour {
        id: "responses-correct",
        wire: WIRE,
        what: "a correct reply with two calls",
        nonstream: Some(correct.nonstream.clone()),
        stream: Some(correct.stream.clone()),
    }];
    all.extend(items());
    all.extend(bodies(&correct.nonstream, &correct.stream));
    all.extend(streams());
    all
}

/// A reply with these items, whole and streamed.
fn both(id: &'static str, what: &'static str, change: impl Fn(&mut Value)) -> Misbehaviour {
    let (reply, _) = responses_events();
    let mut items = reply["output"].as_array().cloned().unwrap_or_default();
    if let Some(first) = items.first_mut() {
        change(first);
    }
    let (reply, events) = crate::provider::wire_replies::responses_of(&items);
    Misbehaviour {
        id,
        wire: WIRE,
        what,
        nonstream: Some(ProviderResponse::json(&reply)),
        stream: Some(named_events(&events)),
    }
}

fn remove(item: &mut Value, key: &str) {
    let _removed = item.as_object_mut().and_then(|it| it.remove(key));
}

fn items() -> Vec<Misbehaviour> {
    vec![
        both(
            "responses-call-id-absent",
            "a call without `call_id`",
            |it| remove(it, "call_id"),
        ),
        both(
            "responses-call-id-empty",
            "a `call_id` that is empty",
            |it| it["call_id"] = json!(""),
        ),
        both(
            "responses-call-id-duplicate",
            "two calls with one `call_id`",
            |it| it["call_id"] = json!("call_1a1b2c3d4e"),
        ),
        both(
            "responses-arguments-object",
            "arguments that are an object",
            |it| it["arguments"] = json!({"location": "Paris"}),
        ),
        both(
            "responses-arguments-cut",
            "arguments that end inside a string",
            |it| it["arguments"] = json!("{\"location\":\"Par"),
        ),
        both(
            "responses-arguments-empty",
            "arguments that are empty",
            |it| it["arguments"] = json!(""),
        ),
        both("responses-name-absent", "a call without a name", |it| {
            remove(it, "name")
        }),
        both(
            "responses-type-tool-call",
            "an item of a type that is not defined",
            |it| it["type"] = json!("tool_call"),
        ),
        both("responses-leak", "a call as text", |it| {
            *it = json!({
                "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "<tool_call>{\"name\":\"get_weather\"}</tool_call>", "annotations": []}]
            });
        }),
    ]
}

fn bodies(nonstream: &ProviderResponse, stream: &ProviderResponse) -> Vec<Misbehaviour> {
    let (reply, _) = responses_events();
    let with = |key: &str, value: Value| {
        let mut body = reply.clone();
        body[key] = value;
        ProviderResponse::json(&body)
    };
    vec![
        whole(
            WIRE,
            "responses-stream-unasked",
            "a stream where JSON was requested",
            ProviderResponse::events(stream.body()),
        ),
        whole(
            WIRE,
            "responses-output-null",
            "an output that is null",
            with("output", json!(null)),
        ),
        whole(
            WIRE,
            "responses-status-absent",
            "a status that is null",
            with("status", json!(null)),
        ),
        whole(
            WIRE,
            "responses-chat-body",
            "a chat completion instead of a response",
            ProviderResponse::json(&crate::provider::weather::chat_completion(
                &crate::provider::weather::good(),
                &json!("tool_calls"),
            )),
        ),
        streamed(
            WIRE,
            "responses-json-for-stream",
            "JSON where a stream was requested",
            ProviderResponse::json(&serde_json::from_slice(nonstream.body()).unwrap_or_default()),
        ),
    ]
}

fn streams() -> Vec<Misbehaviour> {
    let (_, events) = responses_events();
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
    vec![
        row(
            "responses-no-completed",
            "a stream without `response.completed`",
            &kept("response.completed"),
        ),
        row(
            "responses-no-created",
            "a stream without `response.created`",
            &kept("response.created"),
        ),
        row(
            "responses-no-added",
            "a stream without `response.output_item.added`",
            &kept("response.output_item.added"),
        ),
        row(
            "responses-no-done",
            "a stream without `response.output_item.done`",
            &kept("response.output_item.done"),
        ),
        row(
            "responses-index-zero",
            "two items that are both at index 0",
            &changed(&|event| {
                if event.get("output_index").is_some() {
                    event["output_index"] = json!(0);
                }
            }),
        ),
        row(
            "responses-empty-completed",
            "a last event without the output",
            &changed(&|event| {
                if event["type"] == json!("response.completed") {
                    event["response"]["output"] = json!([]);
                }
            }),
        ),
        row(
            "responses-other-id",
            "another response id in the last event",
            &changed(&|event| {
                if event["type"] == json!("response.completed") {
                    event["response"]["id"] = json!("resp_2");
                }
            }),
        ),
        row(
            "responses-item-ids",
            "other item ids in the last event",
            &changed(&|event| {
                if event["type"] == json!("response.completed") {
                    for item in event["response"]["output"]
                        .as_array_mut()
                        .into_iter()
                        .flatten()
                    {
                        item["id"] = json!("fc_other");
                    }
                }
            }),
        ),
        streamed(
            WIRE,
            "responses-unnamed-events",
            "events without a name",
            ProviderResponse::events(unnamed),
        ),
    ]
}
