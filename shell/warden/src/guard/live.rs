use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use serde_json::{Value, json};
use toolwarden_guard::{
    Amendment, Availability, Circumstances, Decision, Denial, Guard, INITIAL_STATE,
    InvalidPermission, Redaction, Request, RequestedGroups, Step,
};
use toolwarden_model::json::Object;

use super::clock::Clock;
use super::entry::{EntryId, EntryIds, Event, object};
use super::file::{LoadedPolicy, PolicyFileError};
use super::limiter::{Key, Limiter, NoRandomness};
use super::log::Log;
use super::metrics::Metrics;
use super::open_call::OpenCall;
use super::sessions::Sessions;

/// A guard in use: a policy together with what changes from call to call. Cheap to clone; clones are
/// the same guard.
#[derive(Clone, Debug)]
pub struct LiveGuard {
    pub(super) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct Shared {
    current: ArcSwap<Current>,
    /// Permissions changed at run time, which outlive a change of the policy. Held while the policy
    /// is exchanged, so that no change is lost.
    amendments: Mutex<Vec<(Arc<str>, Amendment)>>,
    pub(super) limiter: Limiter,
    pub(super) sessions: Sessions,
    pub(super) log: Log,
    pub(super) clock: Clock,
    pub(super) ids: EntryIds,
    pub(super) metrics: Metrics,
    /// The bits of the load the host reported; a NaN where it reported none.
    pub(super) load: AtomicU64,
    pub(super) nothing: Circumstances,
}

/// The policy in use.
#[derive(Debug)]
pub(super) struct Current {
    /// Without changes made at run time.
    base: Guard,
    pub(super) guard: Guard,
    pub(super) redaction: Arc<Redaction>,
}

/// One attempt to use a tool.
#[derive(Clone, Debug, Default)]
pub struct Call<'c> {
    /// The tool.
    pub tool: &'c str,
    /// Who makes it.
    pub principal: &'c str,
    /// In which session; none is the principal's own.
    pub session: Option<&'c str>,
    /// The groups it asks for; none are those of the session.
    pub groups: Option<RequestedGroups>,
    /// The state the client says it is in. Only the first call of a session may say so, and only
    /// where the policy lets it.
    pub state: Option<&'c str>,
    /// The arguments.
    pub arguments: Arc<Value>,
    /// What conditions may ask about the request.
    pub attributes: BTreeMap<String, Value>,
}

/// What the gates need to know of a session.
pub(super) struct Standing {
    /// None is the initial one.
    pub(super) state: Option<Arc<str>>,
    pub(super) groups: RequestedGroups,
}

/// What a decision leaves behind for those who follow it up.
pub(super) struct Trail {
    pub(super) id: EntryId,
    /// The state it was made in; none is the initial one.
    pub(super) state: Option<Arc<str>>,
    pub(super) ended: u64,
    pub(super) latency: Duration,
}

impl Standing {
    pub(super) fn name(&self) -> &str {
        self.state.as_deref().unwrap_or(INITIAL_STATE)
    }
}

impl LiveGuard {
    /// Puts a guard to use.
    ///
    /// # Errors
    /// The system has no randomness to key the rate windows with.
    pub fn new(guard: Guard, log: Log, clock: Clock) -> Result<Self, NoRandomness> {
        let no_load = f64::NAN.to_bits();
        let nothing = Circumstances {
            now: jiff::Timestamp::UNIX_EPOCH,
            zone: jiff::tz::TimeZone::UTC,
            load: None,
            attributes: BTreeMap::new(),
        };
        Ok(Self {
            shared: Arc::new(Shared {
                current: ArcSwap::from_pointee(Current::new(guard.clone(), guard)),
                amendments: Mutex::default(),
                limiter: Limiter::new()?,
                sessions: Sessions::new(),
                log,
                clock,
                ids: EntryIds::new(),
                metrics: Metrics::new(),
                load: AtomicU64::new(no_load),
                nothing,
            }),
        })
    }

    /// The log decisions are put down in.
    #[must_use]
    pub fn log(&self) -> &Log {
        &self.shared.log
    }

    /// What has been counted.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// Decides a call and puts the decision down. A call that is allowed has to be settled with its
    /// outcome.
    ///
    /// # Errors
    /// The call is refused.
    pub fn decide(&self, call: &Call<'_>) -> Result<OpenCall, Denial> {
        let (answer, trail) = self.shared.decide(call);
        answer.map(|permit| OpenCall::new(self, permit, call, trail))
    }

    /// Decides a call and puts the decision down, for a call that is made elsewhere or not at all.
    pub fn intercept(&self, call: &Call<'_>) -> Decision {
        let (answer, trail) = self.shared.decide(call);
        match answer {
            Ok(_) => Decision::allow(trail.latency),
            Err(denial) => Decision::deny(&denial, trail.latency),
        }
    }

    /// What every gate says about a call. Nothing is counted, nothing recorded, no session touched.
    #[must_use]
    pub fn explain(&self, call: &Call<'_>) -> Vec<Step> {
        let shared = &self.shared;
        let now = shared.clock.monotonic();
        let current = shared.current();
        let idle = current.guard.sessions().idle;
        let kept = shared.sessions.standing(call.whose(), now, idle);
        let standing = match kept {
            Some((state, groups)) => Standing {
                state: Some(state),
                groups,
            },
            None => Standing {
                state: call.state.map(Arc::from),
                groups: RequestedGroups::Default,
            },
        };
        let circumstances = shared.circumstances(&current.guard, &call.attributes);
        let request = Request {
            principal: call.principal,
            groups: call.groups.as_ref().unwrap_or(&standing.groups),
            state: standing.name(),
            circumstances: circumstances.as_ref().unwrap_or(&shared.nothing),
        };
        current
            .guard
            .explain(&request, call.tool, &call.arguments, |limits| {
                shared.would_pass(call, limits, now)
            })
    }

    /// Which tools a principal sees in a session, and why not the others.
    ///
    /// # Errors
    /// Groups are asked for that are not granted.
    pub fn available(&self, call: &Call<'_>) -> Result<Availability, Denial> {
        let shared = &self.shared;
        let now = shared.clock.monotonic();
        let current = shared.current();
        let standing = shared.standing(&current, call, now);
        let circumstances = shared.circumstances(&current.guard, &call.attributes);
        let request = Request {
            principal: call.principal,
            groups: call.groups.as_ref().unwrap_or(&standing.groups),
            state: standing.name(),
            circumstances: circumstances.as_ref().unwrap_or(&shared.nothing),
        };
        let available = current.guard.available(&request);
        match &available {
            Ok(found) => shared.metrics.listed(&current.guard, &request, found),
            Err(denial) => {
                shared.count_denial(&current.guard, denial, &request);
                let detail = object(json!({
                    "groups": request.groups.names().collect::<Vec<_>>(),
                    "reason": denial.reason,
                }));
                let code = denial.code.as_str();
                shared.note(&current, call, Event::Escalation { code, detail });
            }
        }
        available
    }

    /// Takes over another policy. Windows, sessions and permissions changed at run time stay.
    pub fn exchange(&self, guard: Guard, detail: Object) {
        let shared = &self.shared;
        let amendments = shared
            .amendments
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let amended = amended(&guard, &amendments);
        let current = Arc::new(Current::new(guard, amended));
        shared.current.store(Arc::clone(&current));
        let code = "exchanged";
        let nobody = Call::default();
        shared.note(&current, &nobody, Event::Policy { code, detail });
    }

    /// Reads a policy file and takes it over. One with a mistake changes nothing: the policy in use
    /// stays, and the mistake is put down in the log.
    ///
    /// # Errors
    /// The file cannot be used.
    pub fn reload(&self, path: &Path) -> Result<(), PolicyFileError> {
        match LoadedPolicy::read(path) {
            Ok(loaded) => {
                let detail = object(json!({
                    "file": path.display().to_string(),
                    "fingerprint": loaded.fingerprint.to_string(),
                }));
                self.exchange(loaded.guard, detail);
                Ok(())
            }
            Err(error) => {
                let shared = &self.shared;
                let detail = object(json!({
                    "file": path.display().to_string(),
                    "error": error.to_string(),
                }));
                shared.metrics.reload_failed();
                let current = shared.current();
                let code = "refused";
                let nobody = Call::default();
                shared.note(&current, &nobody, Event::Policy { code, detail });
                Err(error)
            }
        }
    }

    /// Gives a principal a permission.
    ///
    /// # Errors
    /// The text is no permission.
    pub fn grant_permission(
        &self,
        principal: &str,
        permission: &str,
    ) -> Result<(), InvalidPermission> {
        self.amend(principal, Amendment::grant(permission)?);
        Ok(())
    }

    /// Takes a permission from a principal, also where a pattern would cover it.
    ///
    /// # Errors
    /// The text is no permission.
    pub fn revoke_permission(
        &self,
        principal: &str,
        permission: &str,
    ) -> Result<(), InvalidPermission> {
        self.amend(principal, Amendment::revoke(permission)?);
        Ok(())
    }

    fn amend(&self, principal: &str, amendment: Amendment) {
        let shared = &self.shared;
        let mut amendments = shared
            .amendments
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // Only the last word on each permission counts.
        amendments.retain(|(name, it)| **name != *principal || it.pattern() != amendment.pattern());
        amendments.push((principal.into(), amendment));
        let base = shared.current.load().base.clone();
        let guard = amended(&base, &amendments);
        shared.current.store(Arc::new(Current::new(base, guard)));
    }

    /// Tells the guard how busy the host is, for conditions on `load`.
    pub fn report_load(&self, load: f64) {
        self.shared.load.store(load.to_bits(), Ordering::Relaxed);
    }

    /// How many calls of a principal to a tool count at present, within a time.
    #[must_use]
    pub fn current_count(&self, tool: &str, principal: &str, window: Duration) -> usize {
        let now = self.shared.clock.monotonic();
        let key = Key::of_agent(tool, principal);
        self.shared.limiter.count(now, key, window)
    }

    /// Forgets the calls of a principal to a tool.
    pub fn reset_count(&self, tool: &str, principal: &str) {
        self.shared.limiter.reset(Key::of_agent(tool, principal));
    }
}

fn amended(guard: &Guard, amendments: &[(Arc<str>, Amendment)]) -> Guard {
    if amendments.is_empty() {
        return guard.clone();
    }
    guard.amended(amendments.iter().map(|(name, it)| (&**name, it)))
}

impl Shared {
    pub(super) fn current(&self) -> Arc<Current> {
        self.current.load_full()
    }
}

impl Current {
    fn new(base: Guard, guard: Guard) -> Self {
        let redaction = Arc::new(Redaction::new(guard.audit()));
        Self {
            base,
            guard,
            redaction,
        }
    }
}
