//! Async decisions and outcomes: everything happens at once, and only the wait for the disk is a future.

#[cfg(test)]
#[cfg(feature = "store")]
mod tests;

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use toolwarden_guard::{AuditFailureMode, Denial};

use super::audit::Ticket;
use super::call::Call;
use super::decide::{UnrecordedDecision, code_of};
use super::guard_state::GuardState;
use super::live_guard::LiveGuard;
use super::log_entry::{AuditEvent, CallOutcome, object};
use super::open_call::{OpenCall, OutcomeTickets, OutputRejected};

/// A call that was decided and whose record is pending. If it is dropped before [`Self::decided`] returns,
/// the call was not made: it is recorded as abandoned, and its single-use state is released.
#[derive(Debug)]
#[must_use = "a call may only be made once it is decided"]
pub struct PendingDecision {
    answer: Result<OpenCall, Denial>,
    ticket: Ticket,
    guard: Arc<GuardState>,
    on_failure: AuditFailureMode,
}

/// A call that has ended, and whose record is pending. Dropping it changes nothing.
#[derive(Debug)]
#[must_use = "whether the result is rejected is only known once it is settled"]
pub struct PendingOutcome {
    tickets: OutcomeTickets,
    verdict: Result<(), OutputRejected>,
    guard: Arc<GuardState>,
}

impl LiveGuard {
    /// Decides a call like [`Self::decide`], without ever waiting for a disk: it evaluates the gates and
    /// updates the session now, and queues the record.
    ///
    /// A log with the durability `sync` then gets a thread that writes each record in its own transaction,
    /// including records that no caller waits for.
    pub fn decide_async(&self, call: &Call<'_>) -> PendingDecision {
        let shared = &self.shared;
        shared.log.never_block();
        let UnrecordedDecision {
            answer,
            entry,
            trace: trail,
            on_failure,
        } = shared.evaluate(call);
        let answer =
            answer.map(|permit| OpenCall::new(shared, permit, call, trail).awaiting_record());
        let begun = entry.map(|entry| shared.log.append(entry)).transpose();
        let (answer, ticket) = match begun {
            Ok(ticket) => (answer, ticket.unwrap_or_else(Ticket::completed)),
            Err(error) => {
                let denial = shared.handle_unrecorded(on_failure, &error);
                (deny_unrecorded(answer, denial), Ticket::completed())
            }
        };
        PendingDecision {
            answer,
            ticket,
            guard: Arc::clone(shared),
            on_failure,
        }
    }

    /// Records the action of an administrator, and waits until the record is as durable as the policy
    /// requires. A record that cannot be written is counted; the action stands.
    pub async fn record_administration(&self, by: &str, code: &'static str, detail: Value) {
        let shared = &self.shared;
        shared.log.never_block();
        let call = Call {
            principal: by,
            ..Call::default()
        };
        let detail = object(detail);
        let event = AuditEvent::Administration { code, detail };
        if shared
            .queue_event(&shared.current(), &call, event)
            .await
            .is_err()
        {
            shared.metrics.count_unrecorded();
        }
    }
}

impl PendingDecision {
    /// Waits until the decision is as durable as the policy requires.
    ///
    /// # Errors
    /// The call is denied, or its decision cannot be recorded.
    pub async fn decided(self) -> Result<OpenCall, Denial> {
        let Self {
            answer,
            ticket,
            guard,
            on_failure,
        } = self;
        let recorded = ticket.await;
        let mut answer = match recorded {
            Ok(()) => answer,
            Err(error) => deny_unrecorded(answer, guard.handle_unrecorded(on_failure, &error)),
        };
        guard.metrics.count_decision(code_of(&answer));
        if let Ok(open) = &mut answer {
            open.mark_started();
        }
        answer
    }
}

impl OpenCall {
    /// Like [`Self::report_success`]. The session has advanced when this returns.
    pub fn report_success_async(self, result: &Value) -> PendingOutcome {
        let faults = self.output_faults(result);
        let guard = self.non_blocking_guard();
        let (tickets, verdict) = self.finish_with_result(faults);
        PendingOutcome {
            tickets,
            verdict,
            guard,
        }
    }

    /// Like [`Self::report_success_unchecked`]. The session has advanced when this returns.
    pub fn report_success_unchecked_async(self) -> PendingOutcome {
        self.finish_async(CallOutcome::Succeeded)
    }

    /// Like [`Self::report_failure`].
    pub fn report_failure_async(self, error: &dyn fmt::Display) -> PendingOutcome {
        self.finish_async(CallOutcome::from_error(error))
    }

    /// Like [`Self::report_not_sent`].
    pub fn report_not_sent_async(mut self, error: &dyn fmt::Display) -> PendingOutcome {
        self.release_state();
        self.finish_async(CallOutcome::from_error(error))
    }

    /// The tool needs more input before it can answer. The session keeps its state; the input is another
    /// call, which can claim a single-use state again.
    pub fn report_suspended_async(mut self) -> PendingOutcome {
        self.release_state();
        self.finish_async(CallOutcome::Suspended)
    }

    /// Like [`Self::report_suspended_async`] if only the caller says so: a single-use state stays used.
    pub fn report_suspended_state_used_async(self) -> PendingOutcome {
        self.finish_async(CallOutcome::Suspended)
    }

    fn finish_async(self, ending: CallOutcome) -> PendingOutcome {
        let guard = self.non_blocking_guard();
        PendingOutcome {
            tickets: self.finish(ending, Vec::new()),
            verdict: Ok(()),
            guard,
        }
    }

    fn non_blocking_guard(&self) -> Arc<GuardState> {
        let guard = Arc::clone(self.guard());
        guard.log.never_block();
        guard
    }
}

impl PendingOutcome {
    /// Waits until the outcome is as durable as the policy requires. An outcome that cannot be recorded is
    /// counted; the call was made.
    ///
    /// # Errors
    /// The result does not satisfy the output schema, and the policy enforces it.
    pub async fn wait(self) -> Result<(), OutputRejected> {
        let OutcomeTickets {
            outcome,
            transition,
        } = self.tickets;
        for ticket in outcome.into_iter().chain(transition) {
            if ticket.await.is_err() {
                self.guard.metrics.count_unrecorded();
            }
        }
        self.verdict
    }
}

/// The answer to a call whose decision could not be recorded, if the policy denies such calls.
fn deny_unrecorded(
    answer: Result<OpenCall, Denial>,
    denial: Option<Denial>,
) -> Result<OpenCall, Denial> {
    let (open, denial) = match (answer, denial) {
        (Ok(open), Some(denial)) => (open, denial),
        (answer, _) => return answer,
    };
    // The decision has no record that the outcome of the call could refer to.
    open.cancel();
    Err(denial)
}
