//! How much space a store may take.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use toolwarden_store::{Store, StoreError};

/// How long a measurement holds.
const HOLDS: Duration = Duration::from_secs(1);

/// From so many tenths of its quota on a store is nearly full.
const WARN_TENTHS: u64 = 9;

/// How much of its quota a store takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreUsage {
    /// The bytes it takes; 0 before anything was written.
    pub used: u64,
    /// The bytes it may take.
    pub quota: u64,
}

impl StoreUsage {
    /// Whether people should be warned.
    #[must_use]
    pub const fn is_nearly_full(self) -> bool {
        self.used >= self.quota / 10 * WARN_TENTHS
    }

    /// Whether nothing more is recorded.
    #[must_use]
    pub const fn is_full(self) -> bool {
        self.used >= self.quota
    }
}

/// The quota of a store, which may change, and what was measured last.
#[derive(Debug)]
pub(super) struct Quota {
    quota: AtomicU64,
    used: AtomicU64,
}

impl Default for Quota {
    fn default() -> Self {
        Self {
            quota: AtomicU64::new(u64::MAX),
            used: AtomicU64::new(0),
        }
    }
}

impl Quota {
    pub(super) fn set(&self, bytes: u64) {
        self.quota.store(bytes, Ordering::Release);
    }

    pub(super) fn usage(&self) -> StoreUsage {
        StoreUsage {
            used: self.used.load(Ordering::Acquire),
            quota: self.quota.load(Ordering::Acquire),
        }
    }

    /// Whether more may be written, measured again where the last measurement is old or says no.
    pub(super) fn check(
        &self,
        store: &Store,
        measured: &mut Option<Instant>,
    ) -> Result<(), StoreError> {
        let is_recent = measured.is_some_and(|at| at.elapsed() < HOLDS);
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
    fn people_are_warned_before_it_is_full() {
        let at = |used| StoreUsage { used, quota: 100 };
        assert!(!at(89).is_nearly_full());
        assert!(at(90).is_nearly_full() && !at(99).is_full());
        assert!(at(100).is_full());
    }
}
