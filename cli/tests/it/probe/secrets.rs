//! A key that a provider sends back is in nothing that is printed or kept.

use serde_json::{Value, json};
use toolwarden_testkit::provider::{
    FakeProvider, ProviderResponse, RecordedRequest, Script, chat_completion, event_stream,
    streamed_completion, tool_call,
};

use super::{ProbeSandbox, command_output, files};

const KEY: &str = "sk-test-key-1234567890abcdef";

type Echo = fn(&RecordedRequest) -> ProviderResponse;

/// The key in every place a provider can put it.
fn echoed(seen: &RecordedRequest) -> ProviderResponse {
    let message = json!({
        "role": "assistant",
        "content": format!("Your key is {KEY}"),
        "tool_calls": [
            tool_call(KEY, "get_weather", &format!(r#"{{"location":"{KEY}","{KEY}":1}}"#)),
            tool_call("call_1a1b2c3d4e", KEY, &format!("{{'{KEY}': '{KEY}'}}")),
        ]
    });
    let mut body = chat_completion(&message, &json!(KEY));
    body["model"] = json!(KEY);
    if seen.wants_stream() {
        streamed_completion(&message, &json!(KEY))
    } else {
        ProviderResponse::json(&body)
    }
}

fn refused(seen: &RecordedRequest) -> ProviderResponse {
    let sent = seen.header("authorization").unwrap();
    ProviderResponse::refusal(401, &format!("wrong key: {sent}"))
}

fn led_away(_: &RecordedRequest) -> ProviderResponse {
    ProviderResponse::new(302, "text/plain", "").header("location", &format!("/login/{KEY}"))
}

fn page(_: &RecordedRequest) -> ProviderResponse {
    ProviderResponse::new(200, "text/html", format!("<p>{KEY}</p>"))
}

#[test]
fn echoed_key_is_never_printed() {
    let answers: [(&str, i32, Echo); 4] = [
        ("200", 0, echoed),
        ("401", 3, refused),
        ("302", 3, led_away),
        ("HTML", 3, page),
    ];
    for (name, code, answer) in answers {
        let probe = ProbeSandbox::new();
        let server = FakeProvider::start(Script::by(move |seen, _| {
            answer(seen).header("x-echo", KEY).header("set-cookie", KEY)
        }));
        let url = format!("{}/v1", server.url());
        let asked = ["--base-url", &url, "--retries", "0"];
        let both = [
            "--mode",
            "stream",
            "--mode",
            "nonstream",
            "--capture",
            "raw",
        ];
        let snapshot = ["snapshot", "-p", "deepseek"];
        let run = ["run", "--old", "deepseek", "--new", "qwen"];
        let mut commands = vec![
            [&snapshot[..], &asked, &both, &["-o", "taken.json"]].concat(),
            [&snapshot[..], &asked, &["--quiet"]].concat(),
            [&snapshot[..], &asked, &["--quiet", "--compat", "tooldrift"]].concat(),
            [
                &["dialect", "-p", "deepseek", "-o", "dialect.json"],
                &asked[..],
            ]
            .concat(),
        ];
        for format in ["text", "json", "markdown", "junit", "sarif", "github"] {
            commands.push([&run[..], &asked, &["--format", format]].concat());
        }
        for args in commands {
            let mut command = probe.command(&args);
            command
                .env("DEEPSEEK_API_KEY", KEY)
                .env("DASHSCOPE_API_KEY", KEY);
            let said = command_output(command.output().unwrap());
            if args[0] == "snapshot" {
                assert_eq!(said.code, code, "{name}: {args:?}: {said:?}");
            }
            for text in [&said.out, &said.err] {
                assert!(!text.contains(KEY), "{name}: {args:?}: {text}");
            }
        }
        let seen = server.requests();
        let sent = seen
            .iter()
            .all(|it| it.header("authorization") == Some(&format!("Bearer {KEY}")));
        assert!(sent, "{name}");
        let kept = files(&probe.path(""));
        let captured = kept
            .iter()
            .filter(|it| it.extension().is_some_and(|it| it == "jsonl"));
        assert_eq!(captured.count(), 1);
        for path in kept {
            let bytes = std::fs::read(&path).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            assert!(
                !text.contains(KEY),
                "{name}: {} holds it: {text}",
                path.display()
            );
            assert!(!text.contains("Bearer sk-"), "{name}: {}", path.display());
        }
        let capture = probe.read("raw/deepseek.jsonl");
        assert!(
            capture.contains("***"),
            "what was masked can be seen: {capture}"
        );
    }
}

/// What a header of a contract takes from the environment is a secret too.
#[test]
fn headers_of_a_contract_are_kept_secret() {
    let probe = ProbeSandbox::new();
    let server = FakeProvider::start(Script::by(|seen, _| {
        ProviderResponse::refusal(401, &format!("wrong: {}", seen.header("x-team").unwrap()))
    }));
    probe.write(
        "suite.yaml",
        include_str!("../../../../examples/suite.weather.yaml"),
    );
    let contract = json!({
        "suite": "suite.yaml",
        "providers": {"a": {
            "base_url": server.url(), "model_id": "m", "headers": {"x-team": "${TEAM_TOKEN}"},
        }},
        "expected": {"get_weather": {"emitted": true}},
    });
    probe.write("c.yaml", &contract.to_string());
    let args = [
        "run",
        "--contract",
        "c.yaml",
        "--retries",
        "0",
        "--capture",
        "raw",
    ];
    let missing = probe.run_to(2, &args);
    assert!(missing.err.contains("TEAM_TOKEN"), "{}", missing.err);
    let mut command = probe.command(&args);
    command.env("TEAM_TOKEN", "team-secret-42");
    let said = command_output(command.output().unwrap());
    assert_eq!(said.code, 3, "{said:?}");
    let told = [said.out, said.err, probe.read("raw/a.jsonl")].concat();
    assert!(!told.contains("team-secret-42"), "{told}");
    assert!(told.contains("HTTP 401: wrong: ***"), "{told}");
}

/// The texts of a value that are not names.
fn texts(value: &Value, into: &mut String) {
    match value {
        Value::String(text) => into.push_str(text),
        Value::Array(items) => items.iter().for_each(|it| texts(it, into)),
        Value::Object(members) => members.values().for_each(|it| texts(it, into)),
        _ => {}
    }
}

/// A key that comes one character at a time is not to be read in a capture by joining them.
#[test]
fn a_key_in_pieces_is_not_kept() {
    let probe = ProbeSandbox::new();
    let piece = |delta: Value| json!({"choices": [{"index": 0, "delta": delta}]});
    let content = KEY.chars().map(|it| piece(json!({"content": it})));
    let (head, tail) = KEY.split_at(15);
    let arguments = [format!("{{\"location\":\"{head}"), format!("{tail}\"}}")];
    let arguments = arguments.map(|it| {
        let call =
            json!({"index": 0, "id": "c", "function": {"name": "get_weather", "arguments": it}});
        piece(json!({"tool_calls": [call]}))
    });
    let shouted =
        [head.to_uppercase(), tail.to_uppercase()].map(|it| piece(json!({"content": it})));
    let last = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]});
    let chunks: Vec<Value> = content
        .chain(arguments)
        .chain(shouted)
        .chain([last])
        .collect();
    let server = super::serving(event_stream(&chunks));
    let url = server.url();
    let args = ["snapshot", "-p", "deepseek", "--base-url", &url];
    let args = [&args[..], &["--mode", "stream", "--capture", "raw"]].concat();
    let mut command = probe.command(&args);
    command.env("DEEPSEEK_API_KEY", KEY);
    let told = command_output(command.output().unwrap());
    assert_eq!(told.code, 0, "{told:?}");
    let capture = probe.read("raw/deepseek.jsonl");
    let line = super::parsed(capture.lines().nth(1).unwrap());
    let body = line["body"]["text"].as_str().unwrap();
    let data = body.lines().filter_map(|it| it.strip_prefix("data: "));
    let mut joined = String::new();
    let mut events = 0;
    for event in data.filter(|it| *it != "[DONE]") {
        texts(&super::parsed(event), &mut joined);
        events += 1;
    }
    assert_eq!(events, chunks.len());
    assert!(
        !capture.contains(KEY) && !capture.contains(head),
        "{capture}"
    );
    assert!(!joined.to_lowercase().contains(KEY), "{joined}");
    assert!(joined.contains("\"location\":\"***"), "{joined}");
}

/// What no header can hold is a mistake in the environment, found before any request is sent.
#[test]
fn a_key_with_a_line_break_is_a_mistake() {
    let probe = ProbeSandbox::new();
    let server = super::serving(ProviderResponse::refusal(401, "no"));
    let url = server.url();
    let mut command = probe.command(&["snapshot", "-p", "deepseek", "--base-url", &url]);
    command.env("DEEPSEEK_API_KEY", "sk-first-line\nsk-second-line");
    let told = command_output(command.output().unwrap());
    assert_eq!(told.code, 2, "{told:?}");
    assert!(told.err.contains("$DEEPSEEK_API_KEY"), "{}", told.err);
    assert!(
        !told.err.contains("-line\n") && !told.err.contains("sk-"),
        "{}",
        told.err
    );
    assert!(server.requests().is_empty());
}
