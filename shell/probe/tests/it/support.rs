use std::num::NonZeroU32;
use std::time::Duration;

use toolwarden_model::reply::{ArgumentsClass, CallIdClass, StreamMode, WireApi};
use toolwarden_probe::{
    ApiKey, ProbeSuite, ProbeTarget, Provider, RunSettings, SuiteRun, run_suite,
};
use toolwarden_testkit::provider::{FakeProvider, ProviderResponse, Script};
use toolwarden_trials::{Snapshot, Trial, TrialOrigin, build_snapshot};

/// The key that must appear nowhere.
pub(crate) const KEY: &str = "sk-test-key-1234567890abcdef";

pub(crate) fn suite() -> ProbeSuite {
    ProbeSuite::bundled().unwrap()
}

/// Settings with short waits.
pub(crate) fn settings() -> RunSettings {
    RunSettings {
        timeout: Duration::from_secs(20),
        backoff: Duration::from_millis(5),
        ..RunSettings::default()
    }
}

pub(crate) fn repeated(repeat: u32, modes: &[StreamMode]) -> RunSettings {
    RunSettings {
        repeat: NonZeroU32::new(repeat),
        modes: Some(modes.to_vec()),
        ..settings()
    }
}

pub(crate) fn target_on(wire: WireApi, provider: &FakeProvider) -> ProbeTarget {
    let described = Provider::custom("fake", &provider.url(), "synthetic-1");
    ProbeTarget {
        provider: Provider { wire, ..described },
        key: ApiKey::new(KEY),
        headers: toolwarden_probe::ProviderHeaders::default(),
    }
}

pub(crate) fn target(provider: &FakeProvider) -> ProbeTarget {
    target_on(WireApi::OpenaiChat, provider)
}

/// Runs the bundled suite against one provider.
pub(crate) async fn run_target(target: ProbeTarget, settings: &RunSettings) -> SuiteRun {
    let mut runs = run_suite(vec![target], &suite(), settings, |_| {}).await;
    assert_eq!(runs.len(), 1);
    runs.remove(0)
}

/// The only trial of a provider that always sends the same reply.
pub(crate) async fn trial(answer: ProviderResponse, mode: StreamMode) -> Trial {
    let provider = FakeProvider::start(Script::always(answer));
    let settings = RunSettings {
        retries: 0,
        ..repeated(1, &[mode])
    };
    let mut run = run_target(target(&provider), &settings).await;
    assert_eq!(run.trials.len(), 1);
    run.trials.remove(0)
}

pub(crate) fn snapshot_of(run: &SuiteRun) -> Snapshot {
    let origin = TrialOrigin {
        provider: run.provider.name.clone(),
        model_id: run.provider.model_id.clone(),
        wire: run.provider.wire,
        at: None,
    };
    build_snapshot(origin, &suite().facts(), &run.trials)
}

/// The snapshot of trials without measured times.
pub(crate) fn snapshot_without_times(mut run: SuiteRun) -> Snapshot {
    for trial in &mut run.trials {
        trial.latency_ms = None;
        trial.first_event_ms = None;
    }
    snapshot_of(&run)
}

/// The oddities of a trial, as text, without the clients that fail on its reply.
pub(crate) fn note_words(trial: &Trial) -> Vec<String> {
    let mut words = all_words(trial);
    words.retain(|it| !it.starts_with("note client-"));
    words
}

/// The oddities of a trial, as text, and the clients that fail on its reply.
pub(crate) fn all_words(trial: &Trial) -> Vec<String> {
    let measured = match &trial.outcome {
        Ok(measured) => measured,
        Err(failure) => return vec![format!("failure {}", failure.failure.as_str())],
    };
    let mut signs = Vec::new();
    for call in &measured.calls {
        if call.class != ArgumentsClass::JsonObjectString {
            signs.push(format!("class {}", call.class.as_str()));
        }
        let id = CallIdClass::of(call.id.as_ref());
        if id != CallIdClass::OpenaiCall {
            signs.push(format!("id {}", id.as_str()));
        }
        let faults = call.faults.iter();
        signs.extend(faults.map(|it| format!("fault {} {}", it.keyword, it.pointer.as_str())));
    }
    let ids: Vec<_> = measured.calls.iter().map(|it| &it.id).collect();
    if ids
        .iter()
        .enumerate()
        .any(|(at, id)| ids[..at].contains(id))
    {
        signs.push("id repeated".to_owned());
    }
    let leaks = measured.leaks.iter();
    signs.extend(leaks.map(|it| format!("leak {} {}", it.family, it.place.as_str())));
    signs.extend(measured.notes.iter().map(|it| format!("note {}", it.0)));
    signs.sort();
    signs.dedup();
    signs
}
