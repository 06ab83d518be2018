//! The parts of a decision that need what changes from call to call.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use toolwarden_guard::{
    Circumstances, Code, Denial, Guard, INITIAL_STATE, Limits, OnFailure, Overrun, Permit, Request,
    RequestedGroups,
};

use super::audit::AuditError;
use super::entry::{About, Entry, Event, object};
use super::limiter::{Exceeded, Key, Metered};
use super::live::{Call, Current, Shared, Standing, Trail};
use super::sessions::Whose;

impl<'c> Call<'c> {
    pub(super) fn whose(&self) -> Whose<'c> {
        Whose {
            principal: self.principal,
            session: self.session.unwrap_or_default(),
        }
    }

    pub(super) fn about(&self, guard: &Guard) -> About {
        About {
            principal: guard.principal_ref(self.principal),
            tool: guard.tool_ref(self.tool),
            session: self.session.map(Box::from),
        }
    }
}

impl Shared {
    /// Decides a call and puts the decision down: nothing is let through that the log does not know
    /// of, unless the policy says otherwise.
    pub(super) fn decide(&self, call: &Call<'_>) -> (Result<Permit, Denial>, Trail) {
        let began = self.clock.monotonic();
        let current = self.current();
        let guard = &current.guard;
        let standing = self.standing(&current, call, began);
        let circumstances = self.circumstances(guard, &call.attributes);
        let request = Request {
            principal: call.principal,
            groups: call.groups.as_ref().unwrap_or(&standing.groups),
            state: standing.name(),
            circumstances: circumstances.as_ref().unwrap_or(&self.nothing),
        };
        let mut answer = self.pass(guard, &request, call, began);
        let ended = self.clock.monotonic();
        let latency = between(began, ended);
        if let Err(denial) = &answer {
            self.count_denial(guard, denial, &request);
        }
        let event = Event::Decision {
            denial: answer.as_ref().err().cloned().map(Box::new),
            groups: call.groups.as_ref().and_then(RequestedGroups::named),
            state: standing.state.clone(),
            arguments: Arc::clone(&call.arguments),
            latency,
        };
        let fails_closed = guard.audit().on_failure == OnFailure::Deny;
        let about = call.about(guard);
        let entry = self.entry(current, about, event);
        let id = entry.id;
        if let Err(error) = self.put_down(entry) {
            self.metrics.unrecorded();
            // A refusal stands without a record.
            if answer.is_ok() && fails_closed {
                answer = Err(Denial::unrecorded(&error));
            }
        }
        let trail = Trail {
            id,
            state: standing.state,
            ended,
            latency,
        };
        (answer, trail)
    }

    /// Takes a call through the gates, and counts it.
    pub(super) fn pass(
        &self,
        guard: &Guard,
        request: &Request<'_>,
        call: &Call<'_>,
        now: u64,
    ) -> Result<Permit, Denial> {
        let admitted = guard.admit(request, call.tool)?;
        self.metrics.unknown_groups(admitted.unknown_groups().len());
        let limits = admitted.limits();
        let counted = self.count(call, &limits, now);
        let (metered, answer) = match counted {
            Ok(metered) => (metered, Ok(())),
            Err(overrun) => (None, Err(overrun)),
        };
        let permit = admitted.meter(answer)?.validate(&call.arguments);
        if let (Err(_), Some(metered)) = (&permit, metered)
            && !guard.counts_invalid()
        {
            self.limiter.refund(metered);
        }
        permit
    }

    fn count(
        &self,
        call: &Call<'_>,
        limits: &Limits,
        now: u64,
    ) -> Result<Option<Metered>, Overrun> {
        let agent = Key::of_agent(call.tool, call.principal);
        let tool = Key::of_tool(call.tool);
        let (counted, asked) = match (limits.agent, limits.tool) {
            (None, None) => return Ok(None),
            (Some(limit), None) => (self.limiter.check(now, agent, limit), [limit, limit]),
            (None, Some(limit)) => (self.limiter.check(now, tool, limit), [limit, limit]),
            (Some(one), Some(all)) => (
                self.limiter.check_both(now, (agent, one), (tool, all)),
                [one, all],
            ),
        };
        counted.map(Some).map_err(|exceeded| match exceeded {
            Exceeded::Limit { which, retry_after } => {
                let [first, second] = asked;
                Overrun::Limit {
                    limit: if which == 0 { first } else { second },
                    retry_after,
                }
            }
            Exceeded::Full { .. } => Overrun::Capacity,
        })
    }

    /// What counting a call would say, without counting it.
    pub(super) fn would_pass(
        &self,
        call: &Call<'_>,
        limits: &Limits,
        now: u64,
    ) -> Result<(), Overrun> {
        let counted = self.count(call, limits, now)?;
        if let Some(metered) = counted {
            self.limiter.refund(metered);
        }
        Ok(())
    }

    /// Where a session stands. What the client says about it counts only when it starts, and only
    /// where the policy lets it.
    pub(super) fn standing(&self, current: &Arc<Current>, call: &Call<'_>, now: u64) -> Standing {
        let guard = &current.guard;
        let claimed = call.state.filter(|state| !state.is_empty());
        let initial = || Standing {
            state: None,
            groups: RequestedGroups::Default,
        };
        if !guard.has_workflow() && call.session.is_none() && claimed.is_none() {
            return initial();
        }
        let idle = guard.sessions().idle;
        let whose = call.whose();
        if let Some((state, groups)) = self.sessions.standing(whose, now, idle) {
            if let Some(claimed) = claimed.filter(|claimed| **claimed != *state) {
                self.claimed_state(current, call, &state, claimed);
            }
            let state = Some(state);
            return Standing { state, groups };
        }
        let Some(claimed) = claimed.filter(|claimed| *claimed != INITIAL_STATE) else {
            return initial();
        };
        let state: Arc<str> = claimed.into();
        let at = (self.clock.wall(), now);
        let groups = RequestedGroups::Default;
        if guard.sessions().initial_states.contain(claimed)
            && self
                .sessions
                .open(whose, groups.clone(), Arc::clone(&state), at, idle)
        {
            let state = Some(state);
            return Standing { state, groups };
        }
        self.claimed_state(current, call, INITIAL_STATE, claimed);
        initial()
    }

    fn claimed_state(&self, current: &Arc<Current>, call: &Call<'_>, state: &str, claimed: &str) {
        self.metrics.escalation("client_state");
        self.metrics.invalid_transition("client_state");
        let detail = object(json!({"state": state, "claimed": claimed}));
        let code = "client_state";
        self.note(current, call, Event::Escalation { code, detail });
    }

    pub(super) fn count_denial(&self, guard: &Guard, denial: &Denial, request: &Request<'_>) {
        if denial.code == Code::GroupsNotGranted {
            for group in request.groups.names() {
                self.metrics.group_denied(guard, group);
            }
            self.metrics.escalation("groups");
        }
        if denial.code == Code::FilteredByState {
            self.metrics.invalid_transition("not_available");
        }
        if denial.code == Code::UnknownGroup {
            self.metrics.unknown_groups(1);
        }
    }

    /// What conditions are held to; none where the policy has no conditions.
    pub(super) fn circumstances(
        &self,
        guard: &Guard,
        attributes: &BTreeMap<String, Value>,
    ) -> Option<Circumstances> {
        guard.has_conditions().then(|| Circumstances {
            now: self.clock.wall(),
            zone: guard.zone().clone(),
            load: Some(f64::from_bits(self.load.load(Ordering::Relaxed))).filter(|it| !it.is_nan()),
            attributes: attributes.clone(),
        })
    }

    pub(super) fn entry(&self, under: Arc<Current>, about: About, event: Event) -> Entry {
        let at_ms = self.clock.wall().as_millisecond();
        Entry::new(at_ms, self.ids.next(at_ms), about, event, under)
    }

    pub(super) fn put_down(&self, entry: Entry) -> Result<(), AuditError> {
        self.log.put_down(entry)
    }

    /// Puts down what happened besides decisions; where that fails it is counted.
    pub(super) fn note(&self, under: &Arc<Current>, call: &Call<'_>, event: Event) {
        let about = call.about(&under.guard);
        let entry = self.entry(Arc::clone(under), about, event);
        if self.put_down(entry).is_err() {
            self.metrics.unrecorded();
        }
    }
}

/// The time between two readings of the monotonic clock.
pub(super) const fn between(earlier: u64, later: u64) -> Duration {
    Duration::from_nanos(later.saturating_sub(earlier))
}
