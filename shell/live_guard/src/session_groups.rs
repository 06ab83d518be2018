//! Requests for groups that a session was not opened with.

use serde_json::json;
use toolwarden_guard::{
    Denial, EVERY_GROUP, Gate, GateResult, ReasonCode, RequestedGroups, group_and_parents,
};
use toolwarden_model::GroupName;

use super::call::Call;
use super::decide::SessionContext;
use super::live_guard::LiveGuard;
use super::log_entry::{AuditEvent, object};

impl LiveGuard {
    /// Denies a request for groups beyond those its session was opened with: it may ask for fewer, not for
    /// more. `opened` are the groups of the connection that the request arrived on, if it has its own;
    /// otherwise the groups apply that the workflow session was opened with.
    ///
    /// # Errors
    /// The request asks for more. The guard counts and records that as an escalation, and for a use also as
    /// a decision.
    pub fn check_session_groups(
        &self,
        call: &Call<'_>,
        opened: Option<&RequestedGroups>,
    ) -> Result<(), Denial> {
        let Some(wanted) = &call.groups else {
            return Ok(());
        };
        let current = self.shared.policy_for_call(call);
        let guard = &current.guard;
        let beyond = match opened {
            Some(opened) => excess_groups(opened, wanted),
            None => {
                let now = self.shared.clock.monotonic();
                self.shared
                    .session_context(guard, call, now)
                    .excess_groups(wanted)
            }
        };
        // Groups that are not granted are denied for that reason, inside and outside the session.
        let is_refused_anyway = || {
            let mut groups = beyond.iter();
            guard.refuses_excess() && groups.any(|it| !guard.may_request(call.principal, it))
        };
        if beyond.is_empty() || is_refused_anyway() {
            return Ok(());
        }
        Err(self.refuse_groups(call, &beyond))
    }

    fn refuse_groups(&self, call: &Call<'_>, beyond: &[&GroupName]) -> Denial {
        let shared = &self.shared;
        let denial = Denial::groups_beyond_session(beyond);
        let code = denial.code.as_str();
        shared.metrics.count_escalation(code);
        let detail = object(json!({"groups": beyond, "reason": denial.reason}));
        shared.record_event(
            &shared.current(),
            call,
            AuditEvent::Escalation { code, detail },
        );
        if call.tool.is_empty() && call.feature.is_none() {
            return denial;
        }
        self.queue_refusal(call, denial)
    }
}

impl SessionContext {
    /// The groups that are not within those its session was opened with.
    fn excess_groups<'g>(&self, wanted: &'g RequestedGroups) -> Vec<&'g GroupName> {
        if self.bounds_groups {
            excess_groups(&self.groups, wanted)
        } else {
            Vec::new()
        }
    }

    /// Adds to an explanation whether a request asks for more than its session was opened with.
    pub(super) fn explain_groups(&self, call: &Call<'_>, steps: &mut [GateResult]) {
        let beyond = call
            .groups
            .as_ref()
            .map(|wanted| self.excess_groups(wanted));
        let Some(beyond) = beyond.filter(|it| !it.is_empty()) else {
            return;
        };
        let group = steps.iter_mut().find(|it| it.gate == Gate::Group);
        let Some(group) = group else {
            return;
        };
        let not_granted = matches!(
            &group.outcome,
            Some(Err(denial)) if denial.code == ReasonCode::GroupsNotGranted
        );
        if group.outcome.is_some() && !not_granted {
            group.outcome = Some(Err(Denial::groups_beyond_session(&beyond)));
        }
    }
}

fn excess_groups<'g>(opened: &RequestedGroups, wanted: &'g RequestedGroups) -> Vec<&'g GroupName> {
    let within = |name: &GroupName| {
        let mut around = group_and_parents(name.as_str());
        opened.names().any(|it| *it == EVERY_GROUP)
            || around.any(|it| opened.names().any(|own| *own == *it))
    };
    wanted.names().filter(|name| !within(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_may_narrow_and_not_widen() {
        let groups = |names: &[&str]| names.iter().copied().collect::<RequestedGroups>();
        for (opened, wanted, over) in [
            (&["read"][..], &["read"][..], &[][..]),
            (&["read"], &[], &[]),
            (&["read"], &["read/files"], &[]),
            (&["read/files"], &["read"], &["read"]),
            (&["read"], &["read", "write", "*"], &["write", "*"]),
            (&["*"], &["write", "*"], &[]),
            (&[], &["read"], &["read"]),
        ] {
            assert_eq!(
                excess_groups(&groups(opened), &groups(wanted)),
                over,
                "{opened:?}"
            );
        }
    }
}
