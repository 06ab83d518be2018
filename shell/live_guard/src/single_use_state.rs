//! Approvals at run time: which call has claimed a single-use state, and which arguments calls must repeat.

use serde_json::Value;
use toolwarden_guard::{Availability, Denial, GateResult, Guard, INITIAL_STATE, Permit, Request};
use toolwarden_model::StateName;

use super::call::Call;
use super::decide::SessionContext;
use super::guard_state::GuardState;
use super::session_table::{ClaimOutcome, SessionKey, StateClaim};

impl SessionContext {
    /// Denies another call in a state that is used up.
    pub(super) fn check_state_unused(&self, guard: &Guard, call: &Call<'_>) -> Result<(), Denial> {
        match state_used_denial(guard, call, self.state_name()) {
            Some(denial) if self.state_used => Err(denial),
            Some(_) | None => Ok(()),
        }
    }

    /// Denies arguments that differ from those the state was entered with.
    pub(super) fn check_bound_arguments(
        &self,
        permit: Permit,
        arguments: &Value,
    ) -> Result<Permit, Denial> {
        permit.check_approval(self.state_name(), &self.bound, arguments)
    }

    /// The tools that a request may reach, without those that a used-up state no longer allows.
    pub(super) fn available(
        &self,
        guard: &Guard,
        request: &Request<'_>,
    ) -> Result<Availability, Denial> {
        let found = guard.available_tools(request)?;
        if self.state_used {
            return Ok(guard.without_used_state(found, self.state_name()));
        }
        Ok(found)
    }

    /// Corrects the explanations of the gates with the status of the approval.
    pub(super) fn explain(&self, guard: &Guard, call: &Call<'_>, steps: &mut [GateResult]) {
        if call.feature.is_some() {
            return;
        }
        let about = (call.tool, self.state_name());
        guard.explain_approval(steps, about, self.state_used, &self.bound, &call.arguments);
    }
}

impl GuardState {
    /// Claims the single-use state of a session for a call, if the policy has one for it. Only one of
    /// several concurrent calls gets it.
    pub(super) fn claim_state(
        &self,
        guard: &Guard,
        call: &Call<'_>,
        session_context: &SessionContext,
        now: u64,
    ) -> Result<Option<StateClaim>, Denial> {
        let Some(used) = state_used_denial(guard, call, session_context.state_name()) else {
            return Ok(None);
        };
        let state = session_context.state.clone();
        let state = state.unwrap_or_else(|| INITIAL_STATE.clone());
        let at = self.session_time(guard, now);
        match self
            .sessions
            .claim(call.session_key(), &state, session_context.state_visit, at)
        {
            ClaimOutcome::Taken(claim) => Ok(Some(claim)),
            ClaimOutcome::AlreadyUsed => Err(used),
            ClaimOutcome::Full => Err(Denial::too_many_sessions()),
        }
    }

    /// Releases a single-use state that a call did not use.
    pub(super) fn release_state(&self, session_key: SessionKey<'_>, claim: Option<StateClaim>) {
        let Some(claim) = claim else {
            return;
        };
        let current = self.current();
        let at = self.session_time(&current.guard, self.clock.monotonic());
        self.sessions.release(session_key, claim, at);
    }
}

/// The denial of a call that would use a single-use state which is used up. Only tools use states: reading
/// does not advance a workflow.
fn state_used_denial(guard: &Guard, call: &Call<'_>, state: &StateName) -> Option<Denial> {
    match call.feature {
        Some(_) => None,
        None => guard.used_up(call.tool, state),
    }
}
