//! What can be asked about a guard in use without changing anything.

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde_json::{Value, json};
use toolwarden_guard::{Code, Denial, Gate, Graph, GroupSummary, RequestedGroups, Step};

use super::live::{Call, LiveGuard};

/// A session that is open, as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSummary {
    /// Whose it is.
    pub principal: String,
    /// Its name, empty for the principal's own.
    pub session: String,
    /// Where it stands.
    pub state: String,
    /// The groups it asks for.
    pub groups: Vec<String>,
    /// When it was opened.
    pub opened: Timestamp,
    /// When it was last used.
    pub last_used: Timestamp,
}

/// Why a principal sees a tool or does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Whether the tool is listed for it.
    pub visible: bool,
    /// Whether a call with fitting arguments would pass now.
    pub callable: bool,
    /// What every gate says. The last one is not asked where it depends on the arguments.
    pub steps: Vec<Step>,
    /// Why, in a sentence: what the first gate that refuses says.
    pub reason: String,
    /// What can be changed, in a sentence.
    pub remedy: String,
}

impl LiveGuard {
    /// Every session that is open, sorted by principal and name.
    #[must_use]
    pub fn sessions(&self) -> Vec<SessionSummary> {
        let shared = &self.shared;
        let current = shared.current();
        let at = shared.moment(&current.guard, shared.clock.monotonic());
        let mut sessions = shared.sessions.summaries(at);
        sessions.sort_by(|a, b| (&a.principal, &a.session).cmp(&(&b.principal, &b.session)));
        sessions
    }

    /// Every group, and what a principal may do with it under the present circumstances.
    #[must_use]
    pub fn groups(&self, principal: &str) -> Vec<GroupSummary> {
        let shared = &self.shared;
        let current = shared.current();
        let call = Call {
            principal,
            ..Call::default()
        };
        let standing = shared.standing(&current.guard, &call, shared.clock.monotonic());
        shared.asking(&current.guard, &call, &standing, |request| {
            current.guard.groups(principal, request.circumstances)
        })
    }

    /// The workflow: every state and the tools that lead from one to another.
    #[must_use]
    pub fn states(&self) -> Graph {
        self.shared.current().guard.graph()
    }

    /// Why a principal sees a tool in a session or does not, and what can be changed. Nothing is
    /// counted, nothing recorded, no session touched.
    #[must_use]
    pub fn why_not(
        &self,
        principal: &str,
        session: Option<&str>,
        tool: &str,
        groups: Option<RequestedGroups>,
    ) -> Explanation {
        let call = Call {
            tool,
            principal,
            session,
            groups,
            ..Call::default()
        };
        let mut steps = self.explain(&call);
        for step in &mut steps {
            // There are no arguments to hold to the schema.
            if step.gate == Gate::Input && !is_broken(step) {
                step.outcome = None;
            }
        }
        let refused = |step: &Step| matches!(step.outcome, Some(Err(_)));
        let visible = !steps
            .iter()
            .any(|it| it.gate <= Gate::Permission && refused(it));
        let callable = !steps.iter().any(refused);
        let denial = steps
            .iter()
            .find_map(|it| it.outcome.as_ref()?.as_ref().err());
        let (reason, remedy) = match denial {
            Some(denial) => (denial.reason.clone(), denial.remedy().to_owned()),
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
}

fn is_broken(step: &Step) -> bool {
    let denied = |denial: &Denial| denial.code == Code::BrokenSchema;
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
