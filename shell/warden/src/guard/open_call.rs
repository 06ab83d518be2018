use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use thiserror::Error;
use toolwarden_guard::{Fault, INITIAL_STATE, OutputMode, Permit};

use super::deciding::Trail;
use super::deciding::between;
use super::entry::{Ending, EntryId, Event};
use super::live::{Call, LiveGuard};
use super::sessions::{Moved, Transition, Whose};

/// A permitted call whose outcome is still to be told. One that is dropped without is put down as
/// abandoned, and moves no session.
#[must_use = "tell the guard how the call ended"]
pub struct OpenCall {
    guard: LiveGuard,
    /// None once the outcome is told.
    permit: Option<Permit>,
    id: EntryId,
    principal: Box<str>,
    session: Option<Box<str>>,
    /// The state in which the call was permitted.
    state: Arc<str>,
    began: u64,
    latency: Duration,
}

/// A result that does not satisfy the tool's output schema.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("output validation failed: {}", first(faults))]
pub struct OutputRejected {
    /// What is wrong with it.
    pub faults: Vec<Fault>,
}

/// The most of a tool's error text that is kept.
const MAX_ERROR: usize = 500;

impl OpenCall {
    pub(super) fn new(guard: &LiveGuard, permit: Permit, call: &Call<'_>, trail: Trail) -> Self {
        Self {
            guard: guard.clone(),
            permit: Some(permit),
            id: trail.id,
            principal: call.principal.into(),
            session: call.session.map(Box::from),
            state: trail.state.unwrap_or_else(|| INITIAL_STATE.into()),
            began: trail.ended,
            latency: trail.latency,
        }
    }

    /// The name of the decision in the log.
    #[must_use]
    pub const fn id(&self) -> EntryId {
        self.id
    }

    /// How long the decision took.
    #[must_use]
    pub const fn latency(&self) -> Duration {
        self.latency
    }

    /// The tool that may be called.
    #[must_use]
    pub fn tool(&self) -> &str {
        self.permit.as_ref().map_or("", |permit| permit.tool())
    }

    /// Whether a result is held to a schema.
    #[must_use]
    pub fn checks_output(&self) -> bool {
        self.permit.as_ref().is_some_and(Permit::checks_output)
    }

    /// The call did what it should. The session moves on, unless the result is rejected.
    ///
    /// # Errors
    /// The result does not satisfy the output schema, and the policy enforces it.
    pub fn succeeded(self, result: &Value) -> Result<(), OutputRejected> {
        let faults = self
            .permit
            .as_ref()
            .map_or_else(Vec::new, |it| it.output_faults(result));
        self.succeeded_with(faults)
    }

    /// The call did what it should, and its result was looked at elsewhere or cannot be. The session
    /// moves on.
    pub fn succeeded_unseen(mut self) {
        if let Some(permit) = self.permit.take() {
            self.put_down(&permit, Ending::Succeeded, Vec::new());
            self.move_on(&permit);
        }
    }

    /// The call returned a result in which this is wrong.
    pub(super) fn succeeded_with(mut self, faults: Vec<Fault>) -> Result<(), OutputRejected> {
        let Some(permit) = self.permit.take() else {
            return Ok(());
        };
        if !faults.is_empty() && permit.output_mode() == OutputMode::Enforce {
            let rejected = OutputRejected { faults };
            let masked = rejected.faults.first().map_or("", |fault| &fault.masked);
            let error = format!("output validation failed: {masked}");
            self.put_down(&permit, Ending::Failed { error }, rejected.faults.clone());
            return Err(rejected);
        }
        self.put_down(&permit, Ending::Succeeded, faults);
        self.move_on(&permit);
        Ok(())
    }

    /// The call did not do what it should. The session stays where it is.
    pub fn failed(mut self, error: &dyn fmt::Display) {
        if let Some(permit) = self.permit.take() {
            let error = error.to_string().chars().take(MAX_ERROR).collect();
            self.put_down(&permit, Ending::Failed { error }, Vec::new());
        }
    }

    fn put_down(&self, permit: &Permit, ending: Ending, faults: Vec<Fault>) {
        let shared = &self.guard.shared;
        let latency = between(self.began, shared.clock.monotonic());
        self.note(
            permit,
            Event::Outcome {
                call: self.id,
                ending,
                latency,
                faults,
            },
        );
    }

    fn move_on(&self, permit: &Permit) {
        let Some(next) = permit.next_state() else {
            return;
        };
        let shared = &self.guard.shared;
        let current = shared.current();
        let step = Transition {
            tool: Arc::clone(permit.tool()),
            from: Arc::clone(&self.state),
            to: Arc::clone(next),
            at: shared.clock.wall(),
        };
        let whose = Whose {
            principal: &self.principal,
            session: self.session.as_deref().unwrap_or_default(),
        };
        let (from, to) = (Arc::clone(&step.from), Arc::clone(next));
        let at = shared.moment(&current.guard, shared.clock.monotonic());
        let moved = shared.sessions.advance(whose, step, at);
        let code = match moved {
            Moved::Already => return,
            Moved::Taken { after } => {
                let step = (&**permit.tool(), &*from, &*to);
                shared.metrics.transition(&current.guard, step, after);
                if current.guard.has_tools_in(next) {
                    "taken"
                } else {
                    "dead_end"
                }
            }
            Moved::Elsewhere => "elsewhere",
            Moved::Full => "too_many_sessions",
        };
        if code != "taken" {
            shared.metrics.invalid_transition(code);
        }
        self.note(permit, Event::Transition { from, to, code });
    }

    fn note(&self, permit: &Permit, event: Event) {
        let shared = &self.guard.shared;
        let call = Call {
            tool: permit.tool(),
            principal: &self.principal,
            session: self.session.as_deref(),
            ..Call::default()
        };
        shared.note(&shared.current(), &call, event);
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        if let Some(permit) = self.permit.take() {
            self.put_down(&permit, Ending::Abandoned, Vec::new());
        }
    }
}

impl fmt::Debug for OpenCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenCall({} by {})", self.tool(), self.principal)
    }
}

fn first(faults: &[Fault]) -> &str {
    faults.first().map_or("", |fault| &fault.message)
}
