//! Opening, looking at and closing sessions.

use std::sync::Arc;

use serde_json::{Value, json};
use toolwarden_guard::{Availability, Code, Denial, RequestedGroups};

use super::deciding::between;
use super::entry::{Event, object};
use super::live::{Call, LiveGuard};
use super::sessions::{Session, Start, Whose};

/// What one session asked for, saw and did, as the tool-group document logs it.
#[derive(Clone, Debug)]
pub struct RequestLog {
    /// The session.
    pub request_id: String,
    /// Where it stands.
    pub session: Session,
    /// What it may reach now.
    pub availability: Availability,
    /// The groups it asks for.
    pub requested_groups: Vec<String>,
    /// How long it has been open.
    pub execution_time: std::time::Duration,
}

impl LiveGuard {
    /// Opens a session: the groups are checked, and the state a client asks to start in is taken
    /// where the policy lets it. Opening again changes the groups and nothing else.
    ///
    /// # Errors
    /// Groups are asked for that are not granted, or there are too many sessions.
    pub fn open_session(&self, call: &Call<'_>) -> Result<Arc<Availability>, Denial> {
        let shared = &self.shared;
        let current = shared.current_for(call);
        let now = shared.clock.monotonic();
        let standing = shared.standing(&current.guard, call, now);
        shared.note_claim(&current, call, &standing);
        let available = shared.list(&current, call, &standing)?;
        let groups = call.groups.as_ref().unwrap_or(&standing.groups);
        let bounds_groups = call.groups.is_some() || standing.bounds_groups;
        let at = shared.moment(&current.guard, now);
        if !shared.sessions.open(
            call.whose(),
            (groups.clone(), bounds_groups),
            standing.start(),
            at,
        ) {
            return Err(Denial::too_many_sessions());
        }
        let asked = current.guard.asked(call.principal, groups);
        let asked: Vec<&str> = asked.names().collect();
        let detail = object(json!({
            "requested_groups": asked,
            "granted_groups": granted(&asked, &available),
            "state": standing.name(),
            "unknown_groups": available.unknown_groups,
        }));
        let code = if standing.open { "continued" } else { "opened" };
        shared.note(&current, call, Event::Session { code, detail });
        Ok(available)
    }

    /// Opens a session where it was left, for a host that kept it or knows better than its client.
    ///
    /// # Errors
    /// There are too many sessions.
    pub fn restore_session(
        &self,
        principal: &str,
        session: &str,
        groups: RequestedGroups,
        state: &str,
    ) -> Result<(), Denial> {
        let shared = &self.shared;
        let current = shared.current();
        let whose = Whose { principal, session };
        let at = shared.moment(&current.guard, shared.clock.monotonic());
        shared.sessions.close(whose);
        let bounds_groups = groups != RequestedGroups::Default;
        if !shared.sessions.open(
            whose,
            (groups, bounds_groups),
            Start::Claimed(state.into()),
            at,
        ) {
            return Err(Denial::too_many_sessions());
        }
        let call = Call {
            principal,
            session: Some(session).filter(|it| !it.is_empty()),
            ..Call::default()
        };
        let detail = object(json!({"state": state}));
        let code = "restored";
        shared.note(&current, &call, Event::Session { code, detail });
        Ok(())
    }

    /// Where a session stands, if it is open.
    #[must_use]
    pub fn session(&self, principal: &str, session: &str) -> Option<Session> {
        let shared = &self.shared;
        let idle = shared.current().guard.sessions().idle;
        let whose = Whose { principal, session };
        shared.sessions.look(whose, shared.clock.monotonic(), idle)
    }

    /// What a session asked for, saw and did, if it is open.
    #[must_use]
    pub fn request_log(&self, principal: &str, session: &str) -> Option<RequestLog> {
        let open = self.session(principal, session)?;
        let call = Call {
            principal,
            session: Some(session),
            ..Call::default()
        };
        let shared = &self.shared;
        let current = shared.current();
        let standing = shared.standing(&current.guard, &call, shared.clock.monotonic());
        // Looking is no request: nothing is counted, and groups that are no longer granted show nothing.
        let found = shared.asking(&current.guard, &call, &standing, |it| {
            standing.available(&current.guard, it)
        });
        let availability = found.unwrap_or_else(|_| Availability::none());
        let now = self.shared.clock.monotonic();
        let asked = current.guard.asked(principal, &open.groups);
        Some(RequestLog {
            request_id: session.to_owned(),
            requested_groups: asked.names().map(str::to_owned).collect(),
            execution_time: between(open.started, now),
            session: open,
            availability,
        })
    }

    /// Ends a session, and puts its request log down.
    pub fn close_session(&self, principal: &str, session: &str) -> Option<RequestLog> {
        let log = self.request_log(principal, session)?;
        let shared = &self.shared;
        shared.sessions.close(Whose { principal, session });
        let call = Call {
            principal,
            session: Some(session),
            ..Call::default()
        };
        let detail = object(log.document());
        let code = "closed";
        shared.note(&shared.current(), &call, Event::Session { code, detail });
        Some(log)
    }
}

impl RequestLog {
    /// The log as JSON, with the fields of the document.
    #[must_use]
    pub fn document(&self) -> Value {
        let left_out = |code: Code| {
            let tools = self.availability.left_out.iter();
            let tools = tools.filter(move |it| it.code == code);
            tools.map(|it| &*it.tool).collect::<Vec<_>>()
        };
        let transitions = self.session.transitions.iter().map(|step| {
            json!({
                "tool": *step.tool,
                "from": *step.from,
                "to": *step.to,
                "timestamp": format!("{:.3}", step.at),
            })
        });
        let available = self.availability.available.iter();
        json!({
            "request_id": self.request_id,
            "requested_groups": self.requested_groups,
            "initial_state": *self.session.initial_state,
            "state_transitions": transitions.collect::<Vec<_>>(),
            "available_tools": available.map(|it| &**it).collect::<Vec<_>>(),
            "filtered_by_group": left_out(Code::FilteredByGroup),
            "filtered_by_state": left_out(Code::FilteredByState),
            "execution_time": format!("{:.1}s", self.execution_time.as_secs_f64()),
        })
    }
}

/// The groups that are left of a request.
fn granted<'g>(asked: &[&'g str], available: &Availability) -> Vec<&'g str> {
    let kept = asked.iter().copied();
    kept.filter(|name| !available.narrowed.iter().any(|it| it == name))
        .collect()
}
