use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwap;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use toolwarden_guard::{
    Availability, ConditionInputs, Decision, Denial, DiscoveredTools, GateResult, Guard,
    InvalidPermission, PermissionChange, ToolPolicy, UnusableSchema,
};
use toolwarden_model::json::Object;

use super::active_policy::{ActivePolicy, PolicyParts};
use super::audit_log::AuditLog;
use super::call::Call;
use super::clock::Clock;
use super::denial_counts::DenialSummaries;
use super::guard_state::GuardState;
use super::limiter::{Limiter, NoRandomness, RateKey};
use super::log_entry::{AuditEvent, EntryIdGenerator, object};
use super::metrics::GuardMetrics;
use super::misuse::{MisuseAlert, MisuseMonitor, MisuseRules};
use super::open_call::OpenCall;
use super::policy_file::{LoadedPolicy, PolicyFileError};
use super::session_table::SessionTable;

/// A running guard: a policy together with its run-time state. Cheap to clone; clones share the same guard.
#[derive(Clone, Debug)]
pub struct LiveGuard {
    pub(super) shared: Arc<GuardState>,
}

/// What to do if the name of a new tool is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDuplicate {
    /// Keep the existing tool, and reject the new one.
    Keep,
    /// Replace the existing tool.
    Replace,
}

/// A tool with the same name exists.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("connector '{tool}' is already registered")]
pub struct AlreadyRegistered {
    /// The tool.
    pub tool: String,
}

impl LiveGuard {
    /// Starts a guard.
    ///
    /// # Errors
    /// The system provides no randomness to key the rate windows with.
    pub fn new(guard: Guard, log: AuditLog, clock: Clock) -> Result<Self, NoRandomness> {
        let limiter = Arc::new(Limiter::new()?);
        Ok(Self::with_limiter(guard, log, clock, limiter))
    }

    /// Starts a guard that shares its rate windows with others.
    #[must_use]
    pub fn with_limiter(guard: Guard, log: AuditLog, clock: Clock, limiter: Arc<Limiter>) -> Self {
        let no_load = f64::NAN.to_bits();
        let nothing = ConditionInputs {
            now: jiff::Timestamp::UNIX_EPOCH,
            zone: jiff::tz::TimeZone::UTC,
            load: None,
            attributes: BTreeMap::new(),
        };
        let parts = PolicyParts {
            policy: guard,
            discovered: DiscoveredTools::default(),
            servers: BTreeMap::new(),
            permission_changes: Vec::new(),
        };
        Self {
            shared: Arc::new(GuardState {
                current: ArcSwap::from_pointee(parts.build()),
                parts: Mutex::new(parts),
                limiter,
                sessions: SessionTable::new(),
                log,
                clock,
                ids: EntryIdGenerator::new(),
                metrics: GuardMetrics::new(),
                denial_sums: DenialSummaries::default(),
                misuse: MisuseMonitor::default(),
                load: AtomicU64::new(no_load),
                nothing,
            }),
        }
    }

    /// Starts a guard with a loaded policy, and records which policy it is.
    ///
    /// # Errors
    /// The system provides no randomness to key the rate windows with.
    pub fn open(policy: LoadedPolicy, log: AuditLog, clock: Clock) -> Result<Self, NoRandomness> {
        let detail = policy.log_detail();
        let guard = Self::new(policy.guard, log, clock)?;
        guard.record_policy_event("loaded", detail);
        Ok(guard)
    }

    /// Whether the effective policy has a role of this name.
    #[must_use]
    pub fn has_role(&self, name: &str) -> bool {
        self.shared.current().guard.has_role(name)
    }

    /// The log that records decisions.
    #[must_use]
    pub fn log(&self) -> &AuditLog {
        &self.shared.log
    }

    /// The metrics of the guard.
    #[must_use]
    pub fn metrics(&self) -> &GuardMetrics {
        &self.shared.metrics
    }

    /// Decides a call and records the decision. The caller must settle an allowed call with its outcome.
    ///
    /// # Errors
    /// The call is denied.
    pub fn decide(&self, call: &Call<'_>) -> Result<OpenCall, Denial> {
        let (answer, trail) = self.shared.decide(call);
        answer.map(|permit| OpenCall::new(&self.shared, permit, call, trail))
    }

    /// Decides a call and records the decision, for a call that is made elsewhere or not at all.
    #[must_use]
    pub fn intercept(&self, call: &Call<'_>) -> Decision {
        let (answer, trail) = self.shared.decide(call);
        match answer {
            Ok(_) => Decision::allow(trail.latency),
            Err(denial) => Decision::deny(&denial, trail.latency),
        }
    }

    /// Records that a call was denied before the gates could decide it.
    pub(super) fn record_refusal(&self, call: &Call<'_>, denial: Denial) -> Denial {
        self.shared.record_refusal(call, denial)
    }

    /// Like [`Self::record_refusal`], without waiting for the record.
    pub(super) fn queue_refusal(&self, call: &Call<'_>, denial: Denial) -> Denial {
        self.shared.log.never_block();
        self.shared.queue_refusal(call, denial)
    }

    /// The result of every gate for a call. It counts nothing, records nothing and touches no session.
    #[must_use]
    pub fn explain(&self, call: &Call<'_>) -> Vec<GateResult> {
        let shared = &self.shared;
        let now = shared.clock.monotonic();
        let current = shared.policy_for_call(call);
        let session_context = shared.session_context(&current.guard, call, now);
        shared.with_request(&current.guard, call, &session_context, |request| {
            let windows = |name: &_, limits: &_| shared.check_limits(call, name, limits, now);
            let guard = &current.guard;
            let mut steps =
                guard.explain(request, call.requested_feature(), &call.arguments, windows);
            session_context.explain_groups(call, &mut steps);
            session_context.explain(guard, call, &mut steps);
            steps
        })
    }

    /// Which tools a principal sees in a session, and why not the others. The tool and the arguments of the
    /// call are ignored.
    ///
    /// # Errors
    /// The request names groups that are not granted.
    pub fn available(&self, call: &Call<'_>) -> Result<Arc<Availability>, Denial> {
        let shared = &self.shared;
        let current = shared.policy_for_call(call);
        let session_context =
            shared.session_context(&current.guard, call, shared.clock.monotonic());
        shared.record_refused_claim(&current, call, &session_context);
        shared.list_available(&current, call, &session_context)
    }

    /// Replaces the policy. Windows, sessions, permissions changed at run time and tools learned from
    /// servers stay, and so does the durability of the log; if the new policy sets another durability, its
    /// record says so.
    pub fn exchange(&self, policy: LoadedPolicy) {
        let shared = &self.shared;
        let mut detail = policy.log_detail();
        let asked = policy.guard.audit().durability;
        if let Some(kept) = shared.log.durability().filter(|it| *it != asked) {
            detail.insert("durability_kept".to_owned(), kept.as_str().into());
        }
        shared.update_parts(|parts| parts.policy = policy.guard);
        self.record_policy_event("exchanged", detail);
    }

    /// Reads a policy file and replaces the policy. A file with a mistake changes nothing: the current
    /// policy stays, and the log records the mistake.
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
                self.shared.metrics.count_failed_reload();
                let detail = object(json!({
                    "file": path.display().to_string(),
                    "error": error.to_string(),
                }));
                self.record_policy_event("refused", detail);
                Err(error)
            }
        }
    }

    /// Adds a tool. Until the policy is replaced, the tool counts as part of it. A schema that cannot be
    /// used is reported, and every call of the tool is denied.
    ///
    /// # Errors
    /// A tool with that name exists and must not be replaced.
    pub fn register(
        &self,
        tool: &ToolPolicy,
        present: OnDuplicate,
    ) -> Result<Vec<UnusableSchema>, AlreadyRegistered> {
        let mut parts = self.shared.parts();
        let taken = parts.policy.has_tool(&tool.name) || parts.discovered.has(&tool.name);
        if taken && present == OnDuplicate::Keep {
            return Err(AlreadyRegistered {
                tool: tool.name.clone(),
            });
        }
        let (policy, faults) = parts.policy.with_tool(tool);
        parts.policy = policy;
        self.shared.activate(parts);
        let detail = object(json!({"tool": tool.name}));
        self.record_policy_event("registered", detail);
        Ok(faults)
    }

    /// Whether a tool with this name exists.
    #[must_use]
    pub fn is_registered(&self, tool: &str) -> bool {
        self.shared.current().guard.has_tool(tool)
    }

    /// Removes a tool, if it exists. A tool that servers have returns with the next discovery.
    pub fn unregister(&self, tool: &str) {
        self.shared.update_parts(|parts| {
            parts.policy = parts.policy.without_tool(tool);
            if parts.discovered.has(tool) {
                parts.discovered = parts.discovered.without(tool);
            }
        });
        self.record_policy_event("unregistered", object(json!({"tool": tool})));
    }

    /// The names of all tools, sorted.
    #[must_use]
    pub fn tool_names(&self) -> Vec<String> {
        let current = self.shared.current();
        let names = current.guard.tool_names();
        names.into_iter().map(ToOwned::to_owned).collect()
    }

    /// Grants a permission to a principal.
    ///
    /// # Errors
    /// The text is not a permission.
    pub fn grant_permission(
        &self,
        principal: &str,
        permission: &str,
    ) -> Result<(), InvalidPermission> {
        self.change_permission(principal, PermissionChange::grant(permission)?, "granted");
        Ok(())
    }

    /// Revokes a permission of a principal, even if a granted pattern covers it.
    ///
    /// # Errors
    /// The text is not a permission.
    pub fn revoke_permission(
        &self,
        principal: &str,
        permission: &str,
    ) -> Result<(), InvalidPermission> {
        self.change_permission(principal, PermissionChange::revoke(permission)?, "revoked");
        Ok(())
    }

    fn change_permission(&self, principal: &str, amendment: PermissionChange, code: &'static str) {
        let shared = &self.shared;
        let detail = object(json!({"permission": amendment.pattern().as_str()}));
        let mut parts = shared.parts();
        let current = shared.current();
        let guard = current
            .guard
            .with_permission_changes([(principal, &amendment)]);
        let under = Arc::clone(&current.entry_policy);
        shared
            .current
            .store(Arc::new(ActivePolicy::new(guard, under)));
        // Only the latest change of each permission counts.
        let permission_changes = &mut parts.permission_changes;
        permission_changes
            .retain(|(name, it)| **name != *principal || it.pattern() != amendment.pattern());
        permission_changes.push((principal.into(), amendment));
        drop(parts);
        let call = Call {
            principal,
            ..Call::default()
        };
        shared.record_event(
            &shared.current(),
            &call,
            AuditEvent::Policy { code, detail },
        );
    }

    /// Reports the load of the host, for conditions on `load`.
    pub fn report_load(&self, load: f64) {
        self.shared.load.store(load.to_bits(), Ordering::Relaxed);
    }

    /// How many calls of a tool count now, within a window: those of a principal, or all calls if the tool
    /// has a shared limit.
    #[must_use]
    pub fn current_count(&self, tool: &str, principal: Option<&str>, window: Duration) -> usize {
        let now = self.shared.clock.monotonic();
        let current = self.shared.current();
        let tool = current.guard.counted_as(tool);
        self.shared.limiter.count(now, key(tool, principal), window)
    }

    /// Drops the counted calls of a tool: those of a principal, or those under the shared limit.
    pub fn reset_count(&self, tool: &str, principal: Option<&str>) {
        let current = self.shared.current();
        let tool = current.guard.counted_as(tool);
        self.shared.limiter.reset(key(tool, principal));
    }

    /// Whether the policy itself has rules for a tool.
    #[must_use]
    pub fn has_tool_rules(&self, tool: &str) -> bool {
        self.shared.parts().policy.has_tool(tool)
    }

    /// From now on, raises an alert for every principal that matches a rule.
    pub fn set_misuse_rules(&self, rules: MisuseRules) {
        self.shared.misuse.set_rules(rules);
    }

    /// A receiver of every misuse alert from now on.
    #[must_use]
    pub fn subscribe_misuse(&self) -> broadcast::Receiver<Arc<MisuseAlert>> {
        self.shared.misuse.subscribe()
    }

    /// Counts and records that a principal used the session of another principal.
    pub fn record_foreign_session(&self, principal: &str, owner: &str) {
        self.record_escalation(principal, "foreign_session", json!({"owner": owner}));
    }

    /// Counts and records that a principal requested something that only administrators may do.
    pub fn record_admin_refusal(&self, principal: &str, asked_for: &str) {
        self.record_escalation(principal, "not_admin", json!({"asked_for": asked_for}));
    }

    /// Counts and records that a credential named a principal that belongs to another source.
    pub fn record_name_conflict(&self, principal: &str, source: &str) {
        let detail = json!({"claimed": principal, "source": source});
        self.record_escalation("", "principal_taken", detail);
    }

    fn record_escalation(&self, principal: &str, code: &'static str, detail: Value) {
        let shared = &self.shared;
        shared.metrics.count_escalation(code);
        let call = Call {
            principal,
            ..Call::default()
        };
        let detail = object(detail);
        shared.record_event(
            &shared.current(),
            &call,
            AuditEvent::Escalation { code, detail },
        );
    }

    pub(super) fn record_policy_event(&self, code: &'static str, detail: Object) {
        let shared = &self.shared;
        let no_caller = Call {
            principal: "",
            ..Call::default()
        };
        shared.record_event(
            &shared.current(),
            &no_caller,
            AuditEvent::Policy { code, detail },
        );
    }
}

fn key<'n>(tool: &'n str, principal: Option<&'n str>) -> RateKey<'n> {
    match principal {
        Some(principal) => RateKey::of_agent(tool, principal),
        None => RateKey::of_tool(tool),
    }
}
