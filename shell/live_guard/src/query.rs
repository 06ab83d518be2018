//! Read-only queries on a running guard.

#[cfg(test)]
mod tests;

use serde_json::{Value, json};
use toolwarden_guard::{
    Denial, Gate, GateResult, Graph, GroupSummary, INITIAL_STATE, ReasonCode, RequestedGroups,
};
use toolwarden_model::StateName;

use super::call::Call;
use super::caller_claims::CallerClaims;
use super::live_guard::LiveGuard;
use super::remedy::{RemedyClient, remedy};
use super::session_table::SessionSummary;

/// Why a principal sees a tool or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Whether the tool is listed for it.
    pub visible: bool,
    /// Whether a call with valid arguments would pass now.
    pub callable: bool,
    /// The result of every gate. The last gate is not evaluated if it depends on the arguments.
    pub steps: Vec<GateResult>,
    /// The reason as a sentence, from the first gate that denies.
    pub reason: String,
    /// The remedy as a sentence.
    pub remedy: String,
}

impl LiveGuard {
    /// Every open session, sorted by principal and name.
    #[must_use]
    pub fn sessions(&self) -> Vec<SessionSummary> {
        let shared = &self.shared;
        let current = shared.current();
        let at = shared.session_time(&current.guard, shared.clock.monotonic());
        let mut sessions = shared.sessions.summaries(&current.guard, at);
        sessions.sort_by(|a, b| (&a.principal, &a.session).cmp(&(&b.principal, &b.session)));
        sessions
    }

    /// Every group, with what it means for a principal under the current circumstances.
    #[must_use]
    pub fn groups(&self, principal: &str) -> Vec<GroupSummary> {
        self.groups_for(principal, None)
    }

    /// Like [`Self::groups`], for a caller whose credential has claims.
    #[must_use]
    pub fn groups_for(&self, principal: &str, claims: Option<&CallerClaims>) -> Vec<GroupSummary> {
        let shared = &self.shared;
        let current = shared.policy_for_claims(claims);
        let call = Call {
            principal,
            claims,
            ..Call::default()
        };
        let session_context =
            shared.session_context(&current.guard, &call, shared.clock.monotonic());
        shared.with_request(&current.guard, &call, &session_context, |request| {
            current.guard.groups(principal, request.condition_inputs)
        })
    }

    /// The workflow: every state and the tools that lead from one to another.
    #[must_use]
    pub fn states(&self) -> Graph {
        self.shared.current().guard.graph()
    }

    /// Why a principal sees a tool in a session or not, and what to change. It counts nothing, records
    /// nothing and touches no session.
    #[must_use]
    pub fn explain_visibility(
        &self,
        principal: &str,
        session: Option<&str>,
        tool: &str,
        groups: Option<RequestedGroups>,
    ) -> Explanation {
        self.explain_call(&Call {
            tool,
            principal,
            session,
            groups,
            ..Call::default()
        })
    }

    /// Like [`Self::explain_visibility`], for a call whose arguments are ignored.
    #[must_use]
    pub fn explain_call(&self, call: &Call<'_>) -> Explanation {
        let wanted = call.requested_feature();
        let (principal, tool) = (call.principal, wanted.record_name());
        let mut steps = self.explain(call);
        for step in &mut steps {
            // There are no arguments to validate.
            if step.gate == Gate::Input && !is_broken(step) {
                step.outcome = None;
            }
        }
        let refused = |step: &GateResult| matches!(step.outcome, Some(Err(_)));
        let visible = !steps
            .iter()
            .any(|it| it.gate <= Gate::Permission && refused(it));
        let callable = !steps.iter().any(refused);
        let denial = steps
            .iter()
            .find_map(|it| it.outcome.as_ref()?.as_ref().err());
        let (reason, remedy) = match denial {
            Some(denial) => self.refusal_reason(call, denial),
            None => (
                format!("'{principal}' sees '{tool}' and may call it"),
                "Nothing needs to change.".to_owned(),
            ),
        };
        Explanation {
            visible,
            callable,
            steps,
            reason,
            remedy,
        }
    }

    /// Why a call is denied, and what to change.
    fn refusal_reason(&self, call: &Call<'_>, denial: &Denial) -> (String, String) {
        let shared = &self.shared;
        let current = shared.policy_for_call(call);
        let guard = &current.guard;
        let tool = call.tool;
        if denial.code == ReasonCode::UnknownTool
            && guard.hides_unlisted()
            && shared.parts().discovered.has(tool)
        {
            return (
                format!("the policy does not name tool '{tool}' and has `unlisted: hide`"),
                format!("Add `{tool}` to `tools` in the policy, or set `unlisted: serve`."),
            );
        }
        let session_context = shared.session_context(guard, call, shared.clock.monotonic());
        let initial = guard.initial_state(call.principal);
        let initial = initial.unwrap_or(&INITIAL_STATE);
        let started = session_context.open && session_context.state_name() != initial;
        let client = RemedyClient {
            has_left_initial_state: started,
            names_groups: *call.groups.as_ref().unwrap_or(&session_context.groups)
                != RequestedGroups::Default,
        };
        let remedy = shared.with_request(guard, call, &session_context, |request| {
            remedy(guard, request, tool, denial, client)
        });
        (denial.reason.clone(), remedy)
    }

    /// Whether the policy hides tools that it does not name.
    #[must_use]
    pub fn hides_unlisted(&self) -> bool {
        self.shared.current().guard.hides_unlisted()
    }

    /// The state in which the sessions of a principal start.
    #[must_use]
    pub fn initial_state(&self, principal: &str) -> StateName {
        let current = self.shared.current();
        let state = current.guard.initial_state(principal);
        state.cloned().unwrap_or_else(|| INITIAL_STATE.clone())
    }
}

fn is_broken(step: &GateResult) -> bool {
    let denied = |denial: &Denial| denial.code == ReasonCode::BrokenSchema;
    matches!(&step.outcome, Some(Err(denial)) if denied(denial))
}

impl Explanation {
    /// The explanation as JSON.
    #[must_use]
    pub fn document(&self) -> Value {
        let steps = self.steps.iter().map(|step| {
            let (passes, code, reason) = match &step.outcome {
                None => (None, None, None),
                Some(Ok(reason)) => (Some(true), None, Some(reason)),
                Some(Err(denial)) => (
                    Some(false),
                    Some(denial.code.as_str()),
                    Some(&denial.reason),
                ),
            };
            json!({
                "gate": step.gate.as_str(),
                "passes": passes,
                "code": code,
                "reason": reason,
            })
        });
        json!({
            "visible": self.visible,
            "callable": self.callable,
            "reason": self.reason,
            "remedy": self.remedy,
            "steps": steps.collect::<Vec<_>>(),
        })
    }
}

impl SessionSummary {
    /// The session as JSON.
    #[must_use]
    pub fn document(&self) -> Value {
        json!({
            "principal": self.principal,
            "session": self.session,
            "state": self.state,
            "groups": self.groups,
            "opened": format!("{:.3}", self.opened),
            "last_used": format!("{:.3}", self.last_used),
        })
    }
}
