#![expect(
    clippy::indexing_slicing,
    reason = "a synthetic reply of another shape must fail the test"
)]

use serde_json::{Value, json};

use super::{CHAT, Misbehaviour};
use crate::provider::provider_response::ProviderResponse;
use crate::provider::weather::{
    chat_completion, delta, event_stream, finish, good, streamed_completion, tool_call, usage_chunk,
};

/// Deviations of a message, which streams show as well.
pub(super) fn all() -> Vec<Misbehaviour> {
    let mut all = vec![both(
        "chat-correct",
        "a correct reply with two calls",
        &good(),
        &json!("tool_calls"),
    )];
    all.extend(ids());
    all.extend(arguments());
    all.extend(names());
    all.extend(entries());
    all.extend(messages());
    all.extend(finishes());
    all
}

/// A message whole and streamed. Calls that are not a list of calls are streamed in one piece.
pub(super) fn both(
    id: &'static str,
    what: &'static str,
    message: &Value,
    stop: &Value,
) -> Misbehaviour {
    let calls = message.get("tool_calls").and_then(Value::as_array);
    let regular = calls.is_none_or(|it| it.iter().all(|call| call["function"].is_object()))
        && message.get("function_call").is_none()
        && message.get("tool_calls").is_none_or(Value::is_array)
        && !message["content"].is_array()
        && !message["content"].is_object();
    let stream = if regular {
        streamed_completion(message, stop)
    } else {
        let mut piece = message.clone();
        for (at, call) in piece["tool_calls"]
            .as_array_mut()
            .into_iter()
            .flatten()
            .enumerate()
        {
            if call.is_object() {
                call["index"] = json!(at);
            }
        }
        event_stream(&[
            delta(&piece),
            finish(stop.as_str().unwrap_or_default()),
            usage_chunk(),
        ])
    };
    Misbehaviour {
        id,
        wire: CHAT,
        what,
        nonstream: Some(ProviderResponse::json(&chat_completion(message, stop))),
        stream: Some(stream),
    }
}

/// A message with these calls.
pub(super) fn calling(calls: &Value) -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

/// The calls of [`good`], the first of them changed.
fn changed(change: impl Fn(&mut Value)) -> Value {
    let mut message = good();
    change(&mut message["tool_calls"][0]);
    message
}

fn calls() -> Value {
    json!("tool_calls")
}

fn ids() -> Vec<Misbehaviour> {
    let with = |id: Value| changed(|call| call["id"].clone_from(&id));
    let mut absent = good();
    for call in absent["tool_calls"].as_array_mut().into_iter().flatten() {
        let _removed = call.as_object_mut().and_then(|it| it.remove("id"));
    }
    let mut same = good();
    same["tool_calls"][1]["id"] = same["tool_calls"][0]["id"].clone();
    vec![
        both("chat-id-absent", "calls without an id", &absent, &calls()),
        both(
            "chat-id-null",
            "an id that is null",
            &with(json!(null)),
            &calls(),
        ),
        both(
            "chat-id-empty",
            "an id that is empty",
            &with(json!("")),
            &calls(),
        ),
        both(
            "chat-id-number",
            "an id that is a number",
            &with(json!(7)),
            &calls(),
        ),
        both(
            "chat-id-duplicate",
            "two calls with one id",
            &same,
            &calls(),
        ),
    ]
}

fn arguments() -> Vec<Misbehaviour> {
    let with =
        |arguments: Value| changed(|call| call["function"]["arguments"].clone_from(&arguments));
    let absent = changed(|call| {
        let _removed = call["function"]
            .as_object_mut()
            .and_then(|it| it.remove("arguments"));
    });
    [
        (
            "chat-arguments-object",
            "arguments that are an object",
            json!({"location": "Paris"}),
        ),
        (
            "chat-arguments-null",
            "arguments that are null",
            json!(null),
        ),
        (
            "chat-arguments-empty",
            "arguments that are empty",
            json!(""),
        ),
        (
            "chat-arguments-python",
            "arguments as Python writes them",
            json!("{'location': 'Paris', 'unit': None}"),
        ),
        (
            "chat-arguments-array",
            "arguments that are a list",
            json!(r#"["Paris"]"#),
        ),
        (
            "chat-arguments-twice",
            "arguments encoded twice",
            json!(r#""{\"location\":\"Paris\"}""#),
        ),
        (
            "chat-arguments-cut",
            "arguments that end inside a string",
            json!("{\"location\":\"Par"),
        ),
        (
            "chat-arguments-comma",
            "arguments with a comma before the end",
            json!(r#"{"location":"Paris",}"#),
        ),
        (
            "chat-arguments-fence",
            "arguments in a code fence",
            json!("```json\n{\"location\":\"Paris\"}\n```"),
        ),
        (
            "chat-arguments-two-objects",
            "two objects in one text",
            json!(r#"{"location":"Paris"}{"location":"Rome"}"#),
        ),
        (
            "chat-arguments-newline",
            "a line break inside a string",
            json!("{\"location\":\"Pa\nris\"}"),
        ),
        (
            "chat-arguments-markup",
            "markup glued to an argument",
            json!(r#"{"location":"Paris</｜DSML｜parameter"}"#),
        ),
    ]
    .into_iter()
    .map(|(id, what, arguments)| both(id, what, &with(arguments), &calls()))
    .chain([both(
        "chat-arguments-absent",
        "a call without arguments",
        &absent,
        &calls(),
    )])
    .collect()
}

fn names() -> Vec<Misbehaviour> {
    let with = |name: Value| changed(|call| call["function"]["name"].clone_from(&name));
    let absent = changed(|call| {
        let _removed = call["function"]
            .as_object_mut()
            .and_then(|it| it.remove("name"));
    });
    vec![
        both(
            "chat-name-empty",
            "a name that is empty",
            &with(json!("")),
            &calls(),
        ),
        both(
            "chat-name-null",
            "a name that is null",
            &with(json!(null)),
            &calls(),
        ),
        both(
            "chat-name-absent",
            "a call without a name",
            &absent,
            &calls(),
        ),
        both(
            "chat-name-prefix",
            "a name with the prefix of the template",
            &with(json!("functions.get_weather")),
            &calls(),
        ),
    ]
}

fn entries() -> Vec<Misbehaviour> {
    let call = || tool_call("call_0a1b2c3d4e", "get_weather", r#"{"location":"Paris"}"#);
    let flat = json!([{"id": "call_0a1b2c3d4e", "name": "get_weather", "arguments": "{\"location\":\"Paris\"}"}]);
    let untyped = changed(|call| {
        let _removed = call.as_object_mut().and_then(|it| it.remove("type"));
    });
    let typed = |word: &str| changed(|call| call["type"] = json!(word));
    let custom = json!([{
        "id": "call_0a1b2c3d4e", "type": "custom",
        "custom": {"name": "get_weather", "input": "Paris"}
    }]);
    let legacy = json!({
        "role": "assistant", "content": null,
        "function_call": {"name": "get_weather", "arguments": "{\"location\":\"Paris\"}"}
    });
    vec![
        both(
            "chat-function-call",
            "the call in `function_call`",
            &legacy,
            &json!("function_call"),
        ),
        both(
            "chat-calls-object",
            "one call instead of a list of calls",
            &calling(&call()),
            &calls(),
        ),
        both(
            "chat-calls-null",
            "no calls although the finish reason announces them",
            &calling(&json!(null)),
            &calls(),
        ),
        both(
            "chat-calls-empty",
            "an empty list of calls",
            &calling(&json!([])),
            &calls(),
        ),
        both(
            "chat-call-null",
            "a call that is null",
            &calling(&json!([call(), null])),
            &calls(),
        ),
        both(
            "chat-call-flat",
            "a call without `function`",
            &calling(&flat),
            &calls(),
        ),
        both(
            "chat-call-text",
            "a call that is a text",
            &calling(&json!(["get_weather"])),
            &calls(),
        ),
        both(
            "chat-type-absent",
            "a call without a type",
            &untyped,
            &calls(),
        ),
        both(
            "chat-type-empty",
            "a type that is empty",
            &typed(""),
            &calls(),
        ),
        both(
            "chat-type-unknown",
            "a type that is not defined",
            &typed("tool"),
            &calls(),
        ),
        both(
            "chat-custom-call",
            "a call of a custom tool that was not offered",
            &calling(&custom),
            &calls(),
        ),
    ]
}

fn messages() -> Vec<Misbehaviour> {
    let stop = json!("stop");
    let with = |key: &str, value: Value| {
        let mut message = good();
        message[key] = value;
        message
    };
    let said = |content: Value| json!({"role": "assistant", "content": content});
    vec![
        both(
            "chat-content-parts",
            "a text as a list of parts",
            &said(json!([{"type": "text", "text": "It is sunny."}])),
            &stop,
        ),
        both(
            "chat-content-object",
            "a text as an object",
            &said(json!({"text": "It is sunny."})),
            &stop,
        ),
        both(
            "chat-reasoning-only",
            "nothing but reasoning",
            &json!({"role": "assistant", "content": "", "reasoning_content": "I should call a tool."}),
            &stop,
        ),
        both(
            "chat-empty-message",
            "a message without text and calls",
            &said(json!(null)),
            &stop,
        ),
        Misbehaviour {
            stream: None,
            ..both(
                "chat-role-absent",
                "a message without a role",
                &json!({"content": null, "tool_calls": good()["tool_calls"]}),
                &calls(),
            )
        },
        Misbehaviour {
            stream: None,
            ..both(
                "chat-role-unknown",
                "a role that is not defined",
                &with("role", json!("ai")),
                &calls(),
            )
        },
    ]
}

fn finishes() -> Vec<Misbehaviour> {
    let cut = changed(|call| call["function"]["arguments"] = json!("{\"location\":\"Par"));
    let mut outside = chat_completion(&good(), &json!(null));
    outside["finish_reason"] = json!("tool_calls");
    [
        (
            "chat-finish-stop",
            "`stop` although tools are called",
            json!("stop"),
        ),
        ("chat-finish-null", "no finish reason", json!(null)),
        (
            "chat-finish-empty",
            "a finish reason that is empty",
            json!(""),
        ),
        (
            "chat-finish-unknown",
            "a finish reason that is not defined",
            json!("eos_token"),
        ),
        (
            "chat-finish-legacy",
            "`function_call` although tools are called",
            json!("function_call"),
        ),
    ]
    .into_iter()
    .map(|(id, what, word)| both(id, what, &good(), &word))
    .chain([
        both(
            "chat-finish-length",
            "calls cut off by the limit on tokens",
            &cut,
            &json!("length"),
        ),
        super::whole(
            CHAT,
            "chat-finish-outside",
            "the finish reason beside the choices",
            ProviderResponse::json(&outside),
        ),
    ])
    .collect()
}
