//! Retries, concurrency and budgets.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;
use toolwarden_model::reply::{StreamMode, TrialFailure};
use toolwarden_probe::{ProbeTarget, RunProgress, RunSettings, run_suite, run_suite_until};
use toolwarden_testkit::provider::{FakeProvider, ProviderResponse, Script, chat_completion, good};

use crate::support::{repeated, run_target, settings, snapshot_of, suite, target};

fn fine() -> ProviderResponse {
    ProviderResponse::json(&chat_completion(&good(), &json!("tool_calls")))
}

#[tokio::test]
async fn a_pause_the_provider_names_is_kept() {
    let in_seconds = || "1".to_owned();
    let as_a_date = || {
        let later = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(2);
        later.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
    };
    let named: [fn() -> String; 2] = [in_seconds, as_a_date];
    for after in named {
        let provider = FakeProvider::start(Script::by(move |_, before| match before {
            0 => ProviderResponse::refusal(429, "slow down").header("retry-after", &after()),
            _ => fine(),
        }));
        let after = after();
        let run = run_target(target(&provider), &settings()).await;
        assert_eq!(run.trials[0].attempts, 2);
        assert!(run.trials[0].outcome.is_ok());
        let seen = provider.requests();
        let pause = seen[1].at - seen[0].at;
        assert!(pause >= Duration::from_millis(950), "{after}: {pause:?}");
        assert!(pause < Duration::from_secs(4), "{after}: {pause:?}");
        let keys: Vec<u32> = run.exchanges.iter().map(|(key, _)| key.attempt).collect();
        assert_eq!(keys, [1, 2]);
        let counts = snapshot_of(&run).trials;
        assert_eq!(
            (
                counts.delivery_first.to_string(),
                counts.delivery_eventual.to_string()
            ),
            ("0 of 1".into(), "1 of 1".into())
        );
    }
}

#[tokio::test]
async fn what_passes_is_tried_again_a_bounded_number_of_times() {
    let broken = || {
        ProviderResponse::new(200, "application/json", "{\"a\":")
            .split_at([3])
            .broken()
    };
    for (name, answers, requests, failure) in [
        (
            "503 for ever",
            vec![ProviderResponse::refusal(503, "down")],
            4,
            Some(TrialFailure::Status),
        ),
        (
            "529 once",
            vec![ProviderResponse::refusal(529, "overloaded"), fine()],
            2,
            None,
        ),
        ("broken twice", vec![broken(), broken(), fine()], 3, None),
        (
            "400",
            vec![ProviderResponse::refusal(400, "no")],
            1,
            Some(TrialFailure::Status),
        ),
        (
            "401",
            vec![ProviderResponse::refusal(401, "no")],
            1,
            Some(TrialFailure::Status),
        ),
        (
            "an hour",
            vec![
                ProviderResponse::refusal(429, "later").header("retry-after", "3600"),
                fine(),
            ],
            1,
            Some(TrialFailure::Status),
        ),
    ] {
        let provider = FakeProvider::start(Script::in_turn(answers));
        let run = run_target(target(&provider), &settings()).await;
        assert_eq!(provider.requests().len(), requests, "{name}");
        let found = run.trials[0].outcome.as_ref().err().map(|it| it.failure);
        assert_eq!(found, failure, "{name}");
        assert_eq!(run.trials[0].attempts as usize, requests, "{name}");
    }
}

#[tokio::test]
async fn timeout_is_not_a_reply() {
    let gone = FakeProvider::start(Script::always(fine()));
    let target = target(&gone);
    drop(gone);
    let run = run_target(target, &settings()).await;
    let failure = run.trials[0].outcome.clone().unwrap_err();
    assert_eq!(failure.failure, TrialFailure::Connection);
    assert!(
        failure
            .detail
            .starts_with("no answer from http://127.0.0.1:"),
        "{failure}"
    );
    assert_eq!(run.trials[0].attempts, 4);
}

#[tokio::test]
async fn the_deadline_ends_everything() {
    let slow = fine().after_delay(Duration::from_secs(1));
    let provider = FakeProvider::start(Script::always(slow));
    let settings = RunSettings {
        deadline: Some(Duration::from_millis(1_700)),
        concurrency: 1,
        ..repeated(5, &[StreamMode::Nonstream])
    };
    let begun = Instant::now();
    let run = run_target(target(&provider), &settings).await;
    assert!(begun.elapsed() < Duration::from_secs(4));
    let found: Vec<Option<TrialFailure>> = run
        .trials
        .iter()
        .map(|it| it.outcome.as_ref().err().map(|it| it.failure))
        .collect();
    let not_asked = Some(TrialFailure::NotAsked);
    assert_eq!(
        found,
        [
            None,
            Some(TrialFailure::Timeout),
            not_asked,
            not_asked,
            not_asked
        ]
    );
    let busy = ProviderResponse::refusal(429, "slow down").header("retry-after", "30");
    let provider = FakeProvider::start(Script::always(busy));
    let begun = Instant::now();
    let run = run_target(target(&provider), &settings).await;
    assert!(begun.elapsed() < Duration::from_secs(4));
    assert_eq!(
        run.trials[0].outcome.as_ref().unwrap_err().failure,
        TrialFailure::Status
    );
}

#[tokio::test]
async fn the_budget_of_tokens_ends_the_asking() {
    let provider = FakeProvider::start(Script::always(fine()));
    let settings = RunSettings {
        max_cost_tokens: Some(2_000),
        concurrency: 1,
        ..repeated(40, &[StreamMode::Nonstream])
    };
    let run = run_target(target(&provider), &settings).await;
    let asked = provider.requests().len();
    // 250 tokens each, as reported by the provider, plus the tokens reserved for one request.
    assert!((3..=8).contains(&asked), "{asked}");
    let refused = run.trials.iter().filter_map(|it| it.outcome.as_ref().err());
    let refused: Vec<String> = refused.map(ToString::to_string).collect();
    assert_eq!(refused.len(), 40 - asked);
    let used = asked * 250;
    let told =
        format!("not_asked: {used} of the 2000 tokens for this provider are used, and another");
    assert!(refused[0].starts_with(&told), "{}", refused[0]);
}

/// Reservations of requests in flight do not end a run, because they may turn out to be unneeded.
/// Each provider has its own budget.
#[tokio::test]
async fn a_trial_waits_for_what_others_do_not_need() {
    let small = || {
        let mut body = chat_completion(&good(), &json!("tool_calls"));
        body["usage"] = json!({"prompt_tokens": 5, "completion_tokens": 5});
        let answer = ProviderResponse::json(&body).after_delay(Duration::from_millis(20));
        FakeProvider::start(Script::always(answer))
    };
    let providers = [small(), small()];
    let settings = RunSettings {
        max_cost_tokens: Some(1_500),
        concurrency: 8,
        ..repeated(16, &[StreamMode::Nonstream])
    };
    let targets = providers.iter().map(target).collect();
    let runs = run_suite(targets, &suite(), &settings, |_| {}).await;
    for (run, provider) in runs.iter().zip(&providers) {
        assert!(run.trials.iter().all(|it| it.outcome.is_ok()), "{run:?}");
        assert_eq!(provider.requests().len(), 16);
    }
}

#[tokio::test]
async fn what_was_received_before_a_stop_is_kept() {
    let script = Script::by(|_, before| match before {
        0 | 1 => fine(),
        2 => ProviderResponse::refusal(503, "later"),
        _ => fine().after_delay(Duration::from_secs(60)),
    });
    let provider = FakeProvider::start(script);
    let settings = RunSettings {
        concurrency: 1,
        ..repeated(5, &[StreamMode::Nonstream])
    };
    let begun = Instant::now();
    let stop = tokio::time::sleep(Duration::from_millis(1_000));
    let runs = run_suite_until(vec![target(&provider)], &suite(), &settings, |_| {}, stop).await;
    assert!(begun.elapsed() < Duration::from_secs(10));
    let kept = runs[0].exchanges.iter();
    let kept: Vec<_> = kept
        .map(|(key, it)| (key.repetition, key.attempt, it.status))
        .collect();
    assert_eq!(
        kept,
        [(0, 1, Some(200)), (1, 1, Some(200)), (2, 1, Some(503))]
    );
    let told = runs[0].trials.iter().map(|it| match &it.outcome {
        Ok(_) => "measured".to_owned(),
        Err(failure) => failure.to_string(),
    });
    let told: Vec<String> = told.collect();
    let interrupted = "not_asked: the run was interrupted";
    assert_eq!(
        told,
        [
            "measured",
            "measured",
            "status: HTTP 503: later",
            interrupted,
            interrupted
        ]
    );
}

#[tokio::test]
async fn providers_run_concurrently_and_independently() {
    let slow = || {
        FakeProvider::start(Script::always(
            fine().after_delay(Duration::from_millis(500)),
        ))
    };
    let providers = [slow(), slow(), slow(), slow()];
    let broken = FakeProvider::start(Script::always(ProviderResponse::refusal(401, "no")));
    let mut targets: Vec<ProbeTarget> = providers.iter().map(target).collect();
    targets.insert(1, target(&broken));
    let mut nowhere = target(&broken);
    nowhere.provider.base_url = "not an address".to_owned();
    targets.push(nowhere);
    let told = Arc::new(Mutex::new(Vec::new()));
    let telling = Arc::clone(&told);
    let begun = Instant::now();
    let runs = run_suite(targets, &suite(), &settings(), move |it| {
        telling.lock().unwrap().push(it);
    })
    .await;
    // Four times 500 ms in sequence would be 2 s.
    assert!(
        begun.elapsed() < Duration::from_millis(1_500),
        "{:?}",
        begun.elapsed()
    );
    let found = runs
        .iter()
        .map(|it| it.trials[0].outcome.as_ref().err().map(|it| it.failure));
    let found: Vec<Option<TrialFailure>> = found.collect();
    let expected = [
        None,
        Some(TrialFailure::Status),
        None,
        None,
        None,
        Some(TrialFailure::NotAsked),
    ];
    assert_eq!(found, expected);
    let told = told.lock().unwrap();
    let finished = told
        .iter()
        .filter(|it| matches!(it, RunProgress::Finished { .. }))
        .count();
    assert_eq!(finished, 6);
    assert_eq!(
        told.iter()
            .filter(|it| matches!(it, RunProgress::Started { .. }))
            .count(),
        6
    );
}

#[tokio::test]
async fn a_provider_gets_no_more_than_its_share_at_a_time() {
    let provider = FakeProvider::start(Script::always(
        fine().after_delay(Duration::from_millis(200)),
    ));
    let settings = RunSettings {
        concurrency: 3,
        ..repeated(6, &[StreamMode::Nonstream])
    };
    let begun = Instant::now();
    run_target(target(&provider), &settings).await;
    // Six times 200 ms in sequence would be 1.2 s.
    assert!(begun.elapsed() < Duration::from_millis(1_100));
    let seen = provider.requests();
    assert_eq!(seen.len(), 6);
    // The fourth request waits for the first.
    assert!(seen[3].at - seen[0].at >= Duration::from_millis(190));
}

#[tokio::test]
async fn trials_come_in_order_whatever_order_they_end_in() {
    let script = Script::by(|_, before| {
        let late = u64::try_from(before % 3).unwrap() * 30;
        fine().after_delay(Duration::from_millis(late))
    });
    let provider = FakeProvider::start(script);
    let settings = repeated(3, &[StreamMode::Stream, StreamMode::Nonstream]);
    let run = run_target(target(&provider), &settings).await;
    let order = run.trials.iter().map(|it| (it.mode, it.repetition));
    let expected = [StreamMode::Nonstream, StreamMode::Stream];
    let expected = expected
        .into_iter()
        .flat_map(|mode| (0..3).map(move |it| (mode, it)));
    assert!(order.eq(expected), "{:?}", run.trials);
    let keys = run
        .exchanges
        .iter()
        .map(|(key, _)| (key.mode, key.repetition));
    assert!(keys.eq(run.trials.iter().map(|it| (it.mode, it.repetition))));
}
