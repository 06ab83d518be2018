//! What is put down in the log, in the form the caller has it. Writing it out, redacted, is left to
//! whoever keeps or shows it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use toolwarden_guard::audit::Content;
use toolwarden_guard::{Denial, Fault, INITIAL_STATE, NameRef, Redaction, milliseconds};

use toolwarden_model::json::{Object, to_canonical_string};

use super::audit::ADMINISTRATION;
use super::body::Body;
use super::features::UsedFeature;
use super::live::Under;
use super::record_size::{RecordSize, short_name};

/// One thing that happened, to be put down in the log.
#[derive(Clone, Debug)]
pub struct Entry {
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
    /// Which.
    pub id: EntryId,
    principal: NameRef,
    tool: NameRef,
    session: Option<Box<str>>,
    /// What happened.
    pub event: Event,
    /// The policy it happened under: it knows the names, and what is kept of arguments. One reference
    /// instead of one for each of these keeps threads from waiting for each other's counters.
    under: Arc<Under>,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// A call was decided.
    Decision {
        /// Why it was refused; none where it was not.
        denial: Option<Box<Denial>>,
        /// The groups that were asked for; none are those of the session.
        groups: Option<Arc<[Box<str>]>>,
        /// The state of the session; none is the initial one.
        state: Option<Arc<str>>,
        /// The arguments.
        arguments: Arc<Value>,
        /// What is used, where that is not a tool.
        feature: Option<Box<UsedFeature>>,
        /// What the request said of itself.
        attributes: Option<Box<BTreeMap<String, Value>>>,
        /// Who vouches for the principal, where a token names it.
        issuer: Option<Arc<str>>,
        /// How long deciding took.
        latency: Duration,
    },
    /// A permitted call came to an end.
    Outcome {
        /// The decision it follows.
        call: EntryId,
        /// How it ended.
        ending: Ending,
        /// How long it took.
        latency: Duration,
        /// What is wrong with the result.
        faults: Vec<Fault>,
    },
    /// A session changed its state.
    Transition {
        /// From this.
        from: Arc<str>,
        /// To that.
        to: Arc<str>,
        /// `taken`, `dead_end` where it was taken and no tool is available there, or why it was not
        /// taken.
        code: &'static str,
    },
    /// A session was opened or closed.
    Session {
        /// Which of the two.
        code: &'static str,
        /// The session.
        detail: Object,
    },
    /// Somebody asked for more than is theirs.
    Escalation {
        /// In which way.
        code: &'static str,
        /// What was asked for.
        detail: Object,
    },
    /// The policy was exchanged, or was not.
    Policy {
        /// Which of the two.
        code: &'static str,
        /// The policy, or the mistakes in it.
        detail: Object,
    },
    /// Somebody did what only administrators may do.
    Administration {
        /// What.
        code: &'static str,
        /// To what.
        detail: Object,
    },
}

/// How a permitted call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It did what it should.
    Succeeded,
    /// It did not.
    Failed {
        /// Why, in the tool's words.
        error: String,
    },
    /// The tool asks for more before it can answer; the answer to that is another call.
    Suspended,
    /// Nobody said.
    Abandoned,
}

/// The name of an entry: a ULID, so that names sort as the entries were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(u128);

/// Makes names that no other process makes.
#[derive(Debug)]
pub(crate) struct EntryIds {
    process: u64,
    made: AtomicU64,
}

impl EntryIds {
    pub(crate) fn new() -> Self {
        let mut seed = [0; 8];
        // Without randomness names are unique by time and count; nothing rests on their secrecy.
        let process = match getrandom::fill(&mut seed) {
            Ok(()) => u64::from_le_bytes(seed),
            Err(_) => u64::from(std::process::id()),
        };
        Self {
            process,
            made: AtomicU64::new(0),
        }
    }

    pub(crate) fn next(&self, at_ms: i64) -> EntryId {
        let count = u128::from(self.made.fetch_add(1, Ordering::Relaxed) & 0xff_ffff_ffff);
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

impl super::audit::Recordable for Entry {
    fn content(self) -> Content {
        Self::content(&self)
    }
}

/// Whom and what an entry is about.
#[derive(Clone, Debug)]
pub(super) struct About {
    pub(super) principal: NameRef,
    pub(super) tool: NameRef,
    pub(super) session: Option<Box<str>>,
}

impl Entry {
    pub(super) fn new(
        at_ms: i64,
        id: EntryId,
        about: About,
        event: Event,
        under: Arc<Under>,
    ) -> Self {
        let About {
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
            under,
        }
    }

    /// Who made the call, empty where nobody did.
    #[must_use]
    pub fn principal(&self) -> &str {
        self.under.guard.principal_name(&self.principal)
    }

    /// The tool, empty where none is concerned.
    #[must_use]
    pub fn tool(&self) -> &str {
        self.under.guard.tool_name(&self.tool)
    }

    /// The session, empty where there is only the principal's own.
    #[must_use]
    pub fn session(&self) -> &str {
        self.session.as_deref().unwrap_or_default()
    }

    /// Whether it is the decision on a call.
    #[must_use]
    pub const fn is_decision(&self) -> bool {
        matches!(self.event, Event::Decision { .. })
    }

    /// Whether it is the refusal of a call.
    #[must_use]
    pub const fn is_denial(&self) -> bool {
        matches!(
            self.event,
            Event::Decision {
                denial: Some(_),
                ..
            }
        )
    }

    /// What a record says of it.
    #[must_use]
    pub fn content(&self) -> Content {
        let size = RecordSize::new(self.under.guard.audit().record_bytes);
        let (kind, code, allowed, body) = self.event.told(self.id, &self.under.redaction, size);
        Content {
            at_ms: self.at_ms,
            kind: Cow::Borrowed(kind),
            principal: told(self.principal()),
            tool: told(self.tool()),
            session: told(self.session()),
            code: Cow::Borrowed(code),
            allowed,
            body,
        }
    }
}

/// Kind, code, whether something was allowed, and the body of a record.
type Told = (&'static str, &'static str, Option<bool>, String);

impl Event {
    fn told(&self, id: EntryId, redaction: &Redaction, size: RecordSize) -> Told {
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
                let mut body = Body::new(size);
                body.arguments(&redaction.kept(arguments));
                if let Some(attributes) = attributes {
                    let told = Value::Object(Object::from_iter((**attributes).clone()));
                    body.value("attributes", &redaction.kept(&told));
                }
                if let Some(groups) = groups {
                    let names = groups.iter().map(|it| Value::from(&**it));
                    body.value("groups", &names.collect());
                }
                body.plain("id", &id.to_string());
                if let Some(issuer) = issuer {
                    body.value("issuer", &(&**issuer).into());
                }
                let feature = feature.as_deref();
                if let Some(feature) = feature {
                    body.plain("kind", feature.kind.as_str());
                }
                body.value("latency_ms", &milliseconds(*latency).into());
                if let Some(feature) = feature {
                    body.value("method", &(&*feature.method).into());
                }
                let denial = denial.as_deref();
                if let Some(denial) = denial {
                    body.faults(&denial.faults, redaction);
                }
                match denial {
                    None => body.plain("reason", toolwarden_guard::ALL_PASSED),
                    Some(denial) => body.value("reason", &reason(denial, redaction).into()),
                }
                if let Some(wait) = denial.and_then(|it| it.retry_after) {
                    body.value("retry_after", &wait.as_secs_f64().into());
                }
                if let Some(server) = feature.and_then(|it| it.server.as_deref()) {
                    body.value("server", &server.into());
                }
                let state = state.as_deref().unwrap_or(INITIAL_STATE);
                body.value("state", &state.into());
                let code = denial.map_or("allowed", |it| it.code.as_str());
                ("decision", code, Some(denial.is_none()), body.finish())
            }
            Self::Outcome {
                call,
                ending,
                latency,
                faults,
            } => {
                let mut body = Body::new(size);
                body.plain("call", &call.to_string());
                let code = match ending {
                    Ending::Succeeded => "succeeded",
                    Ending::Failed { error } => {
                        if redaction.keeps_texts() {
                            body.value("error", &error.as_str().into());
                        }
                        "failed"
                    }
                    Ending::Suspended => "suspended",
                    Ending::Abandoned => "abandoned",
                };
                body.plain("id", &id.to_string());
                body.value("latency_ms", &milliseconds(*latency).into());
                body.faults(faults, redaction);
                ("outcome", code, None, body.finish())
            }
            Self::Transition { from, to, code } => {
                let body = object(json!({"from": **from, "to": **to}));
                ("transition", code, None, named(body, id, size))
            }
            Self::Session { code, detail } => {
                ("session", code, None, named(detail.clone(), id, size))
            }
            Self::Escalation { code, detail } => {
                ("escalation", code, None, named(detail.clone(), id, size))
            }
            Self::Policy { code, detail } => {
                ("policy", code, None, named(detail.clone(), id, size))
            }
            Self::Administration { code, detail } => {
                (ADMINISTRATION, code, None, named(detail.clone(), id, size))
            }
        }
    }
}

/// Why a call was refused, without what is not kept.
fn reason(denial: &Denial, redaction: &Redaction) -> String {
    let hidden = denial.faults.first();
    let hidden = hidden.is_some_and(|fault| redaction.kept_place(&fault.pointer).1);
    if hidden {
        "input validation failed: in a place that is not kept".to_owned()
    } else if redaction.quotes_values() {
        denial.reason.clone()
    } else {
        denial.masked_reason()
    }
}

/// A body with the name of its entry.
fn named(body: Object, id: EntryId, size: RecordSize) -> String {
    let mut body = size.bounded(body);
    body.insert("id".to_owned(), id.to_string().into());
    to_canonical_string(&Value::Object(body))
}

/// A name, unless it is empty and says nothing.
fn told(name: &str) -> Option<Arc<str>> {
    (!name.is_empty()).then(|| short_name(name).into())
}

/// The members of an object that is written as a literal.
pub(crate) fn object(value: Value) -> Object {
    match value {
        Value::Object(members) => members,
        _ => Object::new(),
    }
}
