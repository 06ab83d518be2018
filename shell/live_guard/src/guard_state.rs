//! The run-time state of a guard, which its clones and open calls share.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use toolwarden_guard::ConditionInputs;

use super::active_policy::{ActivePolicy, PolicyParts};
use super::audit_log::AuditLog;
use super::call::Call;
use super::caller_claims::CallerClaims;
use super::clock::Clock;
use super::denial_counts::DenialSummaries;
use super::limiter::Limiter;
use super::log_entry::EntryIdGenerator;
use super::metrics::GuardMetrics;
use super::misuse::MisuseMonitor;
use super::session_table::SessionTable;

/// The state of a guard.
#[derive(Debug)]
pub(super) struct GuardState {
    pub(super) current: ArcSwap<ActivePolicy>,
    /// Locked while the effective policy is rebuilt, so that no change is lost.
    pub(super) parts: Mutex<PolicyParts>,
    pub(super) limiter: Arc<Limiter>,
    pub(super) sessions: SessionTable,
    pub(super) log: AuditLog,
    pub(super) clock: Clock,
    pub(super) ids: EntryIdGenerator,
    pub(super) metrics: GuardMetrics,
    /// Denials over the rate.
    pub(super) denial_sums: DenialSummaries,
    pub(super) misuse: MisuseMonitor,
    /// The bits of the load that the host reported; a NaN if it reported none.
    pub(super) load: AtomicU64,
    pub(super) nothing: ConditionInputs,
}

impl GuardState {
    pub(super) fn current(&self) -> Arc<ActivePolicy> {
        self.current.load_full()
    }

    pub(super) fn parts(&self) -> MutexGuard<'_, PolicyParts> {
        // Each part is changed atomically, so it is consistent after a panic.
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes changed parts effective.
    pub(super) fn activate(&self, parts: MutexGuard<'_, PolicyParts>) {
        let made = Arc::new(parts.build());
        let before = self.current.swap(made);
        drop(parts);
        // The old value is dropped outside the lock, so that other threads do not wait.
        drop(before);
    }

    pub(super) fn update_parts(&self, change: impl FnOnce(&mut PolicyParts)) {
        let mut parts = self.parts();
        change(&mut parts);
        self.activate(parts);
    }

    /// The effective policy for the caller of a call.
    pub(super) fn policy_for_call(&self, call: &Call<'_>) -> Arc<ActivePolicy> {
        self.policy_for_claims(call.claims)
    }

    /// The effective policy for a caller with these claims.
    pub(super) fn policy_for_claims(&self, claims: Option<&CallerClaims>) -> Arc<ActivePolicy> {
        let current = self.current();
        match claims {
            Some(claims) if !claims.roles.is_empty() => current.with_roles(&claims.roles),
            _ => current,
        }
    }
}
