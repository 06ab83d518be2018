//! Bodies that a provider compresses or escapes are read, and keys in them are masked.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use toolwarden_model::reply::{StreamMode, TrialFailure};
use toolwarden_probe::RunSettings;
use toolwarden_testkit::provider::{
    FakeProvider, ProviderResponse, Script, chat_completion, good, streamed_completion,
};

use crate::support::{KEY, repeated, run_target, snapshot_of, target};

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

fn settings(mode: StreamMode) -> RunSettings {
    RunSettings {
        retries: 0,
        keep_exchanges: true,
        ..repeated(1, &[mode])
    }
}

#[tokio::test]
async fn a_body_that_is_compressed_unasked_is_read() {
    let mut message = good();
    message["content"] = json!(format!("Your key is {KEY}."));
    let whole = chat_completion(&message, &json!("tool_calls")).to_string();
    let stream = streamed_completion(&message, &json!("tool_calls"));
    for (mode, kind, body) in [
        (StreamMode::Nonstream, "application/json", whole.as_bytes()),
        (StreamMode::Stream, "text/event-stream", stream.body()),
    ] {
        for header in [Some("gzip"), None] {
            let mut answer = ProviderResponse::new(200, kind, gzip(body));
            if let Some(header) = header {
                answer = answer.header("content-encoding", header);
            }
            let provider = FakeProvider::start(Script::always(answer));
            let run = run_target(target(&provider), &settings(mode)).await;
            let reply = run.trials[0].outcome.as_ref().unwrap();
            assert_eq!(reply.calls.len(), 2);
            let exchange = &run.exchanges[0].1;
            let kept = String::from_utf8_lossy(&exchange.body);
            assert!(!kept.contains(KEY) && kept.contains("***"), "{kept}");
            assert_eq!(exchange.header("content-encoding"), None);
        }
    }
}

#[tokio::test]
async fn a_body_that_cannot_be_decompressed_is_not_kept() {
    let cut = gzip(KEY.repeat(50).as_bytes());
    for (encoding, body, failure) in [
        ("br", KEY.as_bytes().to_vec(), TrialFailure::NotJson),
        (
            "gzip",
            cut[..cut.len() / 2].to_vec(),
            TrialFailure::Truncated,
        ),
    ] {
        let answer = ProviderResponse::new(200, "application/json", body);
        let answer = answer.header("content-encoding", encoding);
        let provider = FakeProvider::start(Script::always(answer));
        let run = run_target(target(&provider), &settings(StreamMode::Nonstream)).await;
        let outcome = run.trials[0].outcome.as_ref().unwrap_err();
        assert_eq!(outcome.failure, failure, "{outcome}");
        assert_eq!(run.exchanges[0].1.body, Vec::<u8>::new());
    }
}

#[tokio::test]
async fn a_key_that_is_escaped_for_html_is_masked() {
    let numbers: String = KEY.bytes().map(|it| format!("&#{it};")).collect();
    let hexadecimal: String = KEY.bytes().map(|it| format!("&#x{it:02X};")).collect();
    let named = KEY.replace('-', "&hyphen;");
    for escaped in [numbers, hexadecimal, named] {
        let page = format!("<p>{escaped}</p>");
        let answer = ProviderResponse::new(401, "text/html", page);
        let provider = FakeProvider::start(Script::always(answer));
        let run = run_target(target(&provider), &settings(StreamMode::Nonstream)).await;
        assert_eq!(run.exchanges[0].1.body, b"<p>***</p>");
    }
}

#[tokio::test]
async fn another_model_and_refused_tools_are_findings() {
    let mut other = chat_completion(&good(), &json!("tool_calls"));
    for (model, found) in [
        ("synthetic-1", None),
        ("synthetic-1-2025-11-16", None),
        ("vendor/synthetic-1", None),
        ("synthetic-10", Some("synthetic-10")),
        ("another", Some("another")),
    ] {
        other["model"] = json!(model);
        let provider = FakeProvider::start(Script::always(ProviderResponse::json(&other)));
        let run = run_target(target(&provider), &settings(StreamMode::Nonstream)).await;
        let changes = toolwarden_trials::conformance(&snapshot_of(&run));
        let models = changes.iter().find(|it| it.rule == "models");
        assert_eq!(
            models.and_then(|it| it.after.as_ref()?.as_str()),
            found,
            "{model}"
        );
    }
    let refusal = ProviderResponse::refusal(400, "tools[0].function.parameters: unknown keyword");
    let provider = FakeProvider::start(Script::always(refusal));
    let run = run_target(target(&provider), &settings(StreamMode::Nonstream)).await;
    let snapshot = snapshot_of(&run);
    assert!(!snapshot.is_measured() && snapshot.rejects_tools());
    let rules: Vec<&str> = toolwarden_trials::conformance(&snapshot)
        .iter()
        .map(|it| it.rule)
        .collect();
    assert_eq!(rules, ["tools_rejected"]);
}
