//! Denials have their own rate limit: a principal that is denied again and again must not fill the log.
//!
//! Denials over the rate are summarized. The first of them is recorded at once, the rest in one record for
//! each window, so that none goes unrecorded.

use std::collections::BTreeMap;

use serde_json::json;

use super::active_policy::ActivePolicy;
use super::call::Call;
use super::denial_counts::DENIALS_SUMMARIZED;
use super::guard_state::GuardState;
use super::limiter::{RateKey, RateLimitExceeded};
use super::live_guard::LiveGuard;
use super::log_entry::{AuditEvent, object};

/// The name under which denials of all tools are counted; a tool cannot have this name.
const DENIALS_KEY: &str = "\u{0}denials";

impl GuardState {
    /// Counts a denial, or an attempt to exceed the grants. Returns whether it gets its own record.
    pub(super) fn should_record_denial(
        &self,
        current: &ActivePolicy,
        principal: &str,
        code: &'static str,
    ) -> bool {
        let limit = current.guard.audit().denials;
        let now = self.clock.monotonic();
        let key = RateKey::of_agent(DENIALS_KEY, principal);
        match self.limiter.check(now, key, limit) {
            Ok(_) => true,
            Err(RateLimitExceeded::Limit { .. } | RateLimitExceeded::Full { .. }) => {
                if let Some(counts) = self.denial_sums.add(principal, code, limit, now) {
                    self.record_denial_sum(current, principal, &counts);
                }
                false
            }
        }
    }

    fn record_denial_sum(
        &self,
        current: &ActivePolicy,
        principal: &str,
        counts: &BTreeMap<&'static str, u64>,
    ) {
        let total: u64 = counts.values().sum();
        let detail = object(json!({"denials": total, "codes": counts}));
        let call = Call {
            principal,
            ..Call::default()
        };
        let code = DENIALS_SUMMARIZED;
        self.record_event(current, &call, AuditEvent::Escalation { code, detail });
    }
}

impl LiveGuard {
    /// Records the sums of denials that are due, for principals that are no longer denied. The host calls
    /// it periodically.
    pub fn record_denials(&self) {
        let shared = &self.shared;
        let current = shared.current();
        let limit = current.guard.audit().denials;
        for (principal, counts) in shared.denial_sums.take_due(limit, shared.clock.monotonic()) {
            shared.record_denial_sum(&current, &principal, &counts);
        }
    }
}
