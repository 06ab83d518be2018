//! Approvals in use: which call has a single-use state to itself, and what calls have to repeat.

use std::sync::Arc;

use serde_json::Value;
use toolwarden_guard::{Availability, Denial, Guard, INITIAL_STATE, Permit, Request, Step};

use super::deciding::Standing;
use super::live::{Call, Shared};
use super::sessions::{Claiming, StateClaim, Whose};

impl Standing {
    /// Refuses one more call in a state that is used up.
    pub(super) fn check_unused(&self, guard: &Guard, call: &Call<'_>) -> Result<(), Denial> {
        match used_up(guard, call, self.name()) {
            Some(denial) if self.state_used => Err(denial),
            Some(_) | None => Ok(()),
        }
    }

    /// Refuses arguments other than those the state was entered with.
    pub(super) fn check_bound(&self, permit: Permit, arguments: &Value) -> Result<Permit, Denial> {
        permit.matching(self.name(), &self.bound, arguments)
    }

    /// What a request may reach; nothing that a used state no longer allows.
    pub(super) fn available(
        &self,
        guard: &Guard,
        request: &Request<'_>,
    ) -> Result<Availability, Denial> {
        let found = guard.available(request)?;
        if self.state_used {
            return Ok(guard.without_used(found, self.name()));
        }
        Ok(found)
    }

    /// Corrects what gates say by what is known of the approval.
    pub(super) fn explain(&self, guard: &Guard, call: &Call<'_>, steps: &mut [Step]) {
        if call.feature.is_some() {
            return;
        }
        let about = (call.tool, self.name());
        guard.explain_approval(steps, about, self.state_used, &self.bound, &call.arguments);
    }
}

impl Shared {
    /// Gives a call the single-use state of its session, where the policy has one for it. Of calls at the
    /// same time one gets it.
    pub(super) fn claim_state(
        &self,
        guard: &Guard,
        call: &Call<'_>,
        standing: &Standing,
        now: u64,
    ) -> Result<Option<StateClaim>, Denial> {
        let Some(used) = used_up(guard, call, standing.name()) else {
            return Ok(None);
        };
        let state = standing.state.clone();
        let state = state.unwrap_or_else(|| Arc::from(INITIAL_STATE));
        let at = self.moment(guard, now);
        match self.sessions.claim(call.whose(), &state, standing.stay, at) {
            Claiming::Taken(claim) => Ok(Some(claim)),
            Claiming::Used => Err(used),
            Claiming::Full => Err(Denial::too_many_sessions()),
        }
    }

    /// Gives a single-use state back that a call did not use.
    pub(super) fn release_state(&self, whose: Whose<'_>, claim: Option<StateClaim>) {
        let Some(claim) = claim else {
            return;
        };
        let current = self.current();
        let at = self.moment(&current.guard, self.clock.monotonic());
        self.sessions.release(whose, claim, at);
    }
}

/// The denial of a call in a single-use state that is used up, where the call would use it. Only tools do:
/// reading does not move a workflow.
fn used_up(guard: &Guard, call: &Call<'_>, state: &str) -> Option<Denial> {
    match call.feature {
        Some(_) => None,
        None => guard.used_up(call.tool, state),
    }
}
