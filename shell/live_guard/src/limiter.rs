//! Enforces the rate limits of all keys, from any number of threads.
//!
//! Memory is bounded: a key with one call costs 38 bytes in a full table, and 76 in one that just grew. The
//! limiter drops idle keys before a table grows, and rejects new keys at [`Limiter::MAX_KEYS`] or the bound
//! given instead. It never drops a live key.

mod global;
mod rate_key;
mod shard;
#[cfg(test)]
mod tests;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use toolwarden_guard::Limit;

pub use global::{RateLimitState, check_rate_limit, check_rate_limit_with, monotonic_now};
pub use rate_key::RateKey;
use rate_key::{RateKeyHash, RateKeyHasher};
use shard::LimiterShard;

/// The windows of many keys, spread over several locks to reduce contention.
///
/// Times are nanoseconds on one clock for all keys, such as [`monotonic_now`].
#[derive(Debug)]
pub struct Limiter {
    hasher: RateKeyHasher,
    /// INVARIANT: the number of shards is a power of two.
    shards: Box<[PaddedShard]>,
}

/// A lock in its own cache line.
#[derive(Debug)]
#[repr(align(64))]
struct PaddedShard(Mutex<LimiterShard>);

/// Proof that a call was counted, with which it can be refunded.
#[derive(Debug)]
#[must_use = "a call that turns out not to count must be refunded"]
pub struct CountedCall {
    first: (RateKeyHash, u64),
    second: Option<(RateKeyHash, u64)>,
}

/// Why the limiter refused a call; nothing was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RateLimitExceeded {
    /// A limit is reached.
    #[error("rate limit reached, the next call is possible in {retry_after:?}")]
    Limit {
        /// The index of the limit that was reached; of two, the one with the longer wait.
        which: usize,
        /// The exact time to wait.
        retry_after: Duration,
    },
    /// No room is left for another key until others are idle.
    #[error("too many rate limits are in use; retry in {retry_after:?}")]
    Full {
        /// When to try again: no key becomes idle earlier.
        retry_after: Duration,
    },
}

/// The system provided no random numbers, without which keys could be forged.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the system provides no random numbers")]
pub struct NoRandomness(#[source] getrandom::Error);

impl Limiter {
    /// The default maximum number of keys.
    ///
    /// Each shard's share is just below the capacity of a table with 2^16 slots, so that keys with one call
    /// cost 560 MB at most.
    pub const MAX_KEYS: usize = 14_000_000;

    /// More shards mean shorter pauses when one of them grows or is swept.
    const MAX_SHARDS: usize = 256;

    /// With this many keys per shard, keys spread evenly; each shard holds at most its equal share.
    const MIN_KEYS_PER_SHARD: usize = 4096;

    /// A limiter for up to [`Limiter::MAX_KEYS`] keys.
    pub fn new() -> Result<Self, NoRandomness> {
        Self::with_max_keys(Self::MAX_KEYS)
    }

    /// A limiter that never holds more than `max_keys`.
    ///
    /// Shards fill unevenly: the first rejections may come a few percent earlier.
    pub fn with_max_keys(max_keys: usize) -> Result<Self, NoRandomness> {
        let wanted = (max_keys / Self::MIN_KEYS_PER_SHARD).clamp(1, Self::MAX_SHARDS);
        let count = 1 << wanted.ilog2();
        let slot = |_| PaddedShard(Mutex::new(LimiterShard::new(max_keys / count)));
        Ok(Self {
            hasher: RateKeyHasher::random().map_err(NoRandomness)?,
            shards: (0..count).map(slot).collect(),
        })
    }

    /// Records a call of the key if the limit allows it.
    pub fn check(
        &self,
        now: u64,
        key: RateKey<'_>,
        limit: Limit,
    ) -> Result<CountedCall, RateLimitExceeded> {
        let id = self.hasher.id(key);
        let at = self.lock(self.index(id)).check(id, now, limit)?;
        Ok(CountedCall {
            first: (id, at),
            second: None,
        })
    }

    /// Records one call for both keys if both limits allow it, and otherwise for neither.
    ///
    /// The same key twice is one key with two limits.
    pub fn check_both(
        &self,
        now: u64,
        first: (RateKey<'_>, Limit),
        second: (RateKey<'_>, Limit),
    ) -> Result<CountedCall, RateLimitExceeded> {
        let (one, two) = (self.hasher.id(first.0), self.hasher.id(second.0));
        let mut both = self.lock_both(one, two);
        let waits_one = both.shard_of(one).time_until_allowed(one, now, first.1);
        let waits_two = both.shard_of(two).time_until_allowed(two, now, second.1);
        if let Some(retry_after) = waits_one.max(waits_two) {
            let which = usize::from(waits_two > waits_one);
            return Err(RateLimitExceeded::Limit { which, retry_after });
        }
        let longer = first.1.window.max(second.1.window);
        if one == two {
            let at = both.shard_of(one).record(one, now, longer)?;
            return Ok(CountedCall {
                first: (one, at),
                second: None,
            });
        }
        let at_one = both.shard_of(one).record(one, now, first.1.window)?;
        match both.shard_of(two).record(two, now, second.1.window) {
            Ok(at_two) => Ok(CountedCall {
                first: (one, at_one),
                second: Some((two, at_two)),
            }),
            Err(full) => {
                both.shard_of(one).refund(one, at_one);
                Err(full)
            }
        }
    }

    /// Refunds a call that turned out not to count.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a call can be taken back only once"
    )]
    pub fn refund(&self, metered: CountedCall) {
        let CountedCall { first, second } = metered;
        for (id, at) in std::iter::once(first).chain(second) {
            self.lock(self.index(id)).refund(id, at);
        }
    }

    /// How long a call of the key would have to wait, if at all. Nothing is recorded.
    #[must_use]
    pub fn time_until_allowed(&self, now: u64, key: RateKey<'_>, limit: Limit) -> Option<Duration> {
        let id = self.hasher.id(key);
        self.lock(self.index(id)).time_until_allowed(id, now, limit)
    }

    /// How many calls of the key count in a window of this length.
    #[must_use]
    pub fn count(&self, now: u64, key: RateKey<'_>, window: Duration) -> usize {
        let id = self.hasher.id(key);
        self.lock(self.index(id)).count(id, now, window)
    }

    /// How much of the tool's own limit is used.
    #[must_use]
    pub fn state<'t>(&self, now: u64, tool: &'t str, limit: Limit) -> RateLimitState<'t> {
        let window = u64::try_from(limit.window.as_nanos()).unwrap_or(u64::MAX);
        RateLimitState {
            connector_name: tool,
            window_start: now.saturating_sub(window),
            request_count: self.count(now, RateKey::of_tool(tool), limit.window),
            limit: limit.max,
        }
    }

    /// Drops the calls of a key.
    pub fn reset(&self, key: RateKey<'_>) {
        let id = self.hasher.id(key);
        self.lock(self.index(id)).reset(id);
    }

    /// The number of keys, including idle ones that were not dropped yet.
    #[must_use]
    pub fn len(&self) -> usize {
        let shards = 0..self.shards.len();
        shards.map(|index| self.lock(index).len()).sum()
    }

    /// Whether no key is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops idle keys, and frees their memory.
    ///
    /// Only needed to free memory while no new keys arrive.
    pub fn sweep(&self, now: u64) {
        for index in 0..self.shards.len() {
            self.lock(index).sweep(now);
        }
    }

    fn index(&self, id: RateKeyHash) -> usize {
        id.shard(self.shards.len())
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "every index is taken modulo the number of shards, or counted up to it"
    )]
    fn lock(&self, index: usize) -> MutexGuard<'_, LimiterShard> {
        // A thread that panicked with the lock may have recorded one call too many, but never one too few,
        // so the data it left behind still enforces the limits.
        let lock = self.shards[index].0.lock();
        lock.unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the lower index first, to avoid deadlock.
    fn lock_both(&self, one: RateKeyHash, two: RateKeyHash) -> LockedShards<'_> {
        let (one, two) = (self.index(one), self.index(two));
        let (low, high) = (one.min(two), one.max(two));
        LockedShards {
            shards: self.shards.len(),
            low: self.lock(low),
            high: (low != high).then(|| (high, self.lock(high))),
        }
    }
}

/// The locked shards of two keys, which may be the same.
struct LockedShards<'l> {
    shards: usize,
    low: MutexGuard<'l, LimiterShard>,
    high: Option<(usize, MutexGuard<'l, LimiterShard>)>,
}

impl LockedShards<'_> {
    fn shard_of(&mut self, id: RateKeyHash) -> &mut LimiterShard {
        match &mut self.high {
            Some((index, shard)) if *index == id.shard(self.shards) => shard,
            _ => &mut self.low,
        }
    }
}
