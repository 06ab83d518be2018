//! Denials have their own rate limit: a principal that is denied again and again must not fill the log.
//!
//! Denials over the rate are summarized. The first of them is recorded at once, the rest in one record for
//! each window, so that none goes unrecorded.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::json;
use toolwarden_guard::Limit;

use super::limiter::{RateKey, RateLimitExceeded};
use super::live_guard::{ActivePolicy, Call, GuardState, LiveGuard};
use super::log_entry::{AuditEvent, object};

/// The code of a record that summarizes denials.
pub(super) const DENIALS_SUMMARIZED: &str = "denials_summarized";

/// The name under which denials of all tools are counted; a tool cannot have this name.
const DENIALS_KEY: &str = "\u{0}denials";

/// Denials without their own record.
#[derive(Debug, Default)]
pub(super) struct DenialSums(Mutex<BTreeMap<Arc<str>, DenialSum>>);

/// The denials of one principal since its last record.
#[derive(Debug, Default, PartialEq, Eq)]
struct DenialSum {
    /// By code.
    counts: BTreeMap<&'static str, u64>,
    /// The time of the last record, on the monotonic clock.
    recorded: u64,
}

impl DenialSums {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, DenialSum>> {
        // Every change is atomic, so a panic leaves consistent data behind.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a denial; returns the sum if it is due.
    fn add(
        &self,
        principal: &str,
        code: &'static str,
        limit: Limit,
        now: u64,
    ) -> Option<BTreeMap<&'static str, u64>> {
        let mut sums = self.lock();
        let is_new = !sums.contains_key(principal);
        let sum = sums.entry(principal.into()).or_default();
        *sum.counts.entry(code).or_default() += 1;
        let window = u64::try_from(limit.window.as_nanos()).unwrap_or(u64::MAX);
        let is_due = is_new || now.saturating_sub(sum.recorded) >= window;
        is_due.then(|| {
            sum.recorded = now;
            std::mem::take(&mut sum.counts)
        })
    }

    /// Takes the sums that are due, and drops principals without a denial since.
    fn take_due(&self, limit: Limit, now: u64) -> Vec<(Arc<str>, BTreeMap<&'static str, u64>)> {
        let window = u64::try_from(limit.window.as_nanos()).unwrap_or(u64::MAX);
        let mut due = Vec::new();
        self.lock().retain(|principal, sum| {
            if now.saturating_sub(sum.recorded) < window {
                return true;
            }
            sum.recorded = now;
            let counts = std::mem::take(&mut sum.counts);
            let is_quiet = counts.is_empty();
            if !is_quiet {
                due.push((Arc::clone(principal), counts));
            }
            !is_quiet
        });
        due
    }
}

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

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::time::Duration;

    use super::*;

    #[test]
    fn sums_are_recorded_at_once_and_then_once_a_window() {
        let limit = Limit {
            max: NonZeroU32::MIN,
            window: Duration::from_nanos(100),
        };
        let sums = DenialSums::default();
        assert!(sums.add("eve", "a", limit, 1_000).is_some());
        assert!(sums.add("eve", "a", limit, 1_001).is_none());
        assert!(sums.add("eve", "b", limit, 1_002).is_none());
        assert!(sums.take_due(limit, 1_050).is_empty());
        let counts = BTreeMap::from([("a", 1), ("b", 1)]);
        assert_eq!(sums.take_due(limit, 1_100), [("eve".into(), counts)]);
        assert!(sums.take_due(limit, 1_200).is_empty());
        assert!(sums.lock().is_empty());
    }
}
