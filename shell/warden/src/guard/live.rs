use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use toolwarden_guard::{
    Amendment, Availability, Circumstances, Decision, Denial, Discovered, Feature, Guard,
    InvalidPermission, Redaction, RequestedGroups, SchemaFault, Step, ToolPolicy,
};
use toolwarden_model::json::Object;

use super::clock::Clock;
use super::denial_rate::DenialSums;
use super::entry::{EntryIds, Event, object};
use super::file::{LoadedPolicy, PolicyFileError};
use super::limiter::{Key, Limiter, NoRandomness};
use super::listings::Listings;
use super::log::Log;
use super::metrics::Metrics;
use super::misuse::{MisuseAlert, MisuseMonitor, MisuseRules};
use super::open_call::OpenCall;
use super::roles::{ByRoles, CallerClaims};
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
    /// Held while the policy in use is made anew, so that no change is lost.
    parts: Mutex<Parts>,
    pub(super) limiter: Arc<Limiter>,
    pub(super) sessions: Sessions,
    pub(super) log: Log,
    pub(super) clock: Clock,
    pub(super) ids: EntryIds,
    pub(super) metrics: Metrics,
    /// Denials over the rate.
    pub(super) denial_sums: DenialSums,
    pub(super) misuse: MisuseMonitor,
    /// The bits of the load the host reported; a NaN where it reported none.
    pub(super) load: AtomicU64,
    pub(super) nothing: Circumstances,
}

/// The policy in use.
#[derive(Debug)]
pub(super) struct Current {
    pub(super) guard: Guard,
    pub(super) under: Arc<Under>,
    pub(super) listings: Listings,
    pub(super) by_roles: ByRoles,
}

/// What the policy in use is made of.
#[derive(Debug)]
pub(super) struct Parts {
    /// The policy, and tools registered by hand.
    pub(super) policy: Guard,
    /// What was learned from servers, which outlives a change of the policy.
    pub(super) discovered: Discovered,
    /// The servers, with the rules for what they offer and the policy does not name.
    pub(super) servers: BTreeMap<Arc<str>, Arc<ToolPolicy>>,
    /// Permissions changed at run time, which outlive a change of the policy.
    pub(super) amendments: Vec<(Arc<str>, Amendment)>,
}

impl Parts {
    fn put_together(&self) -> Current {
        let whole = self.policy.with_discovered(&self.discovered);
        let whole = whole.with_servers(&self.servers);
        let guard = whole.amended(self.amendments.iter().map(|(name, it)| (&**name, it)));
        Current::new(guard, Under::new(whole))
    }
}

impl Current {
    pub(super) fn new(guard: Guard, under: Arc<Under>) -> Self {
        Self {
            guard,
            under,
            listings: Listings::default(),
            by_roles: ByRoles::default(),
        }
    }
}

/// What entries need of the policy they were made under. It outlives the policy while entries do.
#[derive(Debug)]
pub(super) struct Under {
    /// The policy without changes of permissions made at run time; it knows the same names.
    pub(super) guard: Guard,
    pub(super) redaction: Redaction,
}

/// One attempt to use a tool. What is not said is as the connectorguard document has it: no arguments,
/// and nobody known.
#[derive(Clone, Debug)]
pub struct Call<'c> {
    /// The tool.
    pub tool: &'c str,
    /// What is used instead of a tool: a resource, a prompt, a skill or a method of an extension.
    pub feature: Option<Feature<'c>>,
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
    /// The variant of clients it comes from, to which a server may offer another definition.
    pub variant: Option<&'c str>,
    /// What the caller's credential says of it.
    pub claims: Option<&'c CallerClaims>,
}

/// What becomes of a tool whose name is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Present {
    /// It stays, and the new one is refused.
    Keep,
    /// The new one takes its place.
    Replace,
}

/// A tool of the same name is there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("connector '{tool}' is already registered")]
pub struct AlreadyRegistered {
    /// The tool.
    pub tool: String,
}

/// The principal of a call that names none.
pub const UNKNOWN_PRINCIPAL: &str = "unknown";

impl Default for Call<'_> {
    fn default() -> Self {
        Self {
            tool: "",
            feature: None,
            principal: UNKNOWN_PRINCIPAL,
            session: None,
            groups: None,
            state: None,
            arguments: Arc::new(Value::Object(Object::new())),
            attributes: BTreeMap::new(),
            variant: None,
            claims: None,
        }
    }
}

impl LiveGuard {
    /// Puts a guard to use.
    ///
    /// # Errors
    /// The system has no randomness to key the rate windows with.
    pub fn new(guard: Guard, log: Log, clock: Clock) -> Result<Self, NoRandomness> {
        let limiter = Arc::new(Limiter::new()?);
        Ok(Self::with_limiter(guard, log, clock, limiter))
    }

    /// Puts a guard to use that shares its rate windows with others.
    #[must_use]
    pub fn with_limiter(guard: Guard, log: Log, clock: Clock, limiter: Arc<Limiter>) -> Self {
        let no_load = f64::NAN.to_bits();
        let nothing = Circumstances {
            now: jiff::Timestamp::UNIX_EPOCH,
            zone: jiff::tz::TimeZone::UTC,
            load: None,
            attributes: BTreeMap::new(),
        };
        let parts = Parts {
            policy: guard,
            discovered: Discovered::default(),
            servers: BTreeMap::new(),
            amendments: Vec::new(),
        };
        Self {
            shared: Arc::new(Shared {
                current: ArcSwap::from_pointee(parts.put_together()),
                parts: Mutex::new(parts),
                limiter,
                sessions: Sessions::new(),
                log,
                clock,
                ids: EntryIds::new(),
                metrics: Metrics::new(),
                denial_sums: DenialSums::default(),
                misuse: MisuseMonitor::default(),
                load: AtomicU64::new(no_load),
                nothing,
            }),
        }
    }

    /// Puts a policy that was loaded to use, and puts down which one it is.
    ///
    /// # Errors
    /// The system has no randomness to key the rate windows with.
    pub fn open(policy: LoadedPolicy, log: Log, clock: Clock) -> Result<Self, NoRandomness> {
        let detail = policy.detail();
        let guard = Self::new(policy.guard, log, clock)?;
        guard.note_policy("loaded", detail);
        Ok(guard)
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
    #[must_use]
    pub fn intercept(&self, call: &Call<'_>) -> Decision {
        let (answer, trail) = self.shared.decide(call);
        match answer {
            Ok(_) => Decision::allow(trail.latency),
            Err(denial) => Decision::deny(&denial, trail.latency),
        }
    }

    /// Puts down that a call was refused before it could be decided.
    pub(super) fn refuse(&self, call: &Call<'_>, denial: Denial) -> Denial {
        self.shared.refuse(call, denial)
    }

    /// As [`Self::refuse`], without waiting for the record.
    pub(super) fn refuse_soon(&self, call: &Call<'_>, denial: Denial) -> Denial {
        self.shared.log.never_block();
        self.shared.refuse_soon(call, denial)
    }

    /// What every gate says about a call. Nothing is counted, nothing recorded, no session touched.
    #[must_use]
    pub fn explain(&self, call: &Call<'_>) -> Vec<Step> {
        let shared = &self.shared;
        let now = shared.clock.monotonic();
        let current = shared.current_for(call);
        let standing = shared.standing(&current.guard, call, now);
        shared.asking(&current.guard, call, &standing, |request| {
            let windows = |name: &_, limits: &_| shared.would_pass(call, name, limits, now);
            let guard = &current.guard;
            let mut steps = guard.explain(request, call.wanted(), &call.arguments, windows);
            standing.explain_groups(call, &mut steps);
            standing.explain(guard, call, &mut steps);
            steps
        })
    }

    /// Which tools a principal sees in a session, and why not the others. The tool and the arguments
    /// of the call do not matter.
    ///
    /// # Errors
    /// Groups are asked for that are not granted.
    pub fn available(&self, call: &Call<'_>) -> Result<Arc<Availability>, Denial> {
        let shared = &self.shared;
        let current = shared.current_for(call);
        let standing = shared.standing(&current.guard, call, shared.clock.monotonic());
        shared.note_claim(&current, call, &standing);
        shared.list(&current, call, &standing)
    }

    /// Takes over another policy. Windows, sessions, permissions changed at run time and tools learned
    /// from servers stay, and so does the durability of the log; where the policy asks for another one,
    /// its record says so.
    pub fn exchange(&self, policy: LoadedPolicy) {
        let shared = &self.shared;
        let mut detail = policy.detail();
        let asked = policy.guard.audit().durability;
        if let Some(kept) = shared.log.durability().filter(|it| *it != asked) {
            detail.insert("durability_kept".to_owned(), kept.as_str().into());
        }
        shared.remake(|parts| parts.policy = policy.guard);
        self.note_policy("exchanged", detail);
    }

    /// Reads a policy file and takes it over. One with a mistake changes nothing: the policy in use
    /// stays, and the mistake is put down in the log.
    ///
    /// # Errors
    /// The file cannot be used.
    pub fn reload(&self, path: &Path) -> Result<(), PolicyFileError> {
        match LoadedPolicy::read(path) {
            Ok(loaded) => {
                self.exchange(loaded);
                Ok(())
            }
            Err(error) => {
                self.shared.metrics.reload_failed();
                let detail = object(json!({
                    "file": path.display().to_string(),
                    "error": error.to_string(),
                }));
                self.note_policy("refused", detail);
                Err(error)
            }
        }
    }

    /// Adds a tool. Until the policy is exchanged it counts as if it stood there. A schema that cannot
    /// be used is told, and no call of the tool passes.
    ///
    /// # Errors
    /// There is a tool of that name, and it is not to be replaced.
    pub fn register(
        &self,
        tool: &ToolPolicy,
        present: Present,
    ) -> Result<Vec<SchemaFault>, AlreadyRegistered> {
        let mut parts = self.shared.parts();
        let taken = parts.policy.has_tool(&tool.name) || parts.discovered.has(&tool.name);
        if taken && present == Present::Keep {
            return Err(AlreadyRegistered {
                tool: tool.name.clone(),
            });
        }
        let (policy, faults) = parts.policy.with_tool(tool);
        parts.policy = policy;
        self.shared.use_parts(parts);
        let detail = object(json!({"tool": tool.name}));
        self.note_policy("registered", detail);
        Ok(faults)
    }

    /// Whether there is a tool of this name.
    #[must_use]
    pub fn is_registered(&self, tool: &str) -> bool {
        self.shared.current().guard.has_tool(tool)
    }

    /// Takes a tool away; nothing where there is none of that name. One that servers have comes back
    /// when they are next heard of.
    pub fn unregister(&self, tool: &str) {
        self.shared.remake(|parts| {
            parts.policy = parts.policy.without_tool(tool);
            if parts.discovered.has(tool) {
                parts.discovered = parts.discovered.without(tool);
            }
        });
        self.note_policy("unregistered", object(json!({"tool": tool})));
    }

    /// The names of all tools, sorted.
    #[must_use]
    pub fn tool_names(&self) -> Vec<String> {
        let current = self.shared.current();
        let names = current.guard.tool_names();
        names.into_iter().map(ToOwned::to_owned).collect()
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
        self.amend(principal, Amendment::grant(permission)?, "granted");
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
        self.amend(principal, Amendment::revoke(permission)?, "revoked");
        Ok(())
    }

    fn amend(&self, principal: &str, amendment: Amendment, code: &'static str) {
        let shared = &self.shared;
        let detail = object(json!({"permission": amendment.pattern().as_str()}));
        let mut parts = shared.parts();
        let current = shared.current();
        let guard = current.guard.amended([(principal, &amendment)]);
        let under = Arc::clone(&current.under);
        shared.current.store(Arc::new(Current::new(guard, under)));
        // Only the last word on each permission counts.
        let amendments = &mut parts.amendments;
        amendments.retain(|(name, it)| **name != *principal || it.pattern() != amendment.pattern());
        amendments.push((principal.into(), amendment));
        drop(parts);
        let call = Call {
            principal,
            ..Call::default()
        };
        shared.note(&shared.current(), &call, Event::Policy { code, detail });
    }

    /// Tells the guard how busy the host is, for conditions on `load`.
    pub fn report_load(&self, load: f64) {
        self.shared.load.store(load.to_bits(), Ordering::Relaxed);
    }

    /// How many calls to a tool count at present, within a time: those of a principal, or all where
    /// the tool's calls are counted together.
    #[must_use]
    pub fn current_count(&self, tool: &str, principal: Option<&str>, window: Duration) -> usize {
        let now = self.shared.clock.monotonic();
        let current = self.shared.current();
        let tool = current.guard.counted_as(tool);
        self.shared.limiter.count(now, key(tool, principal), window)
    }

    /// Forgets the calls to a tool: those of a principal, or those counted together.
    pub fn reset_count(&self, tool: &str, principal: Option<&str>) {
        let current = self.shared.current();
        let tool = current.guard.counted_as(tool);
        self.shared.limiter.reset(key(tool, principal));
    }

    /// Whether the policy itself has rules for a tool.
    #[must_use]
    pub fn names_tool(&self, tool: &str) -> bool {
        self.shared.parts().policy.has_tool(tool)
    }

    /// From now on, principals that behave as a rule describes raise alerts.
    pub fn set_misuse_rules(&self, rules: MisuseRules) {
        self.shared.misuse.set_rules(rules);
    }

    /// Every alert on misuse that is raised from now on.
    #[must_use]
    pub fn subscribe_misuse(&self) -> broadcast::Receiver<Arc<MisuseAlert>> {
        self.shared.misuse.subscribe()
    }

    /// Counts and puts down that somebody came with the session of somebody else.
    pub fn note_foreign_session(&self, principal: &str, owner: &str) {
        let shared = &self.shared;
        let code = "foreign_session";
        shared.metrics.escalation(code);
        let call = Call {
            principal,
            ..Call::default()
        };
        let detail = object(json!({"owner": owner}));
        shared.note(&shared.current(), &call, Event::Escalation { code, detail });
    }

    /// Counts and records that a principal asked for what is for administrators.
    pub fn note_not_admin(&self, principal: &str, asked_for: &str) {
        let shared = &self.shared;
        let code = "not_admin";
        shared.metrics.escalation(code);
        let call = Call {
            principal,
            ..Call::default()
        };
        let detail = object(json!({"asked_for": asked_for}));
        shared.note(&shared.current(), &call, Event::Escalation { code, detail });
    }

    /// Counts and records that a credential named a principal that belongs to another source.
    pub fn note_taken_name(&self, principal: &str, source: &str) {
        let shared = &self.shared;
        let code = "principal_taken";
        shared.metrics.escalation(code);
        let call = Call {
            principal: "",
            ..Call::default()
        };
        let detail = object(json!({"claimed": principal, "source": source}));
        shared.note(&shared.current(), &call, Event::Escalation { code, detail });
    }

    pub(super) fn note_policy(&self, code: &'static str, detail: Object) {
        let shared = &self.shared;
        let nobody = Call {
            principal: "",
            ..Call::default()
        };
        shared.note(&shared.current(), &nobody, Event::Policy { code, detail });
    }
}

fn key<'n>(tool: &'n str, principal: Option<&'n str>) -> Key<'n> {
    match principal {
        Some(principal) => Key::of_agent(tool, principal),
        None => Key::of_tool(tool),
    }
}

impl Shared {
    pub(super) fn current(&self) -> Arc<Current> {
        self.current.load_full()
    }

    pub(super) fn parts(&self) -> MutexGuard<'_, Parts> {
        // Each part is changed in one step, so it is whole after a panic.
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides by changed parts from now on.
    pub(super) fn use_parts(&self, parts: MutexGuard<'_, Parts>) {
        let made = Arc::new(parts.put_together());
        let before = self.current.swap(made);
        drop(parts);
        // What is no longer used is taken apart without keeping others waiting.
        drop(before);
    }

    fn remake(&self, change: impl FnOnce(&mut Parts)) {
        let mut parts = self.parts();
        change(&mut parts);
        self.use_parts(parts);
    }
}

impl Under {
    fn new(guard: Guard) -> Arc<Self> {
        let redaction = Redaction::new(guard.audit());
        Arc::new(Self { guard, redaction })
    }
}
