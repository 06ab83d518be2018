//! Bad replies of kinds that real providers have sent.

use std::time::Duration;

use serde_json::{Value, json};
use toolwarden_model::Verdict;
use toolwarden_model::reply::{StreamMode, TrialFailure};
use toolwarden_testkit::provider::{
    FakeProvider, ProviderResponse, Script, chat_completion, good, tool_call,
};
use toolwarden_trials::{Options, compare};

use crate::support::{
    note_words, repeated, run_target, settings, snapshot_of, snapshot_without_times, target, trial,
};

fn json_answer(body: &Value) -> ProviderResponse {
    ProviderResponse::json(body)
}

fn message(message: &Value) -> ProviderResponse {
    json_answer(&chat_completion(message, &json!("tool_calls")))
}

fn calls(calls: &Value) -> ProviderResponse {
    message(&json!({"role": "assistant", "content": null, "tool_calls": calls}))
}

fn arguments(arguments: &Value) -> ProviderResponse {
    let mut call = tool_call("call_0a1b2c3d4e", "get_weather", "");
    call["function"]["arguments"].clone_from(arguments);
    calls(&json!([call]))
}

/// Responses that say nothing about the model are not measured, with a reason.
#[tokio::test]
async fn failures_are_never_contracts() {
    let html = "<html><body>Bad gateway</body></html>";
    let half = json_answer(&chat_completion(&good(), &json!("tool_calls")));
    let half = half.body().get(..200).unwrap().to_vec();
    for (name, answer, failure, detail) in [
        (
            "200 with an error",
            json_answer(&json!({"error": {"message": "overloaded", "code": "1"}})),
            TrialFailure::ErrorBody,
            "overloaded",
        ),
        (
            "200 with MiniMax's status",
            json_answer(
                &json!({"choices": null, "base_resp": {"status_code": 1004, "status_msg": "login fail"}}),
            ),
            TrialFailure::ErrorBody,
            "login fail",
        ),
        (
            "choices null",
            json_answer(&json!({"choices": null})),
            TrialFailure::Empty,
            "",
        ),
        (
            "no choices",
            json_answer(&json!({"choices": []})),
            TrialFailure::Empty,
            "",
        ),
        (
            "HTML",
            ProviderResponse::new(200, "text/html", html),
            TrialFailure::NotJson,
            "Bad gateway",
        ),
        (
            "nothing",
            ProviderResponse::new(200, "application/json", ""),
            TrialFailure::Empty,
            "",
        ),
        (
            "half of it",
            ProviderResponse::new(200, "application/json", half),
            TrialFailure::Truncated,
            "",
        ),
        (
            "a list",
            json_answer(&json!([1])),
            TrialFailure::WrongEnvelope,
            "",
        ),
        (
            "429",
            ProviderResponse::refusal(429, "slow down"),
            TrialFailure::Status,
            "HTTP 429: slow down",
        ),
        (
            "500",
            ProviderResponse::refusal(500, "oh no"),
            TrialFailure::Status,
            "HTTP 500: oh no",
        ),
        (
            "401",
            ProviderResponse::refusal(401, "no key"),
            TrialFailure::Status,
            "HTTP 401: no key",
        ),
        (
            "a refused schema",
            ProviderResponse::refusal(400, "Invalid schema for function 'get_weather'"),
            TrialFailure::SchemaRejected,
            "HTTP 400: Invalid schema for function 'get_weather'",
        ),
        (
            "302",
            ProviderResponse::new(302, "text/plain", "")
                .header("location", "https://example.com/login?token=1"),
            TrialFailure::Redirect,
            "HTTP 302 redirects to https://example.com/login, which is not followed",
        ),
        (
            "a broken connection",
            ProviderResponse::new(200, "application/json", "{\"choices\":")
                .split_at([4])
                .broken(),
            TrialFailure::Truncated,
            "the connection broke after",
        ),
    ] {
        let trial = trial(answer, StreamMode::Nonstream).await;
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
    let broken = ProviderResponse::json(&json!({"error": {"message": "overloaded"}}));
    let provider = FakeProvider::start(Script::always(broken));
    let one = run_target(target(&provider), &settings()).await;
    let other = run_target(target(&provider), &settings()).await;
    let (one, other) = (snapshot_of(&one), snapshot_of(&other));
    assert!(!one.is_measured());
    assert!(one.to_tooldrift().is_none());
    let compared = compare(&one, &other, &Options::default()).unwrap();
    assert_eq!(compared.verdict, Verdict::NotMeasured);
}

/// Every oddity of a reply is reported with its own code.
#[tokio::test]
async fn odd_replies_are_distinguished() {
    let weather = |arguments: &str| tool_call("call_0a1b2c3d4e", "get_weather", arguments);
    let nameless =
        json!({"id": "call_0a1b2c3d4e", "type": "function", "function": {"arguments": "{}"}});
    let with_bom = {
        let body = chat_completion(&good(), &json!("tool_calls")).to_string();
        ProviderResponse::new(200, "application/json", format!("\u{feff}{body}"))
    };
    let said = |text: &str| json!({"role": "assistant", "content": text});
    for (name, answer, expected) in [
        (
            "no calls",
            json_answer(&chat_completion(&said("It is sunny."), &json!("stop"))),
            vec![],
        ),
        (
            "no calls, by an empty list",
            calls(&json!([])),
            vec!["note empty-reply", "note finish-without-calls"],
        ),
        (
            "a call as text",
            json_answer(&chat_completion(
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
            "a tool that was not offered",
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
        let found = note_words(&trial(answer, StreamMode::Nonstream).await);
        assert_eq!(found, expected, "{name}");
    }
}

/// Events are assembled even if JSON was requested.
#[tokio::test]
async fn unrequested_stream_is_read() {
    let answer = toolwarden_testkit::provider::streamed_completion(&good(), &json!("tool_calls"));
    let trial = trial(answer, StreamMode::Nonstream).await;
    assert_eq!(note_words(&trial), ["note stream-for-json"]);
    let names: Vec<String> = trial
        .outcome
        .unwrap()
        .calls
        .into_iter()
        .map(|it| it.name)
        .collect();
    assert_eq!(names, ["get_weather", "get_forecast"]);
}

/// Differences between two providers are judged by the schema, over all calls.
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
            Verdict::Drift,
        ),
        (
            "a missing argument",
            json!([forecast(r#"{"location":"x"}"#)]),
            Verdict::Drift,
        ),
        (
            "a wrong type deep inside",
            json!([forecast(
                r#"{"location":"x","days":3,"include":{"wind":"yes"}}"#
            )]),
            Verdict::Drift,
        ),
        (
            "a wrong type in the second call",
            json!([
                forecast(r#"{"location":"x","days":3}"#),
                forecast(r#"{"location":"y","days":"3"}"#)
            ]),
            Verdict::Drift,
        ),
        (
            "a tool that was not offered",
            json!([
                forecast(r#"{"location":"x","days":3}"#),
                tool_call("call_1a1b2c3d4e", "rm_rf", "{}")
            ]),
            Verdict::Drift,
        ),
    ] {
        let settings = repeated(10, &[StreamMode::Nonstream]);
        let one = FakeProvider::start(Script::always(calls(&plain)));
        let two = FakeProvider::start(Script::always(calls(&other)));
        let one = snapshot_without_times(run_target(target(&one), &settings).await);
        let two = snapshot_without_times(run_target(target(&two), &settings).await);
        let compared = compare(&one, &two, &Options::default()).unwrap();
        assert_eq!(compared.verdict, verdict, "{name}: {:#?}", compared.changes);
    }
}

/// A provider that hangs costs no more than the timeout.
#[tokio::test]
async fn a_hanging_provider_is_given_up() {
    let hanging = ProviderResponse::new(200, "application/json", "{")
        .split_at([1])
        .hanging();
    let provider = FakeProvider::start(Script::always(hanging));
    let settings = toolwarden_probe::RunSettings {
        timeout: Duration::from_millis(300),
        ..settings()
    };
    let begun = std::time::Instant::now();
    let run = run_target(target(&provider), &settings).await;
    assert!(begun.elapsed() < Duration::from_secs(3));
    let failure = run.trials[0].outcome.clone().unwrap_err();
    assert_eq!(
        failure.to_string(),
        "timeout: no complete response within 0.3 s, 1 bytes received"
    );
    assert_eq!(run.trials[0].attempts, 1);
    assert_eq!(run.exchanges[0].1.body, b"{");
}
