//! Replies that are too large, and replies that are merely very large.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use toolwarden_model::reply::{StreamMode, TrialFailure};
use toolwarden_probe::{Provider, RunSettings, run_fixture};
use toolwarden_testkit::provider::{
    FakeProvider, ProviderResponse, Script, chat_completion, tool_call,
};

use crate::support::{repeated, run_target, settings, snapshot_of, suite, target};

#[tokio::test]
async fn a_body_is_read_up_to_its_limit() {
    let endless = ProviderResponse::new(200, "application/json", vec![b' '; 8 << 20]);
    let provider = FakeProvider::start(Script::always(endless));
    let settings = RunSettings {
        body_bytes: 1 << 20,
        ..settings()
    };
    let run = run_target(target(&provider), &settings).await;
    let failure = run.trials[0].outcome.as_ref().unwrap_err();
    assert_eq!(
        failure.to_string(),
        "too_large: the body has more than 1048576 bytes"
    );
    assert_eq!(run.exchanges[0].1.body.len(), 1 << 20);
    assert_eq!(run.trials[0].attempts, 1);
}

#[tokio::test]
async fn exchanges_are_kept_only_if_asked_for() {
    let provider = FakeProvider::start(Script::always(ProviderResponse::refusal(400, "no")));
    let settings = RunSettings {
        keep_exchanges: false,
        ..repeated(3, &StreamMode::ALL)
    };
    let run = run_target(target(&provider), &settings).await;
    assert_eq!((run.trials.len(), run.exchanges.len()), (6, 0));
}

/// Sizes for which the original program took seconds.
#[test]
fn very_large_replies_stay_bearable() {
    let weather = |arguments: &str| tool_call("call_0a1b2c3d4e", "get_weather", arguments);
    let called =
        |calls: Vec<Value>| chat_completion(&json!({"tool_calls": calls}), &json!("tool_calls"));
    let long = format!(r#"{{"location":"{}"}}"#, "x".repeat(30 << 20));
    let keys: Map<String, Value> = (0..200_000)
        .map(|it| (format!("key{it}"), json!(it)))
        .collect();
    let keys = Value::Object(keys).to_string();
    let digits = format!(r#"{{"location":"x","days":{}}}"#, "9".repeat(1 << 20));
    for (name, body, faults) in [
        ("30 MB of text", called(vec![weather(&long)]), vec![]),
        (
            "200,000 keys",
            called(vec![weather(&keys)]),
            vec!["required"],
        ),
        (
            "100,000 calls",
            called(vec![weather(r#"{"location":"x"}"#); 100_000]),
            vec![],
        ),
        (
            "a million digits",
            called(vec![tool_call("call_0a1b2c3d4e", "get_forecast", &digits)]),
            vec!["type"],
        ),
    ] {
        let body = body.to_string();
        let provider = Provider::custom("fake", "http://127.0.0.1", "synthetic-1");
        let begun = Instant::now();
        let run = run_fixture(provider, &suite(), body.as_bytes());
        let text = snapshot_of(&run).to_text();
        assert!(
            begun.elapsed() < Duration::from_secs(8),
            "{name}: {:?}",
            begun.elapsed()
        );
        assert!(text.len() < 1 << 20, "{name}: {} bytes", text.len());
        let measured = run.trials[0].outcome.as_ref().unwrap();
        let found: Vec<&str> = measured.calls[0]
            .faults
            .iter()
            .map(|it| it.keyword.as_str())
            .collect();
        assert_eq!(found, faults, "{name}");
    }
}

#[test]
fn a_body_that_nests_without_end_is_no_reply() {
    let deep = format!("{{\"choices\":{}", "[".repeat(1 << 20));
    let provider = Provider::custom("fake", "http://127.0.0.1", "synthetic-1");
    let run = run_fixture(provider, &suite(), deep.as_bytes());
    assert_eq!(
        run.trials[0].outcome.as_ref().unwrap_err().failure,
        TrialFailure::TooLarge
    );
}

/// Reading a large reply does not delay other tasks.
#[tokio::test]
async fn a_large_reply_is_measured_beside_others() {
    let long = format!(r#"{{"location":"{}"}}"#, "x".repeat(8 << 20));
    let call = tool_call("call_0a1b2c3d4e", "get_weather", &long);
    let large = chat_completion(&json!({"tool_calls": [call]}), &json!("tool_calls"));
    let provider = FakeProvider::start(Script::always(ProviderResponse::json(&large)));
    let run = run_target(target(&provider), &repeated(3, &[StreamMode::Nonstream])).await;
    let measured = run.trials.iter().map(|it| it.outcome.as_ref().unwrap());
    assert!(measured.into_iter().all(|it| it.calls.len() == 1));
    assert!(run.exchanges.iter().all(|(_, it)| it.body.len() > 8 << 20));
}
