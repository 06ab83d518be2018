//! Entries of the log, in the form in which the caller has them. The log that stores or shows an entry
//! writes it out, redacted.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use toolwarden_guard::audit::RecordContent;
use toolwarden_guard::{Denial, INITIAL_STATE, NameRef, Redaction, ValueFault, milliseconds};

use toolwarden_model::json::{Object, to_canonical_string};
use toolwarden_model::{GroupName, StateName};

use super::entry_policy::EntryPolicy;
use super::record_body::RecordBody;
use super::record_size::{RecordSize, short_name};
use super::used_feature::UsedFeature;

/// The kind of records of administrators' actions, through the API or directly in the store.
pub(crate) const ADMINISTRATION: &str = "administration";

/// One event, to be recorded in the log.
#[derive(Clone, Debug)]
pub struct LogEntry {
    /// The time, in milliseconds since 1970.
    pub at_ms: i64,
    /// The id of the entry.
    pub id: EntryId,
    principal: NameRef,
    tool: NameRef,
    session: Option<Box<str>>,
    /// The event.
    pub event: AuditEvent,
    /// The policy at the time of the event: it has the names and the redaction rules. A single reference
    /// keeps threads from contending for several reference counts.
    policy: Arc<EntryPolicy>,
}

/// An event.
#[derive(Clone, Debug)]
pub enum AuditEvent {
    /// A call was decided.
    Decision {
        /// Why the call was denied; `None` if it was allowed.
        denial: Option<Box<Denial>>,
        /// The requested groups; `None` means those of the session.
        groups: Option<Arc<[GroupName]>>,
        /// The state of the session; `None` is the initial state.
        state: Option<StateName>,
        /// The arguments.
        arguments: Arc<Value>,
        /// The feature used, if it is not a tool.
        feature: Option<Box<UsedFeature>>,
        /// The attributes of the request.
        attributes: Option<Box<BTreeMap<String, Value>>>,
        /// The issuer of the token that names the principal, if there is one.
        issuer: Option<Arc<str>>,
        /// How long the decision took.
        latency: Duration,
    },
    /// A permitted call ended.
    Outcome {
        /// The id of its decision.
        call: EntryId,
        /// How it ended.
        ending: CallOutcome,
        /// How long it took.
        latency: Duration,
        /// The faults in the result.
        faults: Vec<ValueFault>,
    },
    /// A session changed its state.
    Transition {
        /// The previous state.
        from: StateName,
        /// The new state.
        to: StateName,
        /// `taken`, `dead_end` if it was taken and no tool is available there, or why it was not taken.
        code: &'static str,
    },
    /// A session was opened, changed or closed.
    Session {
        /// The kind of change.
        code: &'static str,
        /// The session.
        detail: Object,
    },
    /// A principal requested more than it is granted.
    Escalation {
        /// The kind of escalation.
        code: &'static str,
        /// The request.
        detail: Object,
    },
    /// The policy was replaced, or could not be.
    Policy {
        /// Which of the two.
        code: &'static str,
        /// The policy, or the mistakes in it.
        detail: Object,
    },
    /// An administrator acted.
    Administration {
        /// The action.
        code: &'static str,
        /// The object of the action.
        detail: Object,
    },
}

/// How a permitted call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// It succeeded.
    Succeeded,
    /// It failed.
    Failed {
        /// The tool's error message.
        error: String,
    },
    /// The tool needs more input before it can answer; that input is another call.
    Suspended,
    /// The outcome was never reported.
    Abandoned,
}

/// The id of an entry: a ULID, so that ids sort by creation time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(u128);

/// Creates ids that are unique across processes.
#[derive(Debug)]
pub(crate) struct EntryIdGenerator {
    process: u64,
    counter: AtomicU64,
}

impl EntryIdGenerator {
    pub(crate) fn new() -> Self {
        let mut seed = [0; 8];
        // Without randomness ids are unique by time and count; nothing depends on their secrecy.
        let process = match getrandom::fill(&mut seed) {
            Ok(()) => u64::from_le_bytes(seed),
            Err(_) => u64::from(std::process::id()),
        };
        Self {
            process,
            counter: AtomicU64::new(0),
        }
    }

    pub(crate) fn next(&self, at_ms: i64) -> EntryId {
        let count = u128::from(self.counter.fetch_add(1, Ordering::Relaxed) & 0xff_ffff_ffff);
        let process = u128::from(self.process & 0xff_ffff_ffff);
        let time = u128::from(at_ms.unsigned_abs() & 0xffff_ffff_ffff);
        EntryId(time << 80 | process << 40 | count)
    }
}

impl std::fmt::Display for EntryId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
        for place in (0..26).rev() {
            let digit = (self.0 >> (5 * place)) & 31;
            let digit = usize::try_from(digit).ok().and_then(|it| DIGITS.get(it));
            std::fmt::Write::write_char(f, char::from(digit.copied().unwrap_or(b'0')))?;
        }
        Ok(())
    }
}

/// The principal, tool and session of an entry.
#[derive(Clone, Debug)]
pub(super) struct EntrySubject {
    pub(super) principal: NameRef,
    pub(super) tool: NameRef,
    pub(super) session: Option<Box<str>>,
}

impl LogEntry {
    pub(super) fn new(
        at_ms: i64,
        id: EntryId,
        about: EntrySubject,
        event: AuditEvent,
        policy: Arc<EntryPolicy>,
    ) -> Self {
        let EntrySubject {
            principal,
            tool,
            session,
        } = about;
        Self {
            at_ms,
            id,
            principal,
            tool,
            session,
            event,
            policy,
        }
    }

    /// The principal; empty if the entry has none.
    #[must_use]
    pub fn principal(&self) -> &str {
        self.policy.guard.principal_name(&self.principal)
    }

    /// The tool; empty if the entry has none.
    #[must_use]
    pub fn tool(&self) -> &str {
        self.policy.guard.tool_name(&self.tool)
    }

    /// The session; empty if it is the principal's default session.
    #[must_use]
    pub fn session(&self) -> &str {
        self.session.as_deref().unwrap_or_default()
    }

    /// Whether it is the decision on a call.
    #[must_use]
    pub const fn is_decision(&self) -> bool {
        matches!(self.event, AuditEvent::Decision { .. })
    }

    /// Whether it is the denial of a call.
    #[must_use]
    pub const fn is_denial(&self) -> bool {
        matches!(
            self.event,
            AuditEvent::Decision {
                denial: Some(_),
                ..
            }
        )
    }

    /// The content of its record.
    #[must_use]
    pub fn content(&self) -> RecordContent {
        let size = RecordSize::new(self.policy.guard.audit().record_bytes);
        let (kind, code, allowed, body) =
            self.event
                .record_fields(self.id, &self.policy.redaction, size);
        RecordContent {
            at_ms: self.at_ms,
            kind: Cow::Borrowed(kind),
            principal: non_empty(self.principal()),
            tool: non_empty(self.tool()),
            session: non_empty(self.session()),
            code: Cow::Borrowed(code),
            allowed,
            body,
        }
    }
}

/// The kind, code, allowed flag and body of a record.
type RecordFields = (&'static str, &'static str, Option<bool>, String);

impl AuditEvent {
    fn record_fields(&self, id: EntryId, redaction: &Redaction, size: RecordSize) -> RecordFields {
        match self {
            Self::Decision {
                denial,
                groups,
                state,
                arguments,
                feature,
                attributes,
                issuer,
                latency,
            } => {
                let mut body = RecordBody::new(size);
                body.add_arguments(&redaction.redact(arguments));
                if let Some(attributes) = attributes {
                    let told = Value::Object(Object::from_iter((**attributes).clone()));
                    body.add_value("attributes", &redaction.redact(&told));
                }
                if let Some(groups) = groups {
                    let names = groups.iter().map(|it| Value::from(it.as_str()));
                    body.add_value("groups", &names.collect());
                }
                body.add_plain("id", &id.to_string());
                if let Some(issuer) = issuer {
                    body.add_value("issuer", &(&**issuer).into());
                }
                let feature = feature.as_deref();
                if let Some(feature) = feature {
                    body.add_plain("kind", feature.kind.as_str());
                }
                body.add_value("latency_ms", &milliseconds(*latency).into());
                if let Some(feature) = feature {
                    body.add_value("method", &(&*feature.method).into());
                }
                let denial = denial.as_deref();
                if let Some(denial) = denial {
                    body.add_faults(&denial.faults, redaction);
                }
                match denial {
                    None => body.add_plain("reason", toolwarden_guard::ALL_PASSED),
                    Some(denial) => {
                        body.add_value("reason", &redacted_reason(denial, redaction).into())
                    }
                }
                if let Some(wait) = denial.and_then(|it| it.retry_after) {
                    body.add_value("retry_after", &wait.as_secs_f64().into());
                }
                if let Some(server) = feature.and_then(|it| it.server.as_deref()) {
                    body.add_value("server", &server.into());
                }
                let state = state.as_ref().unwrap_or(&INITIAL_STATE);
                body.add_value("state", &state.as_str().into());
                let code = denial.map_or("allowed", |it| it.code.as_str());
                ("decision", code, Some(denial.is_none()), body.finish())
            }
            Self::Outcome {
                call,
                ending,
                latency,
                faults,
            } => {
                let mut body = RecordBody::new(size);
                body.add_plain("call", &call.to_string());
                let code = match ending {
                    CallOutcome::Succeeded => "succeeded",
                    CallOutcome::Failed { error } => {
                        if redaction.keeps_texts() {
                            body.add_value("error", &error.as_str().into());
                        }
                        "failed"
                    }
                    CallOutcome::Suspended => "suspended",
                    CallOutcome::Abandoned => "abandoned",
                };
                body.add_plain("id", &id.to_string());
                body.add_value("latency_ms", &milliseconds(*latency).into());
                body.add_faults(faults, redaction);
                ("outcome", code, None, body.finish())
            }
            Self::Transition { from, to, code } => {
                let body = object(json!({"from": from, "to": to}));
                ("transition", code, None, body_with_id(body, id, size))
            }
            Self::Session { code, detail } => (
                "session",
                code,
                None,
                body_with_id(detail.clone(), id, size),
            ),
            Self::Escalation { code, detail } => (
                "escalation",
                code,
                None,
                body_with_id(detail.clone(), id, size),
            ),
            Self::Policy { code, detail } => {
                ("policy", code, None, body_with_id(detail.clone(), id, size))
            }
            Self::Administration { code, detail } => (
                ADMINISTRATION,
                code,
                None,
                body_with_id(detail.clone(), id, size),
            ),
        }
    }
}

/// Why a call was denied, without values that are not stored.
fn redacted_reason(denial: &Denial, redaction: &Redaction) -> String {
    let hidden = denial.faults.first();
    let hidden = hidden.is_some_and(|fault| redaction.redact_pointer(&fault.pointer).1);
    if hidden {
        "input validation failed: in a place that is not kept".to_owned()
    } else if redaction.quotes_values() {
        denial.reason.clone()
    } else {
        denial.masked_reason()
    }
}

/// A body with the id of its entry.
fn body_with_id(body: Object, id: EntryId, size: RecordSize) -> String {
    let mut body = size.bound_members(body);
    body.insert("id".to_owned(), id.to_string().into());
    to_canonical_string(&Value::Object(body))
}

/// A name; `None` if it is empty.
fn non_empty(name: &str) -> Option<Arc<str>> {
    (!name.is_empty()).then(|| short_name(name).into())
}

/// The members of an object literal.
pub(crate) fn object(value: Value) -> Object {
    match value {
        Value::Object(members) => members,
        _ => Object::new(),
    }
}
