use serde_json::json;
use toolwarden_canon::reply::{ReplyLimits, find_leaks, read};
use toolwarden_model::reply::{Leak, LeakPlace, Reply, ReplyCall, StreamMode, WireApi};

const SENTINELS: [(&str, &str); 17] = [
    ("deepseek-dsml", "<｜DSML｜"),
    ("deepseek-dsml", "<｜｜DSML｜｜"),
    ("deepseek-dsml", "<‖DSML‖"),
    ("deepseek-dsml", "<|DSML|"),
    ("deepseek-tokens", "<｜tool▁calls▁begin｜>"),
    ("kimi", "<|tool_calls_section_begin|>"),
    ("kimi", "<|tool_call_begin|>"),
    ("tool-call-tag", "<tool_call>"),
    ("minimax", "<minimax:tool_call>"),
    ("minimax-m3", "]<]minimax[>["),
    ("invoke-xml", "<invoke name="),
    ("invoke-xml", "<function_calls>"),
    ("mistral", "[TOOL_CALLS]"),
    ("llama", "<|python_tag|>"),
    ("stepfun", "<steptml:"),
    ("cohere", "<|START_ACTION|>"),
    ("thinking", "<think>"),
];

fn stream(deltas: &[serde_json::Value]) -> Reply {
    let chunk = |delta| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
    let mut body: String = deltas
        .iter()
        .map(|delta| format!("data: {}\n\n", chunk(delta)))
        .collect();
    body.push_str("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
    read(
        WireApi::OpenaiChat,
        StreamMode::Stream,
        body.as_bytes(),
        &ReplyLimits::default(),
    )
    .unwrap()
}

#[test]
fn markup_is_found_wherever_a_stream_splits_it() {
    for (family, sentinel) in SENTINELS {
        let text = format!("a<b [c] {sentinel}x");
        for (split, _) in text.char_indices() {
            let (first, second) = text.split_at(split);
            let leak = |place| Leak {
                family,
                place,
                sentinel: sentinel.to_owned(),
            };
            let said = stream(&[json!({"content": first}), json!({"content": second})]);
            assert_eq!(
                find_leaks(&said),
                [leak(LeakPlace::Text)],
                "{first}|{second}"
            );
            let thought = stream(&[
                json!({"reasoning_content": first}),
                json!({"reasoning_content": second}),
            ]);
            assert_eq!(
                find_leaks(&thought),
                [leak(LeakPlace::Reasoning)],
                "{first}|{second}"
            );
            let piece = |text: &str| json!({"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": text}}]});
            let called = stream(&[
                piece("{\"a\": \""),
                piece(first),
                piece(second),
                piece("\"}"),
            ]);
            assert_eq!(
                find_leaks(&called),
                [leak(LeakPlace::Arguments)],
                "{first}|{second}"
            );
        }
    }
}

#[test]
fn markup_is_found_in_every_place_once() {
    let call = |arguments| ReplyCall {
        name: "f".to_owned(),
        id: None,
        arguments: Some(arguments),
        pointer: toolwarden_model::json::Pointer::root(),
    };
    let reply = Reply {
        text: "<think>x</think> <think>".to_owned(),
        reasoning: "[TOOL_CALLS]".to_owned(),
        calls: vec![
            call(json!("{\"a\": \"\\u003ctool_call>\"}")),
            call(json!({"a": [{"b<|python_tag|>": "<tool_call>"}]})),
        ],
        ..Reply::default()
    };
    let found: Vec<(&str, String)> = find_leaks(&reply)
        .into_iter()
        .map(|leak| (leak.place.as_str(), leak.sentinel))
        .collect();
    let expect = [
        ("reasoning", "[TOOL_CALLS]"),
        ("text", "</think>"),
        ("text", "<think>"),
        ("arguments", "<|python_tag|>"),
        ("arguments", "<tool_call>"),
    ];
    assert_eq!(
        found,
        expect.map(|(place, sentinel)| (place, sentinel.to_owned()))
    );
}

#[test]
fn json_in_the_text_is_a_call_only_if_it_looks_like_one() {
    let text = |text: &str| Reply {
        text: text.to_owned(),
        ..Reply::default()
    };
    for (said, leaked) in [
        ("```json\n{\"name\": \"f\", \"arguments\": {}}\n```", true),
        (
            "```\n[{\"function\": {\"name\": \"f\", \"arguments\": \"{}\"}}]\n```",
            true,
        ),
        ("{\"tool_calls\": [{\"name\": \"f\", \"input\": {}}]}", true),
        ("```json\n{\"temperature\": 21}\n```", false),
        ("The shape is {\"name\": \"f\", \"arguments\": {}}.", false),
        ("```json\n{\"name\": \"f\", \"arguments\": {}", false),
        ("```rust\nfn f() {}\n```", false),
        ("[1, 2]", false),
        ("[]", false),
    ] {
        let families: Vec<&str> = find_leaks(&text(said))
            .iter()
            .map(|leak| leak.family)
            .collect();
        let expect: &[&str] = if leaked { &["json-text"] } else { &[] };
        assert_eq!(families, expect, "{said}");
    }
}
