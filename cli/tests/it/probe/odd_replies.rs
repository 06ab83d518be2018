//! Replies that are odd in ways providers were seen to have: each is judged, and none is a crash.

use serde_json::{Value, json};
use toolwarden_testkit::provider::{
    FakeProvider, ProviderResponse, chat_completion, good, streamed_completion, tool_call,
};

use super::{ProbeSandbox, parsed, serving};

const PLAIN: &str = r#"{"location":"x","days":3}"#;
/// More calls were expected, and the reply still says that it ends with them.
const SILENT: &[&str] = &[
    "warning emitted ",
    "warning emitted /tools",
    "warning finish_consistency /replies",
];
const BROKEN: &[&str] = &[
    "warning emitted ",
    "breaking broken_call /replies/notes/malformed-tool-calls",
    "breaking client_break /replies/notes/client-langchain-openai",
    "breaking client_break /replies/notes/client-openai-node",
    "breaking client_break /replies/notes/client-openai-python",
    "warning emitted /tools",
    "warning finish_consistency /replies",
];
/// Every client library fails on the reply.
const NO_CLIENT: &[&str] = &[
    "breaking client_break /replies/notes/client-langchain-openai",
    "breaking client_break /replies/notes/client-openai-node",
    "breaking client_break /replies/notes/client-openai-python",
];
const UNREADABLE: &[&str] = &[
    "breaking arguments_encoding ",
    "breaking unreadable_arguments ",
    "breaking client_break /replies/notes/client-langchain-openai",
];

fn forecast(arguments: &str) -> Value {
    tool_call("call_0a1b2c3d4e", "get_forecast", arguments)
}

fn calls(calls: &Value) -> ProviderResponse {
    let message = json!({"role": "assistant", "content": null, "tool_calls": calls});
    ProviderResponse::json(&chat_completion(&message, &json!("tool_calls")))
}

fn called(arguments: &str) -> ProviderResponse {
    calls(&json!([forecast(arguments)]))
}

fn said(text: &str) -> ProviderResponse {
    let said = json!({"role": "assistant", "content": text});
    ProviderResponse::json(&chat_completion(&said, &json!("stop")))
}

/// One call of the forecast, with something about it that is odd.
fn changed(pointer: &str, value: Value) -> ProviderResponse {
    let mut call = forecast(PLAIN);
    *call.pointer_mut(pointer).unwrap() = value;
    calls(&json!([call]))
}

/// Compares a plain reply with an odd one: the code, what is more than information, and the places of
/// notes about replies.
fn judged(plain: &FakeProvider, answer: ProviderResponse) -> (i32, Vec<String>, String) {
    let probe = ProbeSandbox::new();
    let server = serving(answer);
    let (old, new) = (plain.url(), server.url());
    let providers = ["run", "--old", "openai", "--new", "deepseek"];
    let places = ["--old-base-url", &old, "--new-base-url", &new];
    let run = [&providers[..], &places].concat();
    let text = probe.run(&run);
    let json = probe.run(&[&run[..], &["-f", "json"]].concat());
    assert_eq!((text.code, text.err.as_str()), (json.code, ""));
    let changes = parsed(&json.out)["comparisons"][0]["changes"].clone();
    let text = |it: &Value, key: &str| it[key].as_str().unwrap().to_owned();
    let changes: Vec<[String; 3]> = changes
        .as_array()
        .unwrap()
        .iter()
        .map(|it| ["severity", "field", "pointer"].map(|key| text(it, key)))
        .collect();
    let grave = changes.iter().filter(|[severity, ..]| severity != "info");
    let grave = grave.map(|it| it.join(" ")).collect();
    let notes = changes.iter().filter(|[_, field, _]| field == "note");
    let notes: Vec<&str> = notes.map(|[_, _, pointer]| pointer.as_str()).collect();
    (json.code, grave, notes.join(" "))
}

fn plain() -> FakeProvider {
    serving(called(PLAIN))
}

#[test]
fn what_the_schema_allows_passes_and_what_it_forbids_breaks() {
    let plain = plain();
    let body = chat_completion(
        &json!({"role": "assistant", "content": null, "tool_calls": [forecast(PLAIN)]}),
        &json!("tool_calls"),
    );
    let with_mark = ProviderResponse::new(200, "application/json", format!("\u{feff}{body}"));
    let strange = tool_call("call_1a1b2c3d4e", "rm_rf", "{}");
    let wrong = forecast(r#"{"location":"x","days":"3"}"#);
    let digits = format!(r#"{{"location":"x","days":{}}}"#, "9".repeat(5_000));
    for (name, answer, code, grave) in [
        ("the same", called(PLAIN), 0, &[][..]),
        ("a byte order mark", with_mark, 0, &[]),
        (
            "events for JSON",
            streamed_completion(&body["choices"][0]["message"], &json!("tool_calls")),
            1,
            NO_CLIENT,
        ),
        (
            "3.0 for 3",
            called(r#"{"location":"x","days":3.0}"#),
            0,
            &[],
        ),
        (
            "an optional argument",
            called(r#"{"location":"x","days":3,"unit":"celsius"}"#),
            0,
            &[],
        ),
        (
            "one more tool",
            ProviderResponse::json(&chat_completion(&good(), &json!("tool_calls"))),
            0,
            &[],
        ),
        (
            "a wrong type",
            called(r#"{"location":"x","days":"3"}"#),
            1,
            &["breaking arg_nesting:days /days"],
        ),
        (
            "a missing argument",
            called(r#"{"location":"x"}"#),
            1,
            &["breaking missing_required "],
        ),
        (
            "a wrong type deep inside",
            called(r#"{"location":"x","days":3,"include":{"wind":"y"}}"#),
            1,
            &[
                "breaking arg_keys /include/wind",
                "breaking arg_nesting:include /include/wind",
            ],
        ),
        (
            "a wrong second call",
            calls(&json!([forecast(PLAIN), wrong])),
            1,
            &[
                "warning parallel_arity ",
                "breaking wrong_type /days",
                "breaking client_break /replies/notes/client-langchain-openai",
                "breaking client_break /replies/notes/client-openai-node",
                "breaking client_break /replies/notes/client-openai-python",
                "warning unique_ids /replies",
            ],
        ),
        (
            "a tool that was not offered",
            calls(&json!([forecast(PLAIN), strange])),
            1,
            &["breaking undeclared_tool "],
        ),
        (
            "five thousand digits",
            called(&digits),
            1,
            &["breaking wrong_type /days"],
        ),
    ] {
        let (found, told, _) = judged(&plain, answer);
        assert_eq!(
            (found, told),
            (code, grave.iter().map(ToString::to_string).collect()),
            "{name}"
        );
    }
}

#[test]
fn malformed_calls_differ_from_no_call() {
    let plain = plain();
    let leaked = "<tool_call>{\"name\": \"get_forecast\", \"arguments\": {}}</tool_call>";
    let stopped = [
        "warning emitted ",
        "warning finish_reason ",
        "warning finish_reason ",
        "warning emitted /tools",
    ];
    let mut leak = stopped.to_vec();
    leak.insert(3, "breaking leak /replies/leaks/tool-call-tag/text");
    for (name, answer, code, grave) in [
        ("a call as text", said(leaked), 1, &leak[..]),
        // One reply without a call may be chance.
        ("text", said("It is sunny."), 3, &stopped),
        ("no calls", calls(&json!([])), 3, SILENT),
        ("calls null", calls(&Value::Null), 3, SILENT),
        (
            "calls in an object",
            calls(&json!({"0": forecast(PLAIN)})),
            1,
            BROKEN,
        ),
        (
            "calls that are strings",
            calls(&json!(["get_forecast", null])),
            1,
            BROKEN,
        ),
        (
            "a function that is a string",
            changed("/function", json!("x")),
            1,
            BROKEN,
        ),
        (
            "a name that is a number",
            changed("/function/name", json!(7)),
            1,
            BROKEN,
        ),
    ] {
        let (found, told, _) = judged(&plain, answer);
        assert_eq!(
            (found, told),
            (code, grave.iter().map(ToString::to_string).collect()),
            "{name}"
        );
    }
}

#[test]
fn unusual_arguments_and_ids_are_reported() {
    let plain = plain();
    let arguments = |value: Value| changed("/function/arguments", value);
    let twice = json!(json!(PLAIN).to_string());
    let (open, close) = ("[".repeat(5_000), "]".repeat(5_000));
    let deep = format!(r#"{{"location":"x","days":3,"a":{open}1{close}}}"#);
    let mut finish = chat_completion(
        &json!({"role": "assistant", "content": null, "tool_calls": [forecast(PLAIN)]}),
        &json!("tool_calls"),
    );
    finish["choices"][0]["finish_reason"] = json!(7);
    let finished = [
        "warning finish_reason ",
        "warning finish_reason ",
        "warning finish_consistency /replies",
    ];
    for (name, answer, code, grave) in [
        (
            "an object",
            arguments(parsed(PLAIN)),
            1,
            &[
                "breaking arguments_encoding ",
                "breaking client_break /replies/notes/client-langchain-openai",
                "breaking client_break /replies/notes/client-openai-node",
                "breaking client_break /replies/notes/client-openai-python",
            ][..],
        ),
        (
            "encoded twice",
            arguments(twice),
            1,
            &[
                "breaking arguments_encoding ",
                "breaking client_break /replies/notes/client-langchain-openai",
            ],
        ),
        ("no JSON", arguments(json!("{days}")), 1, UNREADABLE),
        // LangChain reads an empty text as no arguments.
        (
            "empty",
            arguments(json!("")),
            1,
            &[
                "breaking arguments_encoding ",
                "breaking unreadable_arguments ",
            ],
        ),
        ("an array", arguments(json!("[1]")), 1, UNREADABLE),
        ("a number", arguments(json!("5")), 1, UNREADABLE),
        ("without a ground", called(&deep), 1, UNREADABLE),
        (
            "an id that is a number",
            changed("/id", json!(7)),
            1,
            &[
                "warning tool_call_id_format ",
                "breaking client_break /replies/notes/client-langchain-openai",
                "breaking client_break /replies/notes/client-openai-node",
                "breaking client_break /replies/notes/client-openai-python",
            ],
        ),
        (
            "a finish that is a number",
            ProviderResponse::json(&finish),
            0,
            &finished,
        ),
    ] {
        let (found, told, _) = judged(&plain, answer);
        assert_eq!(
            (found, told),
            (code, grave.iter().map(ToString::to_string).collect()),
            "{name}"
        );
    }
}
