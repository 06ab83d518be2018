//! Requests and responses on the wire, and what is kept of them.

use serde_json::json;
use toolwarden_model::reply::{StreamMode, WireApi};
use toolwarden_probe::SentRequest;
use toolwarden_testkit::provider::{FakeProvider, Script, wire_replies};

use crate::support::{KEY, repeated, run_target, target_on};

#[tokio::test]
async fn each_wire_is_asked_in_its_own_way() {
    let bearer = format!("Bearer {KEY}");
    let gemini = "/base/models/synthetic-1";
    for (wire, header, value, path, stream_path) in [
        (
            WireApi::OpenaiChat,
            "authorization",
            bearer.as_str(),
            "/base/chat/completions".to_owned(),
            "/base/chat/completions".to_owned(),
        ),
        (
            WireApi::OpenaiResponses,
            "authorization",
            bearer.as_str(),
            "/base/responses".to_owned(),
            "/base/responses".to_owned(),
        ),
        (
            WireApi::Anthropic,
            "x-api-key",
            KEY,
            "/base/messages".to_owned(),
            "/base/messages".to_owned(),
        ),
        (
            WireApi::Gemini,
            "x-goog-api-key",
            KEY,
            format!("{gemini}:generateContent"),
            format!("{gemini}:streamGenerateContent?alt=sse"),
        ),
    ] {
        let row = wire_replies()
            .into_iter()
            .find(|it| it.wire == wire.as_str())
            .unwrap();
        let provider =
            FakeProvider::start(Script::by_mode(row.nonstream.clone(), row.stream.clone()));
        let mut target = target_on(wire, &provider);
        target.provider.base_url.push_str("/base/");
        target
            .provider
            .extra_body
            .insert("extra".to_owned(), json!({"a": 1}));
        let run = run_target(target, &repeated(1, &StreamMode::ALL)).await;
        assert!(
            run.trials.iter().all(|it| it.outcome.is_ok()),
            "{:?}",
            run.trials
        );
        let seen = provider.requests();
        let mut paths: Vec<&str> = seen.iter().map(|it| it.path.as_str()).collect();
        paths.sort_unstable();
        assert_eq!(paths, [path.as_str(), stream_path.as_str()], "{wire}");
        for seen in &seen {
            assert_eq!(seen.header(header), Some(value), "{wire}");
            assert_eq!(seen.header("content-type"), Some("application/json"));
            let accept = if seen.wants_stream() {
                "text/event-stream"
            } else {
                "application/json"
            };
            assert_eq!(seen.header("accept"), Some(accept));
            assert_eq!(
                seen.header("anthropic-version").is_some(),
                wire == WireApi::Anthropic
            );
            assert_eq!(seen.body["extra"], json!({"a": 1}));
        }
        for ((key, exchange), answer) in run.exchanges.iter().zip([&row.nonstream, &row.stream]) {
            let SentRequest {
                method,
                url_path,
                headers,
                body,
            } = &exchange.request;
            assert_eq!(method, "POST");
            assert!(
                seen.iter()
                    .any(|it| it.path == format!("/base{url_path}") && it.body == *body)
            );
            assert!(
                headers.iter().all(|(name, _)| name != header),
                "{headers:?}"
            );
            assert_eq!(exchange.status, Some(200));
            assert_eq!(exchange.body, answer.body(), "{wire} {:?}", key.mode);
            assert_eq!(
                exchange.header("content-type").unwrap().contains("event"),
                key.mode == StreamMode::Stream
            );
            let (headers, first) = (
                exchange.headers_ms.unwrap(),
                exchange.first_event_ms.unwrap(),
            );
            assert!(headers <= first && first <= exchange.total_ms);
        }
    }
}

/// Both modes give the same calls on every wire.
#[tokio::test]
async fn streams_and_whole_replies_agree() {
    for (wire, row) in WireApi::ALL.into_iter().zip(wire_replies()) {
        let provider = FakeProvider::start(Script::by_mode(row.nonstream, row.stream));
        let run = run_target(target_on(wire, &provider), &repeated(1, &StreamMode::ALL)).await;
        let calls = |at: usize| -> Vec<_> {
            let measured = run.trials[at].outcome.as_ref().unwrap();
            let calls = measured.calls.iter();
            calls
                .map(|it| (it.name.clone(), it.value.clone(), it.faults.clone()))
                .collect()
        };
        assert_eq!(calls(0).len(), 2);
        assert_eq!(calls(0), calls(1), "{wire}");
        assert!(calls(0).iter().all(|it| it.2.is_empty()));
    }
}
