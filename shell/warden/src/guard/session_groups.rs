//! Requests for groups that a session was not opened with.

use serde_json::json;
use toolwarden_guard::{Code, Denial, EVERY, Gate, RequestedGroups, Step, group_and_parents};

use super::deciding::Standing;
use super::entry::{Event, object};
use super::live::{Call, LiveGuard};

impl LiveGuard {
    /// Refuses a request for groups beyond those its session was opened with: it may ask for less, not for
    /// more. `opened` are the groups of the connection that the request came over, where it has some of its
    /// own; else those count that the workflow session was opened with.
    ///
    /// # Errors
    /// It asks for more. That is counted and recorded as an escalation, and where something is to be used
    /// also as a decision.
    pub fn within_session(
        &self,
        call: &Call<'_>,
        opened: Option<&RequestedGroups>,
    ) -> Result<(), Denial> {
        let Some(wanted) = &call.groups else {
            return Ok(());
        };
        let current = self.shared.current_for(call);
        let guard = &current.guard;
        let beyond = match opened {
            Some(opened) => beyond(opened, wanted),
            None => {
                let now = self.shared.clock.monotonic();
                self.shared.standing(guard, call, now).beyond(wanted)
            }
        };
        // Groups that are not granted are refused for that, in the session or out of it.
        let is_refused_anyway = || {
            let mut groups = beyond.iter();
            guard.refuses_excess() && groups.any(|it| !guard.may_request(call.principal, it))
        };
        if beyond.is_empty() || is_refused_anyway() {
            return Ok(());
        }
        Err(self.refuse_groups(call, &beyond))
    }

    fn refuse_groups(&self, call: &Call<'_>, beyond: &[&str]) -> Denial {
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

impl Standing {
    /// The groups that are not within those its session was opened with.
    fn beyond<'g>(&self, wanted: &'g RequestedGroups) -> Vec<&'g str> {
        if self.bounds_groups {
            beyond(&self.groups, wanted)
        } else {
            Vec::new()
        }
    }

    /// Has an explanation say where a request asks for more than its session was opened with.
    pub(super) fn explain_groups(&self, call: &Call<'_>, steps: &mut [Step]) {
        let beyond = call.groups.as_ref().map(|wanted| self.beyond(wanted));
        let Some(beyond) = beyond.filter(|it| !it.is_empty()) else {
            return;
        };
        let group = steps.iter_mut().find(|it| it.gate == Gate::Group);
        let Some(group) = group else {
            return;
        };
        let not_granted = matches!(
            &group.outcome,
            Some(Err(denial)) if denial.code == Code::GroupsNotGranted
        );
        if group.outcome.is_some() && !not_granted {
            group.outcome = Some(Err(Denial::beyond_session(&beyond)));
        }
    }
}

fn beyond<'g>(opened: &RequestedGroups, wanted: &'g RequestedGroups) -> Vec<&'g str> {
    let within = |name: &str| {
        let mut around = group_and_parents(name);
        opened.names().any(|it| it == EVERY) || around.any(|it| opened.names().any(|own| own == it))
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
            assert_eq!(beyond(&groups(opened), &groups(wanted)), over, "{opened:?}");
        }
    }
}
