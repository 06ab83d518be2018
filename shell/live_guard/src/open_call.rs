use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::Value;
use thiserror::Error;
use toolwarden_guard::{
    BoundValues, CallDestination, INITIAL_STATE, OutputMode, Permit, ValueFault,
};

use toolwarden_model::StateName;

use super::audit::Ticket;
use super::call::Call;
use super::caller_claims::CallerClaims;
use super::decide::DecisionTrace;
use super::decide::elapsed;
use super::guard_state::GuardState;
use super::log_entry::{AuditEvent, CallOutcome, EntryId};
use super::session_table::{SessionKey, StateClaim, Transition, TransitionOutcome};

/// A permitted call whose outcome is not reported yet. Dropping it records the call as abandoned and moves no
/// session.
#[must_use = "tell the guard how the call ended"]
pub struct OpenCall {
    guard: Arc<GuardState>,
    /// None once the outcome is reported.
    permit: Option<Permit>,
    id: EntryId,
    principal: Box<str>,
    session: Option<Box<str>>,
    claims: Option<CallerClaims>,
    /// The state in which the call was permitted.
    state: StateName,
    /// The single-use state that it has to itself.
    state_claim: Option<StateClaim>,
    /// What calls in the state it leads to have to repeat.
    bound: BoundValues,
    started_at: u64,
    latency: Duration,
    /// Whether the call may have been made.
    is_decided: bool,
    /// The arguments that were decided on: only their identity, so that an open call does not keep them in memory.
    arguments: Weak<Value>,
    /// Whether the permission to send it was given out.
    was_permitted: bool,
}

/// A result that does not satisfy the tool's output schema.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("output validation failed: {}", first_fault(faults))]
pub struct OutputRejected {
    /// What is wrong with it.
    pub faults: Vec<ValueFault>,
}

/// The tickets of the outcome and transition records.
#[derive(Debug, Default)]
pub(super) struct OutcomeTickets {
    pub(super) outcome: Option<Ticket>,
    pub(super) transition: Option<Ticket>,
}

/// The most of a tool's error text that is kept.
const MAX_ERROR_LEN: usize = 500;

impl OpenCall {
    pub(super) fn new(
        guard: &Arc<GuardState>,
        permit: Permit,
        call: &Call<'_>,
        trail: DecisionTrace,
    ) -> Self {
        let bound = permit.bound_values(&call.arguments);
        Self {
            guard: Arc::clone(guard),
            state_claim: trail.claim,
            bound,
            permit: Some(permit),
            id: trail.id,
            principal: call.principal.into(),
            session: call.session.map(Box::from),
            claims: call.claims.cloned(),
            state: trail.state.unwrap_or_else(|| INITIAL_STATE.clone()),
            started_at: trail.decided_at,
            latency: trail.latency,
            is_decided: true,
            arguments: Arc::downgrade(&call.arguments),
            was_permitted: false,
        }
    }

    /// The arguments that were decided on.
    pub(super) const fn decided_arguments(&self) -> &Weak<Value> {
        &self.arguments
    }

    /// Uses up the permission to send the call. False if it was used before.
    pub(super) const fn use_permit(&mut self) -> bool {
        !std::mem::replace(&mut self.was_permitted, true)
    }

    /// The same call, which may not be made before [`Self::mark_started`].
    pub(super) fn awaiting_record(self) -> Self {
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
        self.state_claim.is_some()
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

    /// The server that the call goes to, and what the server calls the tool; `None` if no server behind a gateway
    /// has the tool.
    #[must_use]
    pub fn destination(&self) -> Option<&CallDestination> {
        self.permit.as_ref()?.destination()
    }

    /// The state a successful call leads to.
    #[must_use]
    pub fn next_state(&self) -> Option<&StateName> {
        self.permit.as_ref()?.next_state()
    }

    /// Whether a result is checked against a schema.
    #[must_use]
    pub fn checks_output(&self) -> bool {
        self.permit.as_ref().is_some_and(Permit::checks_output)
    }

    /// The call did what it should. The session moves on, unless the result is rejected.
    ///
    /// # Errors
    /// The result does not satisfy the output schema, and the policy enforces it.
    pub fn report_success(self, result: &Value) -> Result<(), OutputRejected> {
        let faults = self.output_faults(result);
        self.finish_with_faults(faults)
    }

    /// What is wrong with a result.
    pub(super) fn output_faults(&self, result: &Value) -> Vec<ValueFault> {
        self.permit
            .as_ref()
            .map_or_else(Vec::new, |it| it.output_faults(result))
    }

    /// The call did what it should, and its result was checked elsewhere or cannot be. The session
    /// moves on.
    pub fn report_success_unchecked(self) {
        // The caller does not wait for the records.
        drop(self.finish(CallOutcome::Succeeded, Vec::new()));
    }

    /// The call returned a result in which this is wrong.
    pub(super) fn finish_with_faults(self, faults: Vec<ValueFault>) -> Result<(), OutputRejected> {
        self.finish_with_result(faults).1
    }

    /// As [`Self::finish_with_faults`], with the tickets of the records.
    pub(super) fn finish_with_result(
        self,
        faults: Vec<ValueFault>,
    ) -> (OutcomeTickets, Result<(), OutputRejected>) {
        let mode = self.permit.as_ref().map(Permit::output_mode);
        if faults.is_empty() || mode != Some(OutputMode::Enforce) {
            return (self.finish(CallOutcome::Succeeded, faults), Ok(()));
        }
        let masked = faults.first().map_or("", |fault| &fault.masked);
        let error = format!("output validation failed: {masked}");
        let tickets = self.finish(CallOutcome::Failed { error }, faults.clone());
        (tickets, Err(OutputRejected { faults }))
    }

    /// The call did not do what it should. The session stays where it is.
    pub fn report_failure(self, error: &dyn fmt::Display) {
        // The caller does not wait for the record.
        drop(self.finish(CallOutcome::from_error(error), Vec::new()));
    }

    /// Records how the call ended, and moves the session to its next state if it succeeded.
    pub(super) fn finish(mut self, ending: CallOutcome, faults: Vec<ValueFault>) -> OutcomeTickets {
        let Some(permit) = self.permit.take() else {
            return OutcomeTickets::default();
        };
        let moves = ending == CallOutcome::Succeeded;
        let outcome = Some(self.record_outcome(&permit, ending, faults));
        let transition = if moves {
            self.advance_session(&permit)
        } else {
            None
        };
        OutcomeTickets {
            outcome,
            transition,
        }
    }

    /// Lets go of a call that was not permitted after all.
    pub(super) fn cancel(mut self) {
        self.permit = None;
        self.release_state();
    }

    /// The call was not sent. A single-use state that it claimed is free again.
    pub fn report_not_sent(mut self, error: &dyn fmt::Display) {
        self.release_state();
        self.report_failure(error);
    }

    /// Frees the single-use state that the call had to itself.
    pub(super) fn release_state(&mut self) {
        let session_key = SessionKey {
            principal: &self.principal,
            session: self.session.as_deref().unwrap_or_default(),
        };
        self.guard
            .release_state(session_key, self.state_claim.take());
    }

    /// The call begins now.
    pub(super) fn mark_started(&mut self) {
        self.started_at = self.guard.clock.monotonic();
        self.is_decided = true;
    }

    pub(super) const fn guard(&self) -> &Arc<GuardState> {
        &self.guard
    }

    fn record_outcome(
        &self,
        permit: &Permit,
        ending: CallOutcome,
        faults: Vec<ValueFault>,
    ) -> Ticket {
        let shared = &self.guard;
        let latency = elapsed(self.started_at, shared.clock.monotonic());
        self.queue_event(
            permit,
            AuditEvent::Outcome {
                call: self.id,
                ending,
                latency,
                faults,
            },
        )
    }

    fn advance_session(&self, permit: &Permit) -> Option<Ticket> {
        let next = permit.next_state()?;
        let shared = &self.guard;
        let current = shared.policy_for_claims(self.claims.as_ref());
        let step = Transition {
            tool: Arc::clone(permit.tool()),
            from: self.state.clone(),
            to: next.clone(),
            at: shared.clock.wall(),
        };
        let session_key = SessionKey {
            principal: &self.principal,
            session: self.session.as_deref().unwrap_or_default(),
        };
        let (from, to) = (step.from.clone(), next.clone());
        let at = shared.session_time(&current.guard, shared.clock.monotonic());
        let initial = current.guard.initial_state(&self.principal).cloned();
        let initial = initial.unwrap_or_else(|| INITIAL_STATE.clone());
        let step = (step, self.bound.clone());
        let moved = shared
            .sessions
            .advance(session_key, &initial, step, self.state_claim, at);
        let code = match moved {
            TransitionOutcome::Unchanged => return None,
            TransitionOutcome::Reentered => return Some(self.record_reentry(permit, from, to)),
            TransitionOutcome::Taken { after } => {
                let step = (&**permit.tool(), &from, &to);
                shared.metrics.count_transition(&current.guard, step, after);
                if current.guard.has_tools_in(next) {
                    "taken"
                } else {
                    "dead_end"
                }
            }
            TransitionOutcome::StateChanged => "elsewhere",
            TransitionOutcome::Full => "too_many_sessions",
        };
        if code != "taken" {
            shared.metrics.count_invalid_transition(code);
        }
        Some(self.queue_event(permit, AuditEvent::Transition { from, to, code }))
    }

    fn record_reentry(&self, permit: &Permit, from: StateName, to: StateName) -> Ticket {
        let code = "renewed";
        self.queue_event(permit, AuditEvent::Transition { from, to, code })
    }

    fn queue_event(&self, permit: &Permit, event: AuditEvent) -> Ticket {
        let shared = &self.guard;
        let call = Call {
            tool: permit.tool(),
            principal: &self.principal,
            session: self.session.as_deref(),
            ..Call::default()
        };
        shared.queue_event(&shared.current(), &call, event)
    }
}

impl CallOutcome {
    /// A failure, in the tool's words.
    pub(super) fn from_error(error: &dyn fmt::Display) -> Self {
        let error = error.to_string();
        let error = toolwarden_secrets::mask_secrets(&error)
            .chars()
            .take(MAX_ERROR_LEN)
            .collect();
        Self::Failed { error }
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        if let Some(permit) = self.permit.take() {
            if !self.is_decided {
                self.release_state();
            }
            drop(self.record_outcome(&permit, CallOutcome::Abandoned, Vec::new()));
        }
    }
}

impl fmt::Debug for OpenCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenCall({} by {})", self.tool(), self.principal)
    }
}

fn first_fault(faults: &[ValueFault]) -> &str {
    faults.first().map_or("", |fault| &fault.message)
}
