//! A run repeated from its capture gives the same snapshot.

use std::time::Duration;

use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use toolwarden_model::reply::{StreamMode, TrialFailure, WireApi};
use toolwarden_probe::replay::{RecordedExchange, serve};
use toolwarden_probe::{Exchange, RunSettings, SuiteRun, capture, fixture};
use toolwarden_testkit::provider::{FakeProvider, ProviderResponse, Script, wire_replies};

use crate::support::{repeated, run_target, snapshot_of, suite, target_on};

/// Runs against a replay of recordings.
async fn replayed(
    recordings: Vec<RecordedExchange>,
    wire: WireApi,
    settings: &RunSettings,
) -> SuiteRun {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let server = tokio::spawn(serve(recordings, listener, async {
        let _dropped = stopped.await;
    }));
    let unused = FakeProvider::start(Script::always(ProviderResponse::refusal(500, "unused")));
    let mut target = target_on(wire, &unused);
    target.provider.base_url = format!("http://{address}/v1");
    let run = run_target(target, settings).await;
    stop.send(()).unwrap();
    server.await.unwrap().unwrap();
    run
}

fn without_connection(mut exchange: Exchange) -> Exchange {
    let own = ["date", "content-length", "transfer-encoding", "retry-after"];
    exchange
        .headers
        .retain(|(name, _)| !own.contains(&name.as_str()));
    exchange
}

#[tokio::test]
async fn a_repeated_run_gives_the_same_snapshot() {
    for (wire, row) in WireApi::ALL.into_iter().zip(wire_replies()) {
        let script = Script::by(move |seen, before| match before {
            3 => ProviderResponse::refusal(429, "slow – down").header("retry-after", "0"),
            5 => ProviderResponse::new(302, "text/plain", "").header("location", "/elsewhere"),
            7 => ProviderResponse::new(200, "application/json", "{\"a")
                .split_at([2])
                .hanging(),
            9 => ProviderResponse::new(200, "application/octet-stream", [0xff, 0xfe, 0x00]),
            10 | 11 => ProviderResponse::new(200, "application/json", "{\"a\":")
                .split_at([2])
                .broken(),
            _ if seen.wants_stream() => row
                .stream
                .clone()
                .with_chunk_delay(Duration::from_millis(1)),
            _ => row.nonstream.clone(),
        });
        let provider = FakeProvider::start(script);
        let settings = RunSettings {
            timeout: Duration::from_millis(800),
            ..repeated(8, &StreamMode::ALL)
        };
        let first = run_target(target_on(wire, &provider), &settings).await;
        let failures = first
            .trials
            .iter()
            .filter_map(|it| it.outcome.as_ref().err());
        let mut failures: Vec<TrialFailure> = failures.map(|it| it.failure).collect();
        failures.sort();
        assert_eq!(
            failures,
            [
                TrialFailure::Timeout,
                TrialFailure::Redirect,
                TrialFailure::NotJson
            ],
            "{wire}"
        );

        let folder = tempfile::tempdir().unwrap();
        capture::write(folder.path(), &suite().name, std::slice::from_ref(&first)).unwrap();
        let captures = capture::read(folder.path()).unwrap();
        assert_eq!(captures[0].exchanges, first.exchanges);
        let recordings = captures
            .iter()
            .flat_map(RecordedExchange::from_capture)
            .collect();
        let second = replayed(recordings, wire, &settings).await;
        assert_eq!(second.trials, first.trials, "{wire}");
        assert_eq!(
            snapshot_of(&second).to_text(),
            snapshot_of(&first).to_text(),
            "{wire}"
        );
        let plain = |run: SuiteRun| -> Vec<Exchange> {
            run.exchanges
                .into_iter()
                .map(|(_, it)| without_connection(it))
                .collect()
        };
        assert_eq!(plain(second), plain(first), "{wire}");
    }
}

#[tokio::test]
async fn a_fixture_is_one_trial() {
    let body = fixture("deepseek").unwrap();
    let recording = RecordedExchange::from_fixture(
        "deepseek",
        WireApi::OpenaiChat,
        StreamMode::Nonstream,
        "synthetic-1",
        body,
    );
    let run = replayed(
        vec![recording],
        WireApi::OpenaiChat,
        &repeated(3, &[StreamMode::Nonstream]),
    )
    .await;
    let offline = toolwarden_probe::run_fixture(run.provider.clone(), &suite(), body);
    assert!(offline.trials[0].outcome.is_ok());
    assert_eq!(run.trials[0].outcome, offline.trials[0].outcome);
    let others = run.trials[1..].iter().map(|it| it.outcome.as_ref());
    let others: Vec<String> = others.map(|it| it.unwrap_err().to_string()).collect();
    assert_eq!(
        others,
        ["status: HTTP 404: nothing was recorded for this trial"; 2]
    );
    let run = replayed(
        Vec::new(),
        WireApi::OpenaiChat,
        &repeated(1, &[StreamMode::Nonstream]),
    )
    .await;
    let failure = run.trials[0].outcome.as_ref().unwrap_err();
    assert_eq!(
        failure.to_string(),
        "status: HTTP 404: nothing was recorded for this trial"
    );
}

#[test]
fn a_capture_says_what_is_wrong_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let head = json!({
        "schema": "toolwarden/probe/capture/v1", "provider": "p", "model_id": "m",
        "wire": "openai-chat", "suite": "s"
    });
    let head = head.to_string();
    for (text, told) in [
        (
            String::new(),
            "a.jsonl is not a capture: its first line does not name `toolwarden/probe/capture/v1`",
        ),
        (
            head.replace("/v1", "/v9"),
            "a.jsonl is not a capture: its first line does not name `toolwarden/probe/capture/v1`",
        ),
        (
            head.replace("openai-chat", "openai-chatt"),
            "a.jsonl: unknown wire `openai-chatt`, did you mean `openai-chat`?",
        ),
        (
            format!("{head}\n\n{{\"case\":1}}\n"),
            "a.jsonl, line 3: invalid type: integer `1`, expected a string at line 1 column 9",
        ),
    ] {
        let path = folder.path().join("a.jsonl");
        std::fs::write(&path, text).unwrap();
        let error = capture::read(&path).unwrap_err().to_string();
        assert_eq!(
            error.replace(&format!("{}/", folder.path().display()), ""),
            told
        );
    }
}
