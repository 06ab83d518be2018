use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use thiserror::Error;
use toolwarden_guard::{BoundValues, Fault, INITIAL_STATE, OutputMode, Permit};

use super::audit::Ticket;
use super::deciding::Trail;
use super::deciding::between;
use super::entry::{Ending, EntryId, Event};
use super::live::{Call, LiveGuard};
use super::roles::CallerClaims;
use super::sessions::{Moved, StateClaim, Transition, Whose};

/// A permitted call whose outcome is still to be told. One that is dropped without is put down as
/// abandoned, and moves no session.
#[must_use = "tell the guard how the call ended"]
pub struct OpenCall {
    guard: LiveGuard,
    /// None once the outcome is told.
    permit: Option<Permit>,
    id: EntryId,
    principal: Box<str>,
    session: Option<Box<str>>,
    claims: Option<CallerClaims>,
    /// The state in which the call was permitted.
    state: Arc<str>,
    /// The single-use state that it has to itself.
    claim: Option<StateClaim>,
    /// What calls in the state it leads to have to repeat.
    bound: BoundValues,
    began: u64,
    latency: Duration,
    /// Whether the call may have been made.
    is_decided: bool,
}

/// A result that does not satisfy the tool's output schema.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("output validation failed: {}", first(faults))]
pub struct OutputRejected {
    /// What is wrong with it.
    pub faults: Vec<Fault>,
}

/// What tells when the records of an ending are safe.
#[derive(Debug, Default)]
pub(super) struct Tickets {
    pub(super) outcome: Option<Ticket>,
    pub(super) transition: Option<Ticket>,
}

/// The most of a tool's error text that is kept.
const MAX_ERROR: usize = 500;

impl OpenCall {
    pub(super) fn new(guard: &LiveGuard, permit: Permit, call: &Call<'_>, trail: Trail) -> Self {
        let bound = permit.binds(&call.arguments);
        Self {
            guard: guard.clone(),
            claim: trail.claim,
            bound,
            permit: Some(permit),
            id: trail.id,
            principal: call.principal.into(),
            session: call.session.map(Box::from),
            claims: call.claims.cloned(),
            state: trail.state.unwrap_or_else(|| INITIAL_STATE.into()),
            began: trail.ended,
            latency: trail.latency,
            is_decided: true,
        }
    }

    /// The same call, which may not be made before [`Self::restart`].
    pub(super) fn undecided(self) -> Self {
        let mut open = self;
        open.is_decided = false;
        open
    }

    /// The name of the decision in the log.
    #[must_use]
    pub const fn id(&self) -> EntryId {
        self.id
    }

    /// Whether it has a single-use state to itself.
    #[must_use]
    pub const fn uses_up_state(&self) -> bool {
        self.claim.is_some()
    }

    /// How long the decision took.
    #[must_use]
    pub const fn latency(&self) -> Duration {
        self.latency
    }

    /// The tool that may be called.
    #[must_use]
    pub fn tool(&self) -> &str {
        self.permit.as_ref().map_or("", |permit| permit.tool())
    }

    /// The state a successful call leads to.
    #[must_use]
    pub fn leads_to(&self) -> Option<&str> {
        let next = self.permit.as_ref()?.next_state()?;
        Some(&**next)
    }

    /// Whether a result is held to a schema.
    #[must_use]
    pub fn checks_output(&self) -> bool {
        self.permit.as_ref().is_some_and(Permit::checks_output)
    }

    /// The call did what it should. The session moves on, unless the result is rejected.
    ///
    /// # Errors
    /// The result does not satisfy the output schema, and the policy enforces it.
    pub fn succeeded(self, result: &Value) -> Result<(), OutputRejected> {
        let faults = self.output_faults(result);
        self.succeeded_with(faults)
    }

    /// What is wrong with a result.
    pub(super) fn output_faults(&self, result: &Value) -> Vec<Fault> {
        self.permit
            .as_ref()
            .map_or_else(Vec::new, |it| it.output_faults(result))
    }

    /// The call did what it should, and its result was looked at elsewhere or cannot be. The session
    /// moves on.
    pub fn succeeded_unseen(self) {
        // Nobody waits for the records.
        drop(self.end(Ending::Succeeded, Vec::new()));
    }

    /// The call returned a result in which this is wrong.
    pub(super) fn succeeded_with(self, faults: Vec<Fault>) -> Result<(), OutputRejected> {
        self.returned(faults).1
    }

    /// As [`Self::succeeded_with`], with the tickets of the records.
    pub(super) fn returned(self, faults: Vec<Fault>) -> (Tickets, Result<(), OutputRejected>) {
        let mode = self.permit.as_ref().map(Permit::output_mode);
        if faults.is_empty() || mode != Some(OutputMode::Enforce) {
            return (self.end(Ending::Succeeded, faults), Ok(()));
        }
        let masked = faults.first().map_or("", |fault| &fault.masked);
        let error = format!("output validation failed: {masked}");
        let tickets = self.end(Ending::Failed { error }, faults.clone());
        (tickets, Err(OutputRejected { faults }))
    }

    /// The call did not do what it should. The session stays where it is.
    pub fn failed(self, error: &dyn fmt::Display) {
        // Nobody waits for the record.
        drop(self.end(Ending::failed(error), Vec::new()));
    }

    /// Puts down how the call ended, and moves the session on where it succeeded.
    pub(super) fn end(mut self, ending: Ending, faults: Vec<Fault>) -> Tickets {
        let Some(permit) = self.permit.take() else {
            return Tickets::default();
        };
        let moves = ending == Ending::Succeeded;
        let outcome = Some(self.put_down(&permit, ending, faults));
        let transition = if moves { self.move_on(&permit) } else { None };
        Tickets {
            outcome,
            transition,
        }
    }

    /// Lets go of a call that was not permitted after all.
    pub(super) fn withdraw(mut self) {
        self.permit = None;
        self.give_back();
    }

    /// The call was not made: nothing was sent to whoever would carry it out. A single-use state that it
    /// had to itself is free again.
    pub fn not_sent(mut self, error: &dyn fmt::Display) {
        self.give_back();
        self.failed(error);
    }

    /// Frees the single-use state that the call had to itself.
    pub(super) fn give_back(&mut self) {
        let whose = Whose {
            principal: &self.principal,
            session: self.session.as_deref().unwrap_or_default(),
        };
        self.guard.shared.release_state(whose, self.claim.take());
    }

    /// The call begins now.
    pub(super) fn restart(&mut self) {
        self.began = self.guard.shared.clock.monotonic();
        self.is_decided = true;
    }

    pub(super) fn guard(&self) -> &LiveGuard {
        &self.guard
    }

    fn put_down(&self, permit: &Permit, ending: Ending, faults: Vec<Fault>) -> Ticket {
        let shared = &self.guard.shared;
        let latency = between(self.began, shared.clock.monotonic());
        self.note(
            permit,
            Event::Outcome {
                call: self.id,
                ending,
                latency,
                faults,
            },
        )
    }

    fn move_on(&self, permit: &Permit) -> Option<Ticket> {
        let next = permit.next_state()?;
        let shared = &self.guard.shared;
        let current = shared.current_with(self.claims.as_ref());
        let step = Transition {
            tool: Arc::clone(permit.tool()),
            from: Arc::clone(&self.state),
            to: Arc::clone(next),
            at: shared.clock.wall(),
        };
        let whose = Whose {
            principal: &self.principal,
            session: self.session.as_deref().unwrap_or_default(),
        };
        let (from, to) = (Arc::clone(&step.from), Arc::clone(next));
        let at = shared.moment(&current.guard, shared.clock.monotonic());
        let initial = current.guard.initial_state(&self.principal).cloned();
        let initial = initial.unwrap_or_else(|| INITIAL_STATE.into());
        let step = (step, self.bound.clone());
        let moved = shared
            .sessions
            .advance(whose, &initial, step, self.claim, at);
        let code = match moved {
            Moved::Already => return None,
            Moved::Renewed => return Some(self.renewed(permit, from, to)),
            Moved::Taken { after } => {
                let step = (&**permit.tool(), &*from, &*to);
                shared.metrics.transition(&current.guard, step, after);
                if current.guard.has_tools_in(next) {
                    "taken"
                } else {
                    "dead_end"
                }
            }
            Moved::Elsewhere => "elsewhere",
            Moved::Full => "too_many_sessions",
        };
        if code != "taken" {
            shared.metrics.invalid_transition(code);
        }
        Some(self.note(permit, Event::Transition { from, to, code }))
    }

    fn renewed(&self, permit: &Permit, from: Arc<str>, to: Arc<str>) -> Ticket {
        let code = "renewed";
        self.note(permit, Event::Transition { from, to, code })
    }

    fn note(&self, permit: &Permit, event: Event) -> Ticket {
        let shared = &self.guard.shared;
        let call = Call {
            tool: permit.tool(),
            principal: &self.principal,
            session: self.session.as_deref(),
            ..Call::default()
        };
        shared.begin(&shared.current(), &call, event)
    }
}

impl Ending {
    /// A failure, in the tool's words.
    pub(super) fn failed(error: &dyn fmt::Display) -> Self {
        let error = error.to_string();
        let error = toolwarden_mcp::masked(&error)
            .chars()
            .take(MAX_ERROR)
            .collect();
        Self::Failed { error }
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        if let Some(permit) = self.permit.take() {
            if !self.is_decided {
                self.give_back();
            }
            drop(self.put_down(&permit, Ending::Abandoned, Vec::new()));
        }
    }
}

impl fmt::Debug for OpenCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenCall({} by {})", self.tool(), self.principal)
    }
}

fn first(faults: &[Fault]) -> &str {
    faults.first().map_or("", |fault| &fault.message)
}
