//! Opening, inspecting and closing sessions.

use std::sync::Arc;

use serde_json::{Value, json};
use toolwarden_guard::{Availability, Denial, ReasonCode, RequestedGroups};
use toolwarden_model::{GroupName, StateName};

use super::call::Call;
use super::decide::elapsed;
use super::live_guard::LiveGuard;
use super::log_entry::{AuditEvent, object};
use super::session_table::{Session, SessionKey, SessionStart};

/// The log of one session, with the fields of the tool-group document.
#[derive(Clone, Debug)]
pub struct RequestLog {
    /// The session.
    pub request_id: String,
    /// Its status.
    pub session: Session,
    /// The tools it may reach now.
    pub availability: Availability,
    /// The groups it requests.
    pub requested_groups: Vec<GroupName>,
    /// How long it has been open.
    pub execution_time: std::time::Duration,
}

impl LiveGuard {
    /// Opens a session: it checks the groups, and accepts the initial state that a client names if the
    /// policy allows it. Opening an open session changes only its groups.
    ///
    /// # Errors
    /// The request names groups that are not granted, or there are too many sessions.
    pub fn open_session(&self, call: &Call<'_>) -> Result<Arc<Availability>, Denial> {
        let shared = &self.shared;
        let current = shared.policy_for_call(call);
        let now = shared.clock.monotonic();
        let session_context = shared.session_context(&current.guard, call, now);
        shared.record_refused_claim(&current, call, &session_context);
        let available = shared.list_available(&current, call, &session_context)?;
        let groups = call.groups.as_ref().unwrap_or(&session_context.groups);
        let bounds_groups = call.groups.is_some() || session_context.bounds_groups;
        let at = shared.session_time(&current.guard, now);
        if !shared.sessions.open(
            call.session_key(),
            (groups.clone(), bounds_groups),
            session_context.start(),
            at,
        ) {
            return Err(Denial::too_many_sessions());
        }
        let asked = current.guard.asked(call.principal, groups);
        let asked: Vec<&GroupName> = asked.names().collect();
        let detail = object(json!({
            "requested_groups": asked,
            "granted_groups": granted_groups(&asked, &available),
            "state": session_context.state_name(),
            "unknown_groups": available.unknown_groups,
        }));
        let code = if session_context.open {
            "continued"
        } else {
            "opened"
        };
        shared.record_event(&current, call, AuditEvent::Session { code, detail });
        Ok(available)
    }

    /// Opens a session in a previous status, for a host that stored it or whose word outranks the client's.
    ///
    /// # Errors
    /// There are too many sessions.
    pub fn restore_session(
        &self,
        principal: &str,
        session: &str,
        groups: RequestedGroups,
        state: &StateName,
    ) -> Result<(), Denial> {
        let shared = &self.shared;
        let current = shared.current();
        let session_key = SessionKey { principal, session };
        let at = shared.session_time(&current.guard, shared.clock.monotonic());
        shared.sessions.close(session_key);
        let bounds_groups = groups != RequestedGroups::Default;
        if !shared.sessions.open(
            session_key,
            (groups, bounds_groups),
            SessionStart::Claimed(state.clone()),
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
        shared.record_event(&current, &call, AuditEvent::Session { code, detail });
        Ok(())
    }

    /// The status of a session, if it is open.
    #[must_use]
    pub fn session(&self, principal: &str, session: &str) -> Option<Session> {
        let shared = &self.shared;
        let idle = shared.current().guard.sessions().idle;
        let session_key = SessionKey { principal, session };
        shared
            .sessions
            .get(session_key, shared.clock.monotonic(), idle)
    }

    /// The request log of a session, if it is open.
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
        let session_context =
            shared.session_context(&current.guard, &call, shared.clock.monotonic());
        // Inspecting is not a request: nothing is counted, and groups that are no longer granted show
        // nothing.
        let found = shared.with_request(&current.guard, &call, &session_context, |it| {
            session_context.available(&current.guard, it)
        });
        let availability = found.unwrap_or_else(|_| Availability::none());
        let now = self.shared.clock.monotonic();
        let asked = current.guard.asked(principal, &open.groups);
        Some(RequestLog {
            request_id: session.to_owned(),
            requested_groups: asked.names().cloned().collect(),
            execution_time: elapsed(open.started, now),
            session: open,
            availability,
        })
    }

    /// Ends a session, and records its request log.
    pub fn close_session(&self, principal: &str, session: &str) -> Option<RequestLog> {
        let log = self.request_log(principal, session)?;
        let shared = &self.shared;
        shared.sessions.close(SessionKey { principal, session });
        let call = Call {
            principal,
            session: Some(session),
            ..Call::default()
        };
        let detail = object(log.document());
        let code = "closed";
        shared.record_event(
            &shared.current(),
            &call,
            AuditEvent::Session { code, detail },
        );
        Some(log)
    }
}

impl RequestLog {
    /// The log as JSON, with the fields of the tool-group document.
    #[must_use]
    pub fn document(&self) -> Value {
        let left_out = |code: ReasonCode| {
            let tools = self.availability.unavailable.iter();
            let tools = tools.filter(move |it| it.code == code);
            tools.map(|it| &*it.tool).collect::<Vec<_>>()
        };
        let transitions = self.session.transitions.iter().map(|step| {
            json!({
                "tool": *step.tool,
                "from": step.from,
                "to": step.to,
                "timestamp": format!("{:.3}", step.at),
            })
        });
        let available = self.availability.available.iter();
        json!({
            "request_id": self.request_id,
            "requested_groups": self.requested_groups,
            "initial_state": self.session.initial_state,
            "state_transitions": transitions.collect::<Vec<_>>(),
            "available_tools": available.map(|it| &**it).collect::<Vec<_>>(),
            "filtered_by_group": left_out(ReasonCode::FilteredByGroup),
            "filtered_by_state": left_out(ReasonCode::FilteredByState),
            "execution_time": format!("{:.1}s", self.execution_time.as_secs_f64()),
        })
    }
}

/// The requested groups that were not left out.
fn granted_groups<'g>(asked: &[&'g GroupName], available: &Availability) -> Vec<&'g GroupName> {
    let kept = asked.iter().copied();
    kept.filter(|name| !available.dropped_groups.iter().any(|it| it == *name))
        .collect()
}
