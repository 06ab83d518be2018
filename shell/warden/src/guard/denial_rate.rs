//! Denials have a rate of their own: a principal that is refused again and again must not fill the log.
//!
//! Denials over the rate are summed up. The first of them is recorded at once, the rest in one record for each
//! window, so that none goes unrecorded.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::json;
use toolwarden_guard::Limit;

use super::entry::{Event, object};
use super::limiter::{Exceeded, Key};
use super::live::{Call, Current, LiveGuard, Shared};

/// The code of a record that sums up denials.
pub(super) const SUMMED_UP: &str = "denials_summarized";

/// What stands for all tools where denials are counted; a tool cannot have this name.
const DENIALS: &str = "\u{0}denials";

/// Denials that have no record of their own.
#[derive(Debug, Default)]
pub(super) struct DenialSums(Mutex<BTreeMap<Arc<str>, DenialSum>>);

/// The denials of one principal since its last record.
#[derive(Debug, Default, PartialEq, Eq)]
struct DenialSum {
    /// By code.
    counts: BTreeMap<&'static str, u64>,
    /// When the last record was made, by the monotonic clock.
    recorded: u64,
}

impl DenialSums {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, DenialSum>> {
        // Every change is made in one step, so what a panic leaves behind is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a denial; gives the sum where it is due.
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

    /// Takes the sums that are due; forgets principals that were not denied anything since.
    fn due(&self, limit: Limit, now: u64) -> Vec<(Arc<str>, BTreeMap<&'static str, u64>)> {
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

impl Shared {
    /// Counts a denial, or an attempt to get more than is granted. Says whether it has a record of its own.
    pub(super) fn is_recorded(
        &self,
        current: &Current,
        principal: &str,
        code: &'static str,
    ) -> bool {
        let limit = current.guard.audit().denials;
        let now = self.clock.monotonic();
        let key = Key::of_agent(DENIALS, principal);
        match self.limiter.check(now, key, limit) {
            Ok(_) => true,
            Err(Exceeded::Limit { .. } | Exceeded::Full { .. }) => {
                if let Some(counts) = self.denial_sums.add(principal, code, limit, now) {
                    self.record_sum(current, principal, &counts);
                }
                false
            }
        }
    }

    fn record_sum(&self, current: &Current, principal: &str, counts: &BTreeMap<&'static str, u64>) {
        let total: u64 = counts.values().sum();
        let detail = object(json!({"denials": total, "codes": counts}));
        let call = Call {
            principal,
            ..Call::default()
        };
        let code = SUMMED_UP;
        self.note(current, &call, Event::Escalation { code, detail });
    }
}

impl LiveGuard {
    /// Records the sums of denials that are due, for those who are no longer refused anything. Called from time
    /// to time.
    pub fn record_denials(&self) {
        let shared = &self.shared;
        let current = shared.current();
        let limit = current.guard.audit().denials;
        for (principal, counts) in shared.denial_sums.due(limit, shared.clock.monotonic()) {
            shared.record_sum(&current, &principal, &counts);
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
        assert!(sums.due(limit, 1_050).is_empty());
        let counts = BTreeMap::from([("a", 1), ("b", 1)]);
        assert_eq!(sums.due(limit, 1_100), [("eve".into(), counts)]);
        assert!(sums.due(limit, 1_200).is_empty());
        assert!(sums.lock().is_empty());
    }
}
