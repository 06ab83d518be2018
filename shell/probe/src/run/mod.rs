//! Runs a suite against providers: all at once, each with its own concurrency and retries.

mod conversation;
mod measure;
mod plan;
mod retry;
mod token_budget;
mod trial_runner;

use std::collections::BTreeSet;
use std::future::pending;
use std::num::NonZeroU32;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use toolwarden_model::reply::{StreamMode, TrialFailure};
use toolwarden_trials::Trial;

use crate::exchange::{Exchange, ProviderClient};
use crate::probe_target::ProbeTarget;
use crate::provider::Provider;
use crate::reply_observer::ReplyObserver;
use crate::secret::Redactor;
use crate::suite::ProbeSuite;
use measure::{ReplyContext, measure_body};
use trial_runner::TrialOutcome;

pub(crate) use plan::PlannedTrial;
pub(crate) use token_budget::TokenBudget;
pub(crate) use trial_runner::TrialRunner;

/// The settings of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSettings {
    /// The timeout of one request.
    pub timeout: Duration,
    /// The deadline of the whole run.
    pub deadline: Option<Duration>,
    /// How often a request is retried after a transient failure.
    pub retries: u32,
    /// The backoff before the first retry if the provider names none; it doubles each time.
    pub backoff: Duration,
    /// How many requests to one provider may be in flight.
    pub concurrency: usize,
    /// The maximum tokens for each provider.
    pub max_cost_tokens: Option<u64>,
    /// The maximum size of a body.
    pub body_bytes: usize,
    /// How often each case is repeated; overrides the suite.
    pub repeat: Option<NonZeroU32>,
    /// The index of the first repetition, for a run that continues another.
    pub first_repetition: u32,
    /// The modes to request replies in; overrides the suite.
    pub modes: Option<Vec<StreamMode>>,
    /// Whether requests and responses are kept; measuring does not need them.
    pub keep_exchanges: bool,
}

impl Default for RunSettings {
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
            first_repetition: 0,
            modes: None,
            keep_exchanges: true,
        }
    }
}

/// The result of a suite for one provider.
#[derive(Clone, Debug, PartialEq)]
pub struct SuiteRun {
    /// The provider.
    pub provider: Provider,
    /// One trial for each case, mode and repetition, in this order.
    pub trials: Vec<Trial>,
    /// The requests and responses, in the same order.
    pub exchanges: Vec<(TrialKey, Exchange)>,
}

impl SuiteRun {
    /// Adds the trials of a run that continued this one.
    pub fn extend(&mut self, more: Self, suite: &ProbeSuite) {
        let place = |name: &str| suite.cases.iter().position(|it| it.name == name);
        self.trials.extend(more.trials);
        self.trials
            .sort_by_key(|it| (place(&it.case), it.mode, it.repetition));
        self.exchanges.extend(more.exchanges);
        self.exchanges
            .sort_by_key(|(key, _)| (place(&key.case), key.mode, key.repetition, key.attempt));
    }

    /// The tokens that the replies took, as far as the provider reported them.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        let replies = self.trials.iter().filter_map(|it| it.outcome.as_ref().ok());
        let tokens = replies.flat_map(|it| [it.usage.input, it.usage.output]);
        tokens.flatten().fold(0, u64::saturating_add)
    }
}

/// Identifies one request of one trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrialKey {
    /// The case.
    pub case: String,
    /// Whether the reply was requested whole or as a stream.
    pub mode: StreamMode,
    /// The repetition of the case in this mode.
    pub repetition: u32,
    /// The attempt, starting at 1.
    pub attempt: u32,
}

/// An event during a run.
#[derive(Clone, Debug, PartialEq)]
pub enum RunProgress {
    /// A provider is about to be queried.
    Started {
        /// Its index among the targets.
        target: usize,
        /// The number of trials.
        trials: usize,
    },
    /// A request will be retried after a pause.
    Retrying {
        /// The index of the provider among the targets.
        target: usize,
        /// The length of the pause.
        pause: Duration,
        /// The cause.
        reason: TrialFailure,
    },
    /// A trial is finished.
    Finished {
        /// The index of the provider among the targets.
        target: usize,
        /// Why it was not measured, if it was not.
        failure: Option<TrialFailure>,
    },
}

/// How long after the deadline the outcomes of requests that it ended are collected.
const DEADLINE_GRACE: Duration = Duration::from_secs(1);

/// Runs a suite against all targets at once. The targets do not affect each other.
///
/// The runs are returned in the order of the targets.
pub async fn run_suite(
    targets: Vec<ProbeTarget>,
    suite: &ProbeSuite,
    settings: &RunSettings,
    progress: impl Fn(RunProgress) + Send + Sync + 'static,
) -> Vec<SuiteRun> {
    run_suite_until(targets, suite, settings, progress, pending()).await
}

/// Like [`run_suite`], until `stop` resolves. Requests in flight are then cancelled, and earlier results
/// are kept.
pub async fn run_suite_until(
    targets: Vec<ProbeTarget>,
    suite: &ProbeSuite,
    settings: &RunSettings,
    progress: impl Fn(RunProgress) + Send + Sync + 'static,
    stop: impl Future<Output = ()>,
) -> Vec<SuiteRun> {
    let begun = Instant::now();
    let redactor = redactor_of(&targets);
    let observer = Arc::new(ReplyObserver::new(&suite.tools));
    let progress: Arc<dyn Fn(RunProgress) + Send + Sync> = Arc::new(progress);
    let (stopping, stopped) = watch::channel(false);
    let mut works = JoinSet::new();
    let mut runs = Vec::new();
    for (place, target) in targets.into_iter().enumerate() {
        let caller = ProviderClient::new(&target, redactor.clone(), settings.body_bytes);
        let (target, provider) = (place, target.provider);
        let planned = plan::plan_trials(&provider, suite, settings);
        progress(RunProgress::Started {
            target,
            trials: planned.len(),
        });
        let asker = Arc::new(TrialRunner {
            target,
            client: caller,
            wire: provider.wire,
            observer: Arc::clone(&observer),
            redactor: redactor.clone(),
            budget: Arc::new(TokenBudget::new(settings.max_cost_tokens)),
            progress: Arc::clone(&progress),
            settings: settings.clone(),
            deadline: settings.deadline.map(|it| begun + it),
            stop: stopped.clone(),
        });
        let permits = Arc::new(Semaphore::new(settings.concurrency.max(1)));
        for (place, planned) in planned.iter().cloned().enumerate() {
            let (asker, permits) = (Arc::clone(&asker), Arc::clone(&permits));
            works.spawn(async move {
                // The semaphore is never closed.
                let _permit = permits.acquire_owned().await;
                (target, place, asker.run_trial(&planned).await)
            });
        }
        let outcomes: Vec<Option<TrialOutcome>> = planned.iter().map(|_| None).collect();
        runs.push((provider, planned, outcomes));
    }
    let mut stop = pin!(stop);
    // Requests end at the deadline by themselves; what still reads a large reply is not awaited.
    let deadline = settings.deadline.map(|it| begun + it + DEADLINE_GRACE);
    loop {
        let work = tokio::select! {
            () = wait_until(deadline) => break,
            () = &mut stop, if !*stopping.borrow() => {
                stopping.send_replace(true);
                continue;
            }
            work = works.join_next() => work,
        };
        let Some(work) = work else {
            break;
        };
        // A trial that panicked does not affect the others; it has no outcome.
        let Ok((target, place, outcome)) = work else {
            continue;
        };
        let slot = runs.get_mut(target).and_then(|it| it.2.get_mut(place));
        if let Some(slot) = slot {
            *slot = Some(outcome);
        }
    }
    runs.into_iter().map(collect_run).collect()
}

async fn wait_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}

/// Evaluates a fixture: the body of one complete reply to the first case of a suite.
#[must_use]
pub fn run_fixture(provider: Provider, suite: &ProbeSuite, body: &[u8]) -> SuiteRun {
    let observer = ReplyObserver::new(&suite.tools);
    let case = suite.cases.first();
    let reading = ReplyContext {
        wire: provider.wire,
        mode: StreamMode::Nonstream,
        observer: &observer,
        renamed: &[],
        redactor: None,
    };
    let trial = Trial {
        case: case.map(|it| it.name.clone()).unwrap_or_default(),
        mode: StreamMode::Nonstream,
        repetition: 0,
        outcome: measure_body("application/json", body, &reading),
        attempts: 1,
        latency_ms: None,
        first_event_ms: None,
    };
    SuiteRun {
        provider,
        trials: vec![trial],
        exchanges: Vec::new(),
    }
}

pub(crate) fn redactor_of(targets: &[ProbeTarget]) -> Redactor {
    Redactor::new(targets.iter().flat_map(ProbeTarget::secrets).cloned())
}

/// The outcomes in the order of cases, modes and repetitions, regardless of the order of the
/// requests.
fn collect_run(run: (Provider, Vec<PlannedTrial>, Vec<Option<TrialOutcome>>)) -> SuiteRun {
    let (provider, planned, outcomes) = run;
    let mut rows: Vec<_> = planned.into_iter().zip(outcomes).collect();
    rows.sort_by_key(|(planned, _)| (planned.case_index, planned.mode, planned.repetition));
    let mut trials = Vec::new();
    let mut exchanges = Vec::new();
    let mut later_turns = BTreeSet::new();
    for (planned, outcome) in rows {
        let names = planned.conversation.iter().flat_map(|it| it.turn_names());
        later_turns.extend(names.map(|name| (name.to_owned(), planned.mode)));
        let outcome = outcome.unwrap_or_else(|| {
            let reason = "the deadline of the run or an internal error stopped this trial";
            TrialOutcome::not_run(reason.to_owned())
        });
        let mut turns = vec![(planned.case.clone(), outcome)];
        if let Some((_, first)) = turns.first_mut() {
            let later = std::mem::take(&mut first.later_turns);
            turns.extend(later);
        }
        for (case, outcome) in turns {
            let key = |attempt| TrialKey {
                case: case.clone(),
                mode: planned.mode,
                repetition: planned.repetition,
                attempt,
            };
            exchanges.extend((1..).map(key).zip(outcome.exchanges));
            trials.push(Trial {
                case: case.clone(),
                mode: planned.mode,
                repetition: planned.repetition,
                outcome: outcome.measured,
                attempts: outcome.attempts,
                latency_ms: outcome.latency_ms,
                first_event_ms: outcome.first_event_ms,
            });
        }
    }
    let reached = |name: &str, mode: StreamMode| {
        let mut trials = trials.iter();
        trials.any(|it: &Trial| it.case == name && it.mode == mode)
    };
    later_turns.retain(|(name, mode)| !reached(name, *mode));
    trials.extend(later_turns.into_iter().map(unreached_turn));
    SuiteRun {
        provider,
        trials,
        exchanges,
    }
}

/// A turn that no reply reached. Without this trial, it would be missing from the result as if the suite
/// did not have it.
fn unreached_turn((case, mode): (String, StreamMode)) -> Trial {
    let detail = "no reply of the turn before called a tool that this turn has a result for";
    let outcome = TrialOutcome::not_run(detail.to_owned());
    Trial {
        case,
        mode,
        repetition: 0,
        outcome: outcome.measured,
        attempts: 0,
        latency_ms: None,
        first_event_ms: None,
    }
}
