use std::num::NonZeroU32;
use std::time::Duration;

use toolwarden_drift::contract::{Origin, Snapshot, Trial, snapshot};
use toolwarden_model::reply::{ArgumentsClass, IdClass, Mode, Wire};
use toolwarden_probe::{Key, Provider, Run, Settings, Suite, Target, run};
use toolwarden_testkit::provider::{Answer, FakeProvider, Script};

/// The key that must turn up nowhere.
pub(crate) const KEY: &str = "sk-test-key-1234567890abcdef";

pub(crate) fn suite() -> Suite {
    Suite::bundled().unwrap()
}

/// Settings that do not wait long for anything.
pub(crate) fn settings() -> Settings {
    Settings {
        timeout: Duration::from_secs(20),
        backoff: Duration::from_millis(5),
        ..Settings::default()
    }
}

pub(crate) fn repeated(repeat: u32, modes: &[Mode]) -> Settings {
    Settings {
        repeat: NonZeroU32::new(repeat),
        modes: Some(modes.to_vec()),
        ..settings()
    }
}

pub(crate) fn target_on(wire: Wire, provider: &FakeProvider) -> Target {
    let described = Provider::custom("fake", &provider.url(), "synthetic-1");
    Target {
        provider: Provider { wire, ..described },
        key: Key::new(KEY),
        headers: toolwarden_probe::Headers::default(),
    }
}

pub(crate) fn target(provider: &FakeProvider) -> Target {
    target_on(Wire::OpenaiChat, provider)
}

/// One provider, asked the bundled suite.
pub(crate) async fn ask(target: Target, settings: &Settings) -> Run {
    let mut runs = run(vec![target], &suite(), settings, |_| {}).await;
    assert_eq!(runs.len(), 1);
    runs.remove(0)
}

/// The only trial of a provider that always answers the same.
pub(crate) async fn trial(answer: Answer, mode: Mode) -> Trial {
    let provider = FakeProvider::start(Script::always(answer));
    let settings = Settings {
        retries: 0,
        ..repeated(1, &[mode])
    };
    let mut run = ask(target(&provider), &settings).await;
    assert_eq!(run.trials.len(), 1);
    run.trials.remove(0)
}

pub(crate) fn snapshot_of(run: &Run) -> Snapshot {
    let origin = Origin {
        provider: run.provider.name.clone(),
        model_id: run.provider.model_id.clone(),
        wire: run.provider.wire,
        at: None,
    };
    snapshot(origin, &suite().facts(), &run.trials)
}

/// The snapshot of trials without what a clock measured.
pub(crate) fn timeless(mut run: Run) -> Snapshot {
    for trial in &mut run.trials {
        trial.latency_ms = None;
        trial.first_event_ms = None;
    }
    snapshot_of(&run)
}

/// What is odd about a trial, in words.
pub(crate) fn signs(trial: &Trial) -> Vec<String> {
    let measured = match &trial.outcome {
        Ok(measured) => measured,
        Err(failure) => return vec![format!("failure {}", failure.failure.as_str())],
    };
    let mut signs = Vec::new();
    for call in &measured.calls {
        if call.class != ArgumentsClass::JsonObjectString {
            signs.push(format!("class {}", call.class.as_str()));
        }
        let id = IdClass::of(call.id.as_ref());
        if id != IdClass::OpenaiCall {
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
