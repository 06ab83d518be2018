//! Sums of denials that have no record of their own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolwarden_guard::Limit;

/// The code of a record that summarizes denials.
pub(super) const DENIALS_SUMMARIZED: &str = "denials_summarized";

/// Denials without their own record.
#[derive(Debug, Default)]
pub(super) struct DenialSummaries(Mutex<BTreeMap<Arc<str>, DenialSummary>>);

/// The denials of one principal since its last record.
#[derive(Debug, Default, PartialEq, Eq)]
struct DenialSummary {
    /// By code.
    counts: BTreeMap<&'static str, u64>,
    /// The time of the last record, on the monotonic clock.
    recorded: u64,
}

impl DenialSummaries {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, DenialSummary>> {
        // Every change is atomic, so a panic leaves consistent data behind.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a denial; returns the sum if it is due.
    pub(super) fn add(
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
    pub(super) fn take_due(
        &self,
        limit: Limit,
        now: u64,
    ) -> Vec<(Arc<str>, BTreeMap<&'static str, u64>)> {
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
        let sums = DenialSummaries::default();
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
