//! A suite put to providers: all of them at once, each with its own pace.

mod attempt;
mod budget;
mod measure;
mod pause;
mod plan;
mod target;

use std::future::pending;
use std::num::NonZeroU32;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use toolwarden_drift::contract::Trial;
use toolwarden_model::reply::{Failure, Mode};

use crate::exchange::{Caller, Exchange};
use crate::observe::Observer;
use crate::provider::Provider;
use crate::secret::Redactor;
use crate::suite::Suite;
use attempt::Outcome;
use measure::{Reading, measured};

pub(crate) use attempt::Asker;
pub(crate) use budget::Budget;
pub(crate) use plan::Planned;
pub use target::{MissingSecret, Target};

/// How a run is made.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// How long one request may take.
    pub timeout: Duration,
    /// How long the whole run may take.
    pub deadline: Option<Duration>,
    /// How often a request is sent again after it failed for a passing reason.
    pub retries: u32,
    /// The pause before the first repeat where the provider names none; it doubles each time.
    pub backoff: Duration,
    /// How many requests one provider gets at a time.
    pub concurrency: usize,
    /// How many tokens each provider may take.
    pub max_cost_tokens: Option<u64>,
    /// The largest body that is read.
    pub body_bytes: usize,
    /// How often each case is repeated, in place of what the suite says.
    pub repeat: Option<NonZeroU32>,
    /// How replies are asked for, in place of what the suite says.
    pub modes: Option<Vec<Mode>>,
    /// Whether what was sent and received is kept; measuring does not need it.
    pub keep_exchanges: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(60),
            deadline: None,
            retries: 3,
            backoff: Duration::from_millis(500),
            concurrency: 4,
            max_cost_tokens: None,
            body_bytes: 64 << 20,
            repeat: None,
            modes: None,
            keep_exchanges: true,
        }
    }
}

/// What one provider did with a suite.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The provider.
    pub provider: Provider,
    /// One trial for each case, mode and repetition, in this order.
    pub trials: Vec<Trial>,
    /// What was sent and received, in the same order.
    pub exchanges: Vec<(TrialKey, Exchange)>,
}

/// Which request of which trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrialKey {
    /// The case.
    pub case: String,
    /// Whether the reply was to come whole or in pieces.
    pub mode: Mode,
    /// Which repetition of the case in this mode it is.
    pub repetition: u32,
    /// Which try it is, from one.
    pub attempt: u32,
}

/// What happens while a run is made.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// A provider is about to be asked.
    Started {
        /// Its place among the targets.
        target: usize,
        /// How many trials there will be.
        trials: usize,
    },
    /// A request is sent again after a pause.
    Waiting {
        /// The place of the provider among the targets.
        target: usize,
        /// How long.
        pause: Duration,
        /// Why.
        reason: Failure,
    },
    /// A trial is over.
    Finished {
        /// The place of the provider among the targets.
        target: usize,
        /// What kept it from being measured, if something did.
        failure: Option<Failure>,
    },
}

/// Puts a suite to all targets at once. What one of them does changes nothing for the others.
///
/// The runs come in the order of the targets.
pub async fn run(
    targets: Vec<Target>,
    suite: &Suite,
    settings: &Settings,
    progress: impl Fn(Progress) + Send + Sync + 'static,
) -> Vec<Run> {
    run_until(targets, suite, settings, progress, pending()).await
}

/// As [`run`], until `stop` is ready. What is being asked then is given up, and what was received
/// before is kept.
pub async fn run_until(
    targets: Vec<Target>,
    suite: &Suite,
    settings: &Settings,
    progress: impl Fn(Progress) + Send + Sync + 'static,
    stop: impl Future<Output = ()>,
) -> Vec<Run> {
    let begun = Instant::now();
    let redactor = redactor_of(&targets);
    let observer = Arc::new(Observer::new(&suite.tools));
    let progress: Arc<dyn Fn(Progress) + Send + Sync> = Arc::new(progress);
    let (stopping, stopped) = watch::channel(false);
    let mut works = JoinSet::new();
    let mut runs = Vec::new();
    for (place, target) in targets.into_iter().enumerate() {
        let caller = Caller::new(&target, redactor.clone(), settings.body_bytes);
        let (target, provider) = (place, target.provider);
        let planned = plan::planned(&provider, suite, settings);
        progress(Progress::Started {
            target,
            trials: planned.len(),
        });
        let asker = Arc::new(Asker {
            target,
            caller,
            wire: provider.wire,
            observer: Arc::clone(&observer),
            redactor: redactor.clone(),
            budget: Arc::new(Budget::new(settings.max_cost_tokens)),
            progress: Arc::clone(&progress),
            settings: settings.clone(),
            ends: settings.deadline.map(|it| begun + it),
            stop: stopped.clone(),
        });
        let permits = Arc::new(Semaphore::new(settings.concurrency.max(1)));
        for (place, planned) in planned.iter().cloned().enumerate() {
            let (asker, permits) = (Arc::clone(&asker), Arc::clone(&permits));
            works.spawn(async move {
                // The semaphore is never closed.
                let _permit = permits.acquire_owned().await;
                (target, place, asker.ask(&planned).await)
            });
        }
        let outcomes: Vec<Option<Outcome>> = planned.iter().map(|_| None).collect();
        runs.push((provider, planned, outcomes));
    }
    let mut stop = pin!(stop);
    loop {
        let work = tokio::select! {
            () = &mut stop, if !*stopping.borrow() => {
                stopping.send_replace(true);
                continue;
            }
            work = works.join_next() => work,
        };
        let Some(work) = work else {
            break;
        };
        // A trial that panicked says nothing about the others; its place stays empty.
        let Ok((target, place, outcome)) = work else {
            continue;
        };
        let slot = runs.get_mut(target).and_then(|it| it.2.get_mut(place));
        if let Some(slot) = slot {
            *slot = Some(outcome);
        }
    }
    runs.into_iter().map(collected).collect()
}

/// What a fixture says: the body of one whole reply, taken for the first case of a suite.
#[must_use]
pub fn offline(provider: Provider, suite: &Suite, body: &[u8]) -> Run {
    let observer = Observer::new(&suite.tools);
    let case = suite.cases.first();
    let reading = Reading {
        wire: provider.wire,
        mode: Mode::Nonstream,
        observer: &observer,
        renamed: &[],
        redactor: None,
    };
    let trial = Trial {
        case: case.map(|it| it.name.clone()).unwrap_or_default(),
        mode: Mode::Nonstream,
        repetition: 0,
        outcome: measured(body, &reading),
        attempts: 1,
        latency_ms: None,
        first_event_ms: None,
    };
    Run {
        provider,
        trials: vec![trial],
        exchanges: Vec::new(),
    }
}

pub(crate) fn redactor_of(targets: &[Target]) -> Redactor {
    Redactor::new(targets.iter().flat_map(Target::secrets).cloned())
}

/// The outcomes in the order of cases, modes and repetitions, whatever order they were asked in.
fn collected(run: (Provider, Vec<Planned>, Vec<Option<Outcome>>)) -> Run {
    let (provider, planned, outcomes) = run;
    let mut rows: Vec<_> = planned.into_iter().zip(outcomes).collect();
    rows.sort_by_key(|(planned, _)| (planned.case_index, planned.mode, planned.repetition));
    let mut trials = Vec::new();
    let mut exchanges = Vec::new();
    for (planned, outcome) in rows {
        let outcome = outcome.unwrap_or_else(|| {
            Outcome::not_asked("the trial broke off inside this program".to_owned())
        });
        let key = |attempt| TrialKey {
            case: planned.case.clone(),
            mode: planned.mode,
            repetition: planned.repetition,
            attempt,
        };
        exchanges.extend((1..).map(key).zip(outcome.exchanges));
        trials.push(Trial {
            case: planned.case.clone(),
            mode: planned.mode,
            repetition: planned.repetition,
            outcome: outcome.measured,
            attempts: outcome.attempts,
            latency_ms: outcome.latency_ms,
            first_event_ms: outcome.first_event_ms,
        });
    }
    Run {
        provider,
        trials,
        exchanges,
    }
}
