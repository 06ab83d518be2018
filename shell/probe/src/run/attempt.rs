use std::fmt;
use std::future::pending;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};
use toolwarden_drift::contract::Measured;
use toolwarden_model::reply::{Failure, NotMeasured, Usage, Wire};

use super::budget::{Budget, price};
use super::measure::{Reading, of_exchange};
use super::pause::{luck, passing, pause};
use super::plan::Planned;
use super::{Progress, Settings};
use crate::exchange::{Asking, Caller, Exchange};
use crate::observe::Observer;
use crate::secret::Redactor;

/// The longest pause a provider is granted in a run without a deadline. One that wants more is not
/// asked again.
const LONGEST_GRANTED: Duration = Duration::from_secs(120);

/// The largest body that is read between other work.
const LARGE: usize = 1 << 20;

/// What the trials of one provider need.
pub(crate) struct Asker {
    pub(crate) target: usize,
    pub(crate) caller: Result<Caller, NotMeasured>,
    pub(crate) wire: Wire,
    pub(crate) observer: Arc<Observer>,
    pub(crate) redactor: Redactor,
    pub(crate) budget: Arc<Budget>,
    pub(crate) progress: Arc<dyn Fn(Progress) + Send + Sync>,
    pub(crate) settings: Settings,
    /// When the run has to end.
    pub(crate) ends: Option<Instant>,
    /// Turns true when nobody wants the run any more.
    pub(crate) stop: watch::Receiver<bool>,
}

impl fmt::Debug for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asker")
            .field("target", &self.target)
            .field("caller", &self.caller)
            .finish_non_exhaustive()
    }
}

/// What became of one trial.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) measured: Result<Measured, NotMeasured>,
    pub(crate) attempts: u32,
    pub(crate) latency_ms: Option<f64>,
    pub(crate) first_event_ms: Option<f64>,
    pub(crate) exchanges: Vec<Exchange>,
}

impl Outcome {
    /// A trial that was not asked, and why.
    pub(super) const fn not_asked(detail: String) -> Self {
        Self {
            measured: Err(NotMeasured {
                failure: Failure::NotAsked,
                detail,
            }),
            attempts: 0,
            latency_ms: None,
            first_event_ms: None,
            exchanges: Vec::new(),
        }
    }
}

impl Asker {
    pub(crate) async fn ask(&self, planned: &Planned) -> Outcome {
        let mut outcome = Outcome::not_asked("the time for the run was over".to_owned());
        match &self.caller {
            Ok(caller) => {
                tokio::select! {
                    biased;
                    () = self.stopped() => {
                        if outcome.attempts == 0 {
                            outcome = Outcome::not_asked("the run was interrupted".to_owned());
                        }
                    }
                    () = self.ask_until_measured(caller, planned, &mut outcome) => {}
                }
            }
            Err(reason) => outcome.measured = Err(reason.clone()),
        }
        (self.progress)(Progress::Finished {
            target: self.target,
            failure: outcome.measured.as_ref().err().map(|it| it.failure),
        });
        outcome
    }

    async fn stopped(&self) {
        let mut stop = self.stop.clone();
        if stop.wait_for(|it| *it).await.is_err() {
            // Nobody is left who could stop it.
            pending::<()>().await;
        }
    }

    /// What was received so far is in the outcome, whenever this is given up.
    async fn ask_until_measured(&self, caller: &Caller, planned: &Planned, outcome: &mut Outcome) {
        loop {
            let reserving = self.budget.reserve(&planned.request.body);
            let Ok(reserved) = timeout(self.time_left(), reserving).await else {
                return;
            };
            let reserved = match reserved {
                Ok(reserved) => reserved,
                Err(exhausted) => {
                    if outcome.attempts == 0 {
                        *outcome = Outcome::not_asked(exhausted.to_string());
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
            let asking = Asking {
                path: &planned.request.path,
                body: &planned.request.body,
                mode: planned.mode,
                trial: &trial,
            };
            let exchange = caller.exchange(&asking, within).await;
            let (exchange, measured) = self.measure(exchange, planned).await;
            outcome.measured = measured;
            let took = self.price(&exchange, &outcome.measured);
            reserved.settle(took);
            let next = self.pause_before_next(&exchange, outcome.attempts);
            if outcome.measured.is_ok() {
                outcome.latency_ms = Some(exchange.total_ms);
                outcome.first_event_ms = exchange.first_event_ms;
            }
            if self.settings.keep_exchanges {
                outcome.exchanges.push(exchange);
            }
            let Some((reason, pause)) = next else {
                return;
            };
            (self.progress)(Progress::Waiting {
                target: self.target,
                pause,
                reason,
            });
            sleep(pause).await;
        }
    }

    /// What an exchange says. Large ones are read where they hold up nobody's clock.
    async fn measure(
        &self,
        exchange: Exchange,
        planned: &Planned,
    ) -> (Exchange, Result<Measured, NotMeasured>) {
        let (wire, mode) = (self.wire, planned.mode);
        let (observer, redactor) = (Arc::clone(&self.observer), self.redactor.clone());
        let request = Arc::clone(&planned.request);
        let is_large = exchange.body.len() > LARGE;
        let measure = move || {
            let reading = Reading {
                wire,
                mode,
                observer: &observer,
                renamed: &request.renamed,
                redactor: Some(&redactor),
            };
            let measured = of_exchange(&exchange, &reading);
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

    /// Whether and when to ask again. A pause beyond the end of the run is none.
    fn pause_before_next(&self, exchange: &Exchange, attempts: u32) -> Option<(Failure, Duration)> {
        let reason = passing(exchange)?;
        if attempts > self.settings.retries {
            return None;
        }
        let pause = pause(exchange, self.settings.backoff, attempts, luck());
        let granted = match self.ends {
            Some(_) => self.time_left(),
            None => LONGEST_GRANTED,
        };
        (pause < granted).then_some((reason, pause))
    }

    fn time_left(&self) -> Duration {
        match self.ends {
            Some(ends) => ends.saturating_duration_since(Instant::now()),
            None => Duration::MAX,
        }
    }

    /// What an attempt took of the budget. What was not delivered took nothing.
    fn price(&self, exchange: &Exchange, measured: &Result<Measured, NotMeasured>) -> u64 {
        let sent = &exchange.request.body;
        match (measured, exchange.status) {
            (Ok(measured), _) => price(&measured.usage, sent, exchange.body.len()),
            (Err(_), Some(200..=299)) => price(&Usage::default(), sent, exchange.body.len()),
            (Err(_), _) => 0,
        }
    }
}
