//! The disk quota of a store.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use toolwarden_store::{Store, StoreError};

/// How long a measurement stays valid.
const MEASUREMENT_TTL: Duration = Duration::from_secs(1);

/// The share of its quota, in tenths, from which a store is nearly full.
const WARN_TENTHS: u64 = 9;

/// How much of its quota a store uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreUsage {
    /// The bytes used; 0 before anything was written.
    pub used: u64,
    /// The maximum number of bytes.
    pub quota: u64,
}

impl StoreUsage {
    /// Whether operators should be warned.
    #[must_use]
    pub const fn is_nearly_full(self) -> bool {
        self.used >= self.quota / 10 * WARN_TENTHS
    }

    /// Whether the store accepts no more records.
    #[must_use]
    pub const fn is_full(self) -> bool {
        self.used >= self.quota
    }
}

/// The quota of a store, which may change, and the latest measurement.
#[derive(Debug)]
pub(super) struct StoreQuota {
    quota: AtomicU64,
    used: AtomicU64,
}

impl Default for StoreQuota {
    fn default() -> Self {
        Self {
            quota: AtomicU64::new(u64::MAX),
            used: AtomicU64::new(0),
        }
    }
}

impl StoreQuota {
    pub(super) fn set(&self, bytes: u64) {
        self.quota.store(bytes, Ordering::Release);
    }

    pub(super) fn usage(&self) -> StoreUsage {
        StoreUsage {
            used: self.used.load(Ordering::Acquire),
            quota: self.quota.load(Ordering::Acquire),
        }
    }

    /// Whether more may be written; it measures again if the last measurement is old or exceeded the quota.
    pub(super) fn check(
        &self,
        store: &Store,
        measured: &mut Option<Instant>,
    ) -> Result<(), StoreError> {
        let is_recent = measured.is_some_and(|at| at.elapsed() < MEASUREMENT_TTL);
        if !is_recent || self.usage().is_full() {
            self.used.store(store.used_bytes()?, Ordering::Release);
            *measured = Some(Instant::now());
        }
        let StoreUsage { used, quota } = self.usage();
        if used < quota {
            return Ok(());
        }
        let path = store.path().to_owned();
        Err(StoreError::OverQuota { path, used, quota })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nearly_full_store_is_reported() {
        let at = |used| StoreUsage { used, quota: 100 };
        assert!(!at(89).is_nearly_full());
        assert!(at(90).is_nearly_full() && !at(99).is_full());
        assert!(at(100).is_full());
    }
}
