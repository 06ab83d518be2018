use std::fmt;
use std::future::pending;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};
use toolwarden_model::reply::{NotMeasured, TokenUsage, TrialFailure, WireApi};
use toolwarden_trials::MeasuredReply;

use super::measure::{ReplyContext, measure_exchange};
use super::plan::PlannedTrial;
use super::retry::{jitter, retry_delay, retryable_failure};
use super::token_budget::{TokenBudget, token_cost};
use super::{RunProgress, RunSettings};
use crate::exchange::{Exchange, ProviderClient, ProviderRequest};
use crate::reply_observer::ReplyObserver;
use crate::secret::Redactor;

/// The longest pause that a provider may request in a run without a deadline. If it requests more,
/// the request is not retried.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(120);

/// The largest body that is read on the async runtime's own threads.
const LARGE_BODY_BYTES: usize = 1 << 18;

/// What the trials of one provider share.
pub(crate) struct TrialRunner {
    pub(crate) target: usize,
    pub(crate) client: Result<ProviderClient, NotMeasured>,
    pub(crate) wire: WireApi,
    pub(crate) observer: Arc<ReplyObserver>,
    pub(crate) redactor: Redactor,
    pub(crate) budget: Arc<TokenBudget>,
    pub(crate) progress: Arc<dyn Fn(RunProgress) + Send + Sync>,
    pub(crate) settings: RunSettings,
    /// The deadline of the run.
    pub(crate) deadline: Option<Instant>,
    /// Becomes true when the run is cancelled.
    pub(crate) stop: watch::Receiver<bool>,
}

impl fmt::Debug for TrialRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrialRunner")
            .field("target", &self.target)
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}

/// The outcome of one trial.
#[derive(Debug)]
pub(crate) struct TrialOutcome {
    pub(crate) measured: Result<MeasuredReply, NotMeasured>,
    pub(crate) attempts: u32,
    pub(crate) latency_ms: Option<f64>,
    pub(crate) first_event_ms: Option<f64>,
    pub(crate) exchanges: Vec<Exchange>,
    /// The body of the measured reply, if a turn follows it.
    reply_body: Option<Vec<u8>>,
    /// The outcomes of the later turns that were reached, with their names.
    pub(crate) later_turns: Vec<(String, Self)>,
}

impl TrialOutcome {
    /// A trial that was not sent, and why.
    pub(super) const fn not_run(detail: String) -> Self {
        Self {
            measured: Err(NotMeasured {
                failure: TrialFailure::NotAsked,
                detail,
            }),
            attempts: 0,
            latency_ms: None,
            first_event_ms: None,
            exchanges: Vec::new(),
            reply_body: None,
            later_turns: Vec::new(),
        }
    }
}

impl TrialRunner {
    pub(crate) async fn run_trial(&self, planned: &PlannedTrial) -> TrialOutcome {
        let mut outcome = TrialOutcome::not_run("the deadline of the run passed".to_owned());
        match &self.client {
            Ok(caller) => {
                tokio::select! {
                    biased;
                    () = self.wait_for_stop() => {
                        if outcome.attempts == 0 {
                            outcome = TrialOutcome::not_run("the run was interrupted".to_owned());
                        }
                    }
                    () = self.run_turns(caller, planned, &mut outcome) => {}
                }
            }
            Err(reason) => outcome.measured = Err(reason.clone()),
        }
        (self.progress)(RunProgress::Finished {
            target: self.target,
            failure: outcome.measured.as_ref().err().map(|it| it.failure),
        });
        outcome
    }

    async fn wait_for_stop(&self) {
        let mut stop = self.stop.clone();
        if stop.wait_for(|it| *it).await.is_err() {
            // The sender is gone, so the run can no longer be cancelled.
            pending::<()>().await;
        }
    }

    /// Runs the turns of a case, each after the reply to the one before. A turn that cannot be reached
    /// is not planned: the reply that ended the conversation shows what went wrong.
    async fn run_turns(
        &self,
        caller: &ProviderClient,
        planned: &PlannedTrial,
        outcome: &mut TrialOutcome,
    ) {
        self.attempt_until_measured(caller, planned, outcome).await;
        let Some(conversation) = &planned.conversation else {
            return;
        };
        let mut messages = conversation.first_messages();
        let mut body = outcome.reply_body.take();
        let mut renamed = planned.request.renamed.clone();
        for turn in 0.. {
            let (Some(received), Some(name)) = (body.take(), conversation.turn_name(turn)) else {
                return;
            };
            let next = conversation.next_request(turn, &mut messages, &received, &renamed);
            let Some(request) = next else {
                return;
            };
            renamed.clone_from(&request.renamed);
            let planned = PlannedTrial {
                case: name.to_owned(),
                request: Arc::new(request),
                ..planned.clone()
            };
            let unsent = TrialOutcome::not_run("the run ended before this turn".to_owned());
            outcome.later_turns.push((name.to_owned(), unsent));
            let Some((_, later)) = outcome.later_turns.last_mut() else {
                return;
            };
            self.attempt_until_measured(caller, &planned, later).await;
            body = later.reply_body.take();
        }
    }

    /// If this future is dropped, the outcome keeps what was received so far.
    async fn attempt_until_measured(
        &self,
        caller: &ProviderClient,
        planned: &PlannedTrial,
        outcome: &mut TrialOutcome,
    ) {
        loop {
            let reserving = self.budget.reserve(&planned.request.body);
            let Ok(reserved) = timeout(self.time_left(), reserving).await else {
                return;
            };
            let reserved = match reserved {
                Ok(reserved) => reserved,
                Err(exhausted) => {
                    if outcome.attempts == 0 {
                        *outcome = TrialOutcome::not_run(exhausted.to_string());
                    }
                    return;
                }
            };
            let within = self.time_left().min(self.settings.timeout);
            if within.is_zero() {
                return;
            }
            outcome.attempts += 1;
            let trial = format!(
                "{}/{}/{}",
                planned.mode.as_str(),
                planned.repetition,
                outcome.attempts
            );
            let asking = ProviderRequest {
                path: &planned.request.path,
                body: &planned.request.body,
                mode: planned.mode,
                trial: &trial,
            };
            let exchange = caller.exchange(&asking, within).await;
            let (exchange, measured) = self.measure(exchange, planned).await;
            outcome.measured = measured;
            let took = self.token_cost(&exchange, &outcome.measured);
            reserved.spend(took);
            let next = self.retry_delay(&exchange, outcome.attempts);
            if outcome.measured.is_ok() {
                outcome.latency_ms = Some(exchange.total_ms);
                outcome.first_event_ms = exchange.first_event_ms;
                if planned.conversation.is_some() {
                    outcome.reply_body = Some(exchange.body.clone());
                }
            }
            if self.settings.keep_exchanges {
                outcome.exchanges.push(exchange);
            }
            let Some((reason, pause)) = next else {
                return;
            };
            (self.progress)(RunProgress::Retrying {
                target: self.target,
                pause,
                reason,
            });
            sleep(pause).await;
        }
    }

    /// Evaluates an exchange. Large bodies are read on a blocking thread, so that they do not delay
    /// other tasks.
    async fn measure(
        &self,
        exchange: Exchange,
        planned: &PlannedTrial,
    ) -> (Exchange, Result<MeasuredReply, NotMeasured>) {
        let (wire, mode) = (self.wire, planned.mode);
        let (observer, redactor) = (Arc::clone(&self.observer), self.redactor.clone());
        let request = Arc::clone(&planned.request);
        let is_large = exchange.body.len() > LARGE_BODY_BYTES;
        let measure = move || {
            let reading = ReplyContext {
                wire,
                mode,
                observer: &observer,
                renamed: &request.renamed,
                redactor: Some(&redactor),
            };
            let measured = measure_exchange(&exchange, &reading);
            (exchange, measured)
        };
        if !is_large {
            return measure();
        }
        match spawn_blocking(measure).await {
            Ok(measured) => measured,
            // It panicked, as it would have here.
            Err(error) => resume_unwind(error.into_panic()),
        }
    }

    /// Whether and when to retry. A pause beyond the deadline means no retry.
    fn retry_delay(&self, exchange: &Exchange, attempts: u32) -> Option<(TrialFailure, Duration)> {
        let reason = retryable_failure(exchange)?;
        if attempts > self.settings.retries {
            return None;
        }
        let pause = retry_delay(exchange, self.settings.backoff, attempts, jitter());
        let granted = match self.deadline {
            Some(_) => self.time_left(),
            None => MAX_RETRY_AFTER,
        };
        (pause < granted).then_some((reason, pause))
    }

    fn time_left(&self) -> Duration {
        match self.deadline {
            Some(ends) => ends.saturating_duration_since(Instant::now()),
            None => Duration::MAX,
        }
    }

    /// The tokens that an attempt used. A request that was not delivered used none.
    fn token_cost(
        &self,
        exchange: &Exchange,
        measured: &Result<MeasuredReply, NotMeasured>,
    ) -> u64 {
        let sent = &exchange.request.body;
        match (measured, exchange.status) {
            (Ok(measured), _) => token_cost(&measured.usage, sent, exchange.body.len()),
            (Err(_), Some(200..=299)) => {
                token_cost(&TokenUsage::default(), sent, exchange.body.len())
            }
            (Err(_), _) => 0,
        }
    }
}
