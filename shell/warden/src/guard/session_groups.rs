//! Requests for groups that a session was not opened with.

use serde_json::json;
use toolwarden_guard::Denial;

use super::entry::{Event, object};
use super::live::{Call, LiveGuard};

impl LiveGuard {
    /// Whether a request for groups is refused whatever its session was opened with: one is not granted.
    #[must_use]
    pub fn refuses_groups(&self, call: &Call<'_>, groups: &[&str]) -> bool {
        let current = self.shared.current_for(call);
        let guard = &current.guard;
        let mut groups = groups.iter();
        guard.refuses_excess() && groups.any(|it| !guard.may_request(call.principal, it))
    }

    /// Refuses a request for groups beyond those its session was opened with. It is counted and recorded as an
    /// escalation, and where it is a call of a tool also as a decision.
    pub fn refuse_groups(&self, call: &Call<'_>, beyond: &[&str]) -> Denial {
        let shared = &self.shared;
        let denial = Denial::beyond_session(beyond);
        let code = denial.code.as_str();
        shared.metrics.escalation(code);
        let detail = object(json!({"groups": beyond, "reason": denial.reason}));
        shared.note(&shared.current(), call, Event::Escalation { code, detail });
        if call.tool.is_empty() && call.feature.is_none() {
            return denial;
        }
        self.refuse_soon(call, denial)
    }
}
