//! Large replies that other readers need seconds for. Each would take minutes if the reader rescanned
//! earlier data for each piece.

use serde_json::{Value, json};
use toolwarden_canon::reply::{ReplyLimits, arguments, find_leaks, read};
use toolwarden_model::reply::{ArgumentsClass, StreamMode, TrialFailure, WireApi};

fn chat(calls: &Value) -> Vec<u8> {
    let message = json!({"role": "assistant", "content": null, "tool_calls": calls});
    json!({"choices": [{"message": message, "finish_reason": "tool_calls"}]})
        .to_string()
        .into_bytes()
}

fn call(arguments: impl Into<Value>) -> Value {
    json!({"id": "call_abc", "function": {"name": "f", "arguments": arguments.into()}})
}

#[test]
fn a_long_argument_is_read() {
    let text = json!({"text": "a<b [c] \u{ff5c} ".repeat(4 << 20)}).to_string();
    let body = chat(&json!([call(text)]));
    let reply = read(
        WireApi::OpenaiChat,
        StreamMode::Nonstream,
        &body,
        &ReplyLimits::default(),
    )
    .unwrap();
    assert_eq!(find_leaks(&reply), []);
    let schema = json!({"properties": {"text": {"type": "object"}}});
    let sorted = arguments(reply.calls[0].arguments.as_ref(), Some(&schema));
    assert_eq!(sorted.class, ArgumentsClass::JsonObjectString);
}

#[test]
fn many_keys_are_read() {
    let keys: serde_json::Map<String, Value> = (0..200_000)
        .map(|at| (format!("k{at}"), json!("{}")))
        .collect();
    let body = chat(&json!([call(Value::Object(keys).to_string())]));
    let reply = read(
        WireApi::OpenaiChat,
        StreamMode::Nonstream,
        &body,
        &ReplyLimits::default(),
    )
    .unwrap();
    let schema = json!({"additionalProperties": {"$ref": "#/$defs/a"}, "$defs": {"a": {"anyOf": [{"type": "object"}, {"type": "null"}]}}});
    let sorted = arguments(reply.calls[0].arguments.as_ref(), Some(&schema));
    assert_eq!(sorted.double_encoded.len(), 200_000);
}

#[test]
fn many_equal_keys_are_read() {
    let members = vec!["\"a\":1"; 200_000].join(",");
    let sorted = arguments(Some(&json!(format!("{{{members}}}"))), None);
    assert_eq!(sorted.value.unwrap().len(), 1);
}

#[test]
fn many_calls_are_read_and_one_more_is_refused() {
    let limits = ReplyLimits::default();
    let calls = vec![call("{}"); limits.calls];
    let reply = read(
        WireApi::OpenaiChat,
        StreamMode::Nonstream,
        &chat(&json!(calls)),
        &limits,
    )
    .unwrap();
    assert_eq!(reply.calls.len(), limits.calls);
    let calls = vec![call("{}"); limits.calls + 1];
    let error = read(
        WireApi::OpenaiChat,
        StreamMode::Nonstream,
        &chat(&json!(calls)),
        &limits,
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "too_large: more than 100000 calls in one reply"
    );
}

#[test]
fn many_pieces_of_many_calls_are_put_together() {
    let piece = |delta: Value| format!("data: {}\n\n", json!({"choices": [{"delta": delta}]}));
    let mut body = String::new();
    for at in 0..50_000 {
        let call = json!({"id": format!("c{at}"), "function": {"name": "f", "arguments": "{"}});
        body.push_str(&piece(json!({"tool_calls": [call]})));
    }
    for at in 0..50_000 {
        let call = json!({"id": format!("c{at}"), "function": {"arguments": "}"}});
        body.push_str(&piece(json!({"tool_calls": [call]})));
    }
    body.push_str("data: [DONE]\n\n");
    let reply = read(
        WireApi::OpenaiChat,
        StreamMode::Stream,
        body.as_bytes(),
        &ReplyLimits::default(),
    )
    .unwrap();
    assert_eq!(reply.calls.len(), 50_000);
    assert!(
        reply
            .calls
            .iter()
            .all(|call| call.arguments == Some(json!("{}")))
    );
}

#[test]
fn notes_beyond_the_limit_are_counted() {
    let limits = ReplyLimits {
        notes: 2,
        ..ReplyLimits::default()
    };
    let reply = read(
        WireApi::OpenaiChat,
        StreamMode::Nonstream,
        &chat(&json!(["a", "b", "c", "d"])),
        &limits,
    )
    .unwrap();
    let notes: Vec<String> = reply
        .notes
        .iter()
        .filter(|note| note.rule == "malformed-tool-calls")
        .map(|note| format!("{} {}", note.pointer, note.message))
        .collect();
    assert_eq!(
        notes,
        [
            "/choices/0/message/tool_calls/0 the call is a string, expected an object",
            "/choices/0/message/tool_calls/1 the call is a string, expected an object",
            "/ 2 more like this",
        ]
    );
}

#[test]
fn a_body_beyond_the_limit_is_refused() {
    let limits = ReplyLimits {
        body_bytes: 10,
        ..ReplyLimits::default()
    };
    let error = read(
        WireApi::Gemini,
        StreamMode::Nonstream,
        b"{\"candidates\":[]}",
        &limits,
    )
    .unwrap_err();
    assert_eq!(error.failure, TrialFailure::TooLarge);
}
