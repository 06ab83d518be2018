//! Deciding and settling for those who must not hold up a thread: everything is done at once, and only
//! the wait for the disk is left to a future.

#[cfg(test)]
mod tests;

use std::fmt;

use serde_json::Value;
use toolwarden_guard::{Denial, OnFailure};

use super::audit::Ticket;
use super::deciding::{Weighed, code_of};
use super::entry::{Ending, Event, object};
use super::live::{Call, LiveGuard};
use super::open_call::{OpenCall, OutputRejected, Tickets};

/// A call that has passed the gates or has not, and whose record is on its way to the log. One that is
/// dropped before it is decided was not made: it is put down as abandoned, and leaves its state to another.
#[derive(Debug)]
#[must_use = "a call may only be made once it is decided"]
pub struct Deciding {
    answer: Result<OpenCall, Denial>,
    ticket: Ticket,
    guard: LiveGuard,
    on_failure: OnFailure,
}

/// A call that has ended, and whose record is on its way to the log. Dropping it changes nothing.
#[derive(Debug)]
#[must_use = "whether the result is rejected is only known once it is settled"]
pub struct Settling {
    tickets: Tickets,
    verdict: Result<(), OutputRejected>,
    guard: LiveGuard,
}

impl LiveGuard {
    /// Decides a call as [`Self::decide`] does, without ever waiting for a disk: the gates are passed
    /// and the session is touched now, and the record is queued.
    ///
    /// A log that is as durable as `sync` then gets a thread that writes each record in a transaction
    /// of its own, also those that nobody waits for.
    pub fn decide_soon(&self, call: &Call<'_>) -> Deciding {
        let shared = &self.shared;
        shared.log.never_block();
        let Weighed {
            answer,
            entry,
            trail,
            on_failure,
        } = shared.weigh(call);
        let answer = answer.map(|permit| OpenCall::new(self, permit, call, trail).undecided());
        let begun = entry.map(|entry| shared.log.begin(entry)).transpose();
        let (answer, ticket) = match begun {
            Ok(ticket) => (answer, ticket.unwrap_or_else(Ticket::settled)),
            Err(error) => {
                let denial = shared.unrecorded(on_failure, &error);
                (refused(answer, denial), Ticket::settled())
            }
        };
        Deciding {
            answer,
            ticket,
            guard: self.clone(),
            on_failure,
        }
    }

    /// Puts down what an administrator did, and waits until that is as durable as the policy asks for.
    /// A record that cannot be written is counted; the thing was done.
    pub async fn administered(&self, by: &str, code: &'static str, detail: Value) {
        let shared = &self.shared;
        shared.log.never_block();
        let call = Call {
            principal: by,
            ..Call::default()
        };
        let detail = object(detail);
        let event = Event::Administration { code, detail };
        if shared.begin(&shared.current(), &call, event).await.is_err() {
            shared.metrics.unrecorded();
        }
    }
}

impl Deciding {
    /// Waits until the decision is as durable as the policy asks for.
    ///
    /// # Errors
    /// The call is refused, or its decision cannot be recorded.
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
            Err(error) => refused(answer, guard.shared.unrecorded(on_failure, &error)),
        };
        guard.shared.metrics.decided(code_of(&answer));
        if let Ok(open) = &mut answer {
            open.restart();
        }
        answer
    }
}

impl OpenCall {
    /// As [`Self::succeeded`]. The session has moved when this returns.
    pub fn succeeded_soon(self, result: &Value) -> Settling {
        let faults = self.output_faults(result);
        let guard = self.unblocked();
        let (tickets, verdict) = self.returned(faults);
        Settling {
            tickets,
            verdict,
            guard,
        }
    }

    /// As [`Self::succeeded_unseen`]. The session has moved when this returns.
    pub fn succeeded_unseen_soon(self) -> Settling {
        self.end_soon(Ending::Succeeded)
    }

    /// As [`Self::failed`].
    pub fn failed_soon(self, error: &dyn fmt::Display) -> Settling {
        self.end_soon(Ending::failed(error))
    }

    /// As [`Self::not_sent`].
    pub fn not_sent_soon(mut self, error: &dyn fmt::Display) -> Settling {
        self.give_back();
        self.end_soon(Ending::failed(error))
    }

    /// The tool asks for more before it can answer. The session stays where it is; the answer to what
    /// the tool asks is another call, which has a single-use state to itself again.
    pub fn suspended_soon(mut self) -> Settling {
        self.give_back();
        self.end_soon(Ending::Suspended)
    }

    /// As [`Self::suspended_soon`] where only the caller says so: a single-use state stays used.
    pub fn suspended_used_soon(self) -> Settling {
        self.end_soon(Ending::Suspended)
    }

    fn end_soon(self, ending: Ending) -> Settling {
        let guard = self.unblocked();
        Settling {
            tickets: self.end(ending, Vec::new()),
            verdict: Ok(()),
            guard,
        }
    }

    fn unblocked(&self) -> LiveGuard {
        let guard = self.guard().clone();
        guard.shared.log.never_block();
        guard
    }
}

impl Settling {
    /// Waits until the outcome is as durable as the policy asks for. An outcome that cannot be recorded
    /// is counted; the call was made.
    ///
    /// # Errors
    /// The result does not satisfy the output schema, and the policy enforces it.
    pub async fn settled(self) -> Result<(), OutputRejected> {
        let Tickets {
            outcome,
            transition,
        } = self.tickets;
        for ticket in outcome.into_iter().chain(transition) {
            if ticket.await.is_err() {
                self.guard.shared.metrics.unrecorded();
            }
        }
        self.verdict
    }
}

/// The answer to a call whose decision could not be recorded, where the policy refuses such calls.
fn refused(answer: Result<OpenCall, Denial>, denial: Option<Denial>) -> Result<OpenCall, Denial> {
    let (open, denial) = match (answer, denial) {
        (Ok(open), Some(denial)) => (open, denial),
        (answer, _) => return answer,
    };
    // There is no record of the decision that the end of the call could refer to.
    open.withdraw();
    Err(denial)
}
