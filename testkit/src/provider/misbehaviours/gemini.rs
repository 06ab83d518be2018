#![expect(
    clippy::indexing_slicing,
    reason = "a synthetic reply of another shape must fail the test"
)]

use serde_json::{Value, json};

use super::{Misbehaviour, streamed, whole};
use crate::provider::provider_response::ProviderResponse;
use crate::provider::wire_replies::gemini;

const WIRE: &str = "gemini";

/// Deviations of `generateContent`.
pub(super) fn all() -> Vec<Misbehaviour> {
    let correct = gemini();
    let mut all = vec![Misbehaviour {
        id: "gemini-correct",
        wire: WIRE,
        what: "a correct reply with two calls",
        nonstream: Some(correct.nonstream),
        stream: Some(correct.stream),
    }];
    all.extend(parts());
    all.extend(bodies());
    all
}

fn reply(parts: &Value, finish: &str) -> Value {
    json!({
        "candidates": [{"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": finish}],
        "modelVersion": "synthetic-1",
        "usageMetadata": {"promptTokenCount": 210, "candidatesTokenCount": 40, "totalTokenCount": 250}
    })
}

fn event(body: &Value) -> ProviderResponse {
    ProviderResponse::events(format!("data: {body}\r\n\r\n"))
}

fn both(id: &'static str, what: &'static str, body: &Value) -> Misbehaviour {
    Misbehaviour {
        id,
        wire: WIRE,
        what,
        nonstream: Some(ProviderResponse::json(body)),
        stream: Some(event(body)),
    }
}

fn parts() -> Vec<Misbehaviour> {
    let call = |call: Value| reply(&json!([{"functionCall": call}]), "STOP");
    let text = |text: &str| reply(&json!([{"text": text}]), "STOP");
    vec![
        both(
            "gemini-args-text",
            "arguments that are a text of JSON",
            &call(json!({"name": "get_weather", "args": "{\"location\":\"Paris\"}"})),
        ),
        both(
            "gemini-args-absent",
            "a call without arguments",
            &call(json!({"name": "get_weather"})),
        ),
        both(
            "gemini-args-null",
            "arguments that are null",
            &call(json!({"name": "get_weather", "args": null})),
        ),
        both(
            "gemini-name-absent",
            "a call without a name",
            &call(json!({"args": {"location": "Paris"}})),
        ),
        both(
            "gemini-name-prefix",
            "a name with the prefix of the template",
            &call(json!({"name": "default_api.get_weather", "args": {"location": "Paris"}})),
        ),
        both(
            "gemini-tool-code",
            "a call as `tool_code`",
            &text("```tool_code\nprint(default_api.get_weather(location=\"Paris\"))\n```"),
        ),
        both(
            "gemini-snake-case",
            "a call in snake case",
            &reply(
                &json!([{"function_call": {"name": "get_weather", "args": {"location": "Paris"}}}]),
                "STOP",
            ),
        ),
        both(
            "gemini-malformed",
            "a call that the provider did not accept",
            &reply(&json!([]), "MALFORMED_FUNCTION_CALL"),
        ),
        both(
            "gemini-no-parts",
            "a content without parts",
            &json!({"candidates": [{"index": 0, "content": {"role": "model"}, "finishReason": "STOP"}], "modelVersion": "synthetic-1"}),
        ),
        both("gemini-no-finish", "no finish reason", &{
            let mut body = call(json!({"name": "get_weather", "args": {"location": "Paris"}}));
            let _removed = body["candidates"][0]
                .as_object_mut()
                .and_then(|it| it.remove("finishReason"));
            body
        }),
    ]
}

fn bodies() -> Vec<Misbehaviour> {
    let right = reply(
        &json!([{"functionCall": {"name": "get_weather", "args": {"location": "Paris"}}}]),
        "STOP",
    );
    vec![
        both(
            "gemini-no-candidates",
            "a body without candidates",
            &json!({"modelVersion": "synthetic-1"}),
        ),
        both(
            "gemini-blocked",
            "a prompt that was blocked",
            &json!({"promptFeedback": {"blockReason": "OTHER"}, "modelVersion": "synthetic-1"}),
        ),
        whole(
            WIRE,
            "gemini-stream-unasked",
            "a stream where JSON was requested",
            event(&right),
        ),
        streamed(
            WIRE,
            "gemini-json-for-stream",
            "JSON where a stream was requested",
            ProviderResponse::json(&right),
        ),
        streamed(
            WIRE,
            "gemini-array-for-stream",
            "a JSON list where events were requested",
            ProviderResponse::json(&json!([right])),
        ),
        streamed(
            WIRE,
            "gemini-partial-args",
            "arguments in pieces by path",
            event(&reply(
                &json!([{"functionCall": {"name": "get_weather", "partialArgs": [{"jsonPath": "$.location", "stringValue": "Paris"}], "willContinue": false}}]),
                "STOP",
            )),
        ),
    ]
}
