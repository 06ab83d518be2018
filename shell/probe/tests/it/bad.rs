//! Replies that are bad in ways providers were seen to have.

use std::time::Duration;

use serde_json::{Value, json};
use toolwarden_drift::contract::{Options, Verdict, compare};
use toolwarden_model::reply::{Failure, Mode};
use toolwarden_testkit::provider::{Answer, FakeProvider, Script, good, tool_call, whole};

use crate::support::{ask, repeated, settings, signs, snapshot_of, target, timeless, trial};

fn json_answer(body: &Value) -> Answer {
    Answer::json(body)
}

fn message(message: &Value) -> Answer {
    json_answer(&whole(message, &json!("tool_calls")))
}

fn calls(calls: &Value) -> Answer {
    message(&json!({"role": "assistant", "content": null, "tool_calls": calls}))
}

fn arguments(arguments: &Value) -> Answer {
    let mut call = tool_call("call_0a1b2c3d4e", "get_weather", "");
    call["function"]["arguments"].clone_from(arguments);
    calls(&json!([call]))
}

/// What says nothing about the model is not measured, and says why.
#[tokio::test]
async fn failures_are_never_contracts() {
    let html = "<html><body>Bad gateway</body></html>";
    let half = json_answer(&whole(&good(), &json!("tool_calls")));
    let half = half.body().get(..200).unwrap().to_vec();
    for (name, answer, failure, detail) in [
        (
            "200 with an error",
            json_answer(&json!({"error": {"message": "overloaded", "code": "1"}})),
            Failure::ErrorBody,
            "overloaded",
        ),
        (
            "200 with MiniMax's status",
            json_answer(
                &json!({"choices": null, "base_resp": {"status_code": 1004, "status_msg": "login fail"}}),
            ),
            Failure::ErrorBody,
            "login fail",
        ),
        (
            "choices null",
            json_answer(&json!({"choices": null})),
            Failure::Empty,
            "",
        ),
        (
            "no choices",
            json_answer(&json!({"choices": []})),
            Failure::Empty,
            "",
        ),
        (
            "HTML",
            Answer::new(200, "text/html", html),
            Failure::NotJson,
            "Bad gateway",
        ),
        (
            "nothing",
            Answer::new(200, "application/json", ""),
            Failure::Empty,
            "",
        ),
        (
            "half of it",
            Answer::new(200, "application/json", half),
            Failure::Truncated,
            "",
        ),
        (
            "a list",
            json_answer(&json!([1])),
            Failure::WrongEnvelope,
            "",
        ),
        (
            "429",
            Answer::refusal(429, "slow down"),
            Failure::Status,
            "HTTP 429: slow down",
        ),
        (
            "500",
            Answer::refusal(500, "oh no"),
            Failure::Status,
            "HTTP 500: oh no",
        ),
        (
            "401",
            Answer::refusal(401, "no key"),
            Failure::Status,
            "HTTP 401: no key",
        ),
        (
            "a refused schema",
            Answer::refusal(400, "Invalid schema for function 'get_weather'"),
            Failure::SchemaRejected,
            "HTTP 400: Invalid schema for function 'get_weather'",
        ),
        (
            "302",
            Answer::new(302, "text/plain", "")
                .header("location", "https://example.com/login?token=1"),
            Failure::Redirect,
            "HTTP 302 leads to https://example.com/login, which is not followed",
        ),
        (
            "a broken connection",
            Answer::new(200, "application/json", "{\"choices\":")
                .split_at([4])
                .broken(),
            Failure::Truncated,
            "the connection broke after",
        ),
    ] {
        let trial = trial(answer, Mode::Nonstream).await;
        let outcome = trial.outcome.map_err(|it| (it.failure, it.detail));
        let Err((found, told)) = outcome else {
            panic!("{name} is taken for a reply");
        };
        assert_eq!(found, failure, "{name}: {told}");
        assert!(told.contains(detail), "{name}: {told}");
    }
}

#[tokio::test]
async fn two_failing_providers_are_not_equal() {
    let broken = Answer::json(&json!({"error": {"message": "overloaded"}}));
    let provider = FakeProvider::start(Script::always(broken));
    let one = ask(target(&provider), &settings()).await;
    let other = ask(target(&provider), &settings()).await;
    let (one, other) = (snapshot_of(&one), snapshot_of(&other));
    assert!(!one.is_measured());
    assert!(one.to_tooldrift().is_none());
    let compared = compare(&one, &other, &Options::default()).unwrap();
    assert_eq!(compared.verdict, Verdict::Inconclusive);
}

/// What is odd about a reply is told, and told apart.
#[tokio::test]
async fn odd_replies_are_told_apart() {
    let weather = |arguments: &str| tool_call("call_0a1b2c3d4e", "get_weather", arguments);
    let nameless =
        json!({"id": "call_0a1b2c3d4e", "type": "function", "function": {"arguments": "{}"}});
    let with_bom = {
        let body = whole(&good(), &json!("tool_calls")).to_string();
        Answer::new(200, "application/json", format!("\u{feff}{body}"))
    };
    let said = |text: &str| json!({"role": "assistant", "content": text});
    for (name, answer, expected) in [
        (
            "no calls",
            json_answer(&whole(&said("It is sunny."), &json!("stop"))),
            vec![],
        ),
        (
            "no calls, by an empty list",
            calls(&json!([])),
            vec!["note empty-reply", "note finish-without-calls"],
        ),
        (
            "a call as text",
            json_answer(&whole(
                &said(
                    "```json\n{\"name\": \"get_weather\", \"arguments\": {\"location\": \"Paris\"}}\n```",
                ),
                &json!("stop"),
            )),
            vec!["leak json-text text", "note leaked-call"],
        ),
        (
            "calls that are an object",
            calls(&json!({"0": weather("{}")})),
            vec![
                "note empty-reply",
                "note finish-without-calls",
                "note malformed-tool-calls",
            ],
        ),
        (
            "calls that are strings",
            calls(&json!(["get_weather", null])),
            vec![
                "note empty-reply",
                "note finish-without-calls",
                "note malformed-tool-calls",
            ],
        ),
        (
            "a call without a name",
            calls(&json!([nameless])),
            vec![
                "note empty-reply",
                "note finish-without-calls",
                "note malformed-tool-calls",
            ],
        ),
        (
            "invalid JSON",
            arguments(&json!("{location}")),
            vec!["class invalid"],
        ),
        ("empty", arguments(&json!("")), vec!["class empty_string"]),
        (
            "an array",
            arguments(&json!("[1]")),
            vec!["class json_non_object"],
        ),
        (
            "a number",
            arguments(&json!("5")),
            vec!["class json_non_object"],
        ),
        (
            "encoded twice",
            arguments(&json!(r#""{\"location\":\"Paris\"}""#)),
            vec!["class double_encoded"],
        ),
        (
            "a legal {}",
            arguments(&json!("{}")),
            vec!["fault required "],
        ),
        (
            "against the schema",
            calls(&json!([tool_call(
                "call_0a1b2c3d4e",
                "get_forecast",
                r#"{"location":"x","days":"3"}"#
            )])),
            vec!["fault type /days"],
        ),
        (
            "3.0 for 3",
            calls(&json!([tool_call(
                "call_0a1b2c3d4e",
                "get_forecast",
                r#"{"location":"x","days":3.0}"#
            )])),
            vec![],
        ),
        (
            "a tool nobody offered",
            calls(&json!([tool_call("call_0a1b2c3d4e", "rm_rf", "{}")])),
            vec![],
        ),
        ("a byte order mark", with_bom, vec![]),
        (
            "a name that looks like markup",
            calls(&json!([tool_call(
                "call_0a1b2c3d4e",
                "[/red]",
                r#"{"[red]x":1}"#
            )])),
            vec![],
        ),
    ] {
        let found = signs(&trial(answer, Mode::Nonstream).await);
        assert_eq!(found, expected, "{name}");
    }
}

/// Events where JSON was asked for are put together.
#[tokio::test]
async fn a_stream_nobody_asked_for_is_read() {
    let answer = toolwarden_testkit::provider::streamed(&good(), &json!("tool_calls"));
    let trial = trial(answer, Mode::Nonstream).await;
    assert_eq!(signs(&trial), ["note stream-for-json"]);
    let names: Vec<String> = trial
        .outcome
        .unwrap()
        .calls
        .into_iter()
        .map(|it| it.name)
        .collect();
    assert_eq!(names, ["get_weather", "get_forecast"]);
}

/// What differs between two providers is judged by the schema, over all calls.
#[tokio::test]
async fn differences_are_judged_by_the_schema() {
    let forecast = |arguments: &str| tool_call("call_0a1b2c3d4e", "get_forecast", arguments);
    let plain = json!([forecast(r#"{"location":"x","days":3}"#)]);
    for (name, other, verdict) in [
        (
            "3.0 for 3",
            json!([forecast(r#"{"location":"x","days":3.0}"#)]),
            Verdict::Pass,
        ),
        (
            "an optional argument",
            json!([forecast(r#"{"location":"x","days":3,"unit":"celsius"}"#)]),
            Verdict::Pass,
        ),
        (
            "a wrong type",
            json!([forecast(r#"{"location":"x","days":"3"}"#)]),
            Verdict::Fail,
        ),
        (
            "a missing argument",
            json!([forecast(r#"{"location":"x"}"#)]),
            Verdict::Fail,
        ),
        (
            "a wrong type deep inside",
            json!([forecast(
                r#"{"location":"x","days":3,"include":{"wind":"yes"}}"#
            )]),
            Verdict::Fail,
        ),
        (
            "a wrong type in the second call",
            json!([
                forecast(r#"{"location":"x","days":3}"#),
                forecast(r#"{"location":"y","days":"3"}"#)
            ]),
            Verdict::Fail,
        ),
        (
            "a tool nobody offered",
            json!([
                forecast(r#"{"location":"x","days":3}"#),
                tool_call("call_1a1b2c3d4e", "rm_rf", "{}")
            ]),
            Verdict::Fail,
        ),
    ] {
        let settings = repeated(10, &[Mode::Nonstream]);
        let one = FakeProvider::start(Script::always(calls(&plain)));
        let two = FakeProvider::start(Script::always(calls(&other)));
        let one = timeless(ask(target(&one), &settings).await);
        let two = timeless(ask(target(&two), &settings).await);
        let compared = compare(&one, &two, &Options::default()).unwrap();
        assert_eq!(compared.verdict, verdict, "{name}: {:#?}", compared.changes);
    }
}

/// A provider that hangs costs the timeout and nothing more.
#[tokio::test]
async fn a_hanging_provider_is_given_up() {
    let hanging = Answer::new(200, "application/json", "{")
        .split_at([1])
        .hanging();
    let provider = FakeProvider::start(Script::always(hanging));
    let settings = toolwarden_probe::Settings {
        timeout: Duration::from_millis(300),
        ..settings()
    };
    let begun = std::time::Instant::now();
    let run = ask(target(&provider), &settings).await;
    assert!(begun.elapsed() < Duration::from_secs(3));
    let failure = run.trials[0].outcome.clone().unwrap_err();
    assert_eq!(
        failure.to_string(),
        "timeout: no whole response within 0.3 s, 1 bytes came"
    );
    assert_eq!(run.trials[0].attempts, 1);
    assert_eq!(run.exchanges[0].1.body, b"{");
}
