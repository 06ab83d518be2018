//! Holds the calls of all keys to their limits, from any number of threads.
//!
//! Memory is bounded: a key with one call costs 38 bytes in a full table, and 76 in one that just grew;
//! idle keys are dropped before a table grows; and new keys are refused where [`Limiter::MAX_KEYS`], or
//! the bound given instead, is reached. A live key is never dropped.

mod key;
mod shard;
mod shared;
#[cfg(test)]
mod tests;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use toolwarden_guard::Limit;

pub use key::Key;
use key::{Id, Keyed};
use shard::Shard;
pub use shared::{RateLimitState, check_rate_limit, check_rate_limit_with, monotonic_now};

/// The windows of many keys, spread over locks so that threads seldom meet.
///
/// Times are nanoseconds on one clock for all keys, such as [`monotonic_now`].
#[derive(Debug)]
pub struct Limiter {
    keyed: Keyed,
    /// INVARIANT: as many as a power of two.
    shards: Box<[Slot]>,
}

/// A lock in a cache line of its own.
#[derive(Debug)]
#[repr(align(64))]
struct Slot(Mutex<Shard>);

/// Proof that a call was counted, and what takes it back.
#[derive(Debug)]
#[must_use = "a call that turns out not to count must be refunded"]
pub struct Counted {
    first: (Id, u64),
    second: Option<(Id, u64)>,
}

/// Why a call was not allowed; nothing was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Exceeded {
    /// A limit is reached.
    #[error("rate limit reached, the next call is possible in {retry_after:?}")]
    Limit {
        /// Which of the limits asked about, from 0: of two, the one to wait longer for.
        which: usize,
        /// How long to wait: not a nanosecond less.
        retry_after: Duration,
    },
    /// There is no room for one more key until others are idle.
    #[error("too many keys are being limited, look again in {retry_after:?}")]
    Full {
        /// When to look again: sooner, no key becomes idle by itself.
        retry_after: Duration,
    },
}

/// The system gave no random numbers, without which keys could be forged.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the system gives no random numbers")]
pub struct NoRandomness(#[source] getrandom::Error);

impl Limiter {
    /// How many keys a limiter takes where nobody says.
    ///
    /// A shard's part of them is just below what a table of 2^16 places takes, so that keys with one
    /// call cost 560 MB at most.
    pub const MAX_KEYS: usize = 14_000_000;

    /// More shards make shorter pauses when one of them grows or is swept.
    const MAX_SHARDS: usize = 256;

    /// So many keys even out among shards, of which each holds at most its equal part.
    const MIN_KEYS_OF_SHARD: usize = 4096;

    /// A limiter for up to [`Limiter::MAX_KEYS`] keys.
    pub fn new() -> Result<Self, NoRandomness> {
        Self::with_max_keys(Self::MAX_KEYS)
    }

    /// A limiter that never holds more than `max_keys`.
    ///
    /// Shards fill unevenly: the first refusals may come some percent before that.
    pub fn with_max_keys(max_keys: usize) -> Result<Self, NoRandomness> {
        let wanted = (max_keys / Self::MIN_KEYS_OF_SHARD).clamp(1, Self::MAX_SHARDS);
        let count = 1 << wanted.ilog2();
        let slot = |_| Slot(Mutex::new(Shard::new(max_keys / count)));
        Ok(Self {
            keyed: Keyed::random().map_err(NoRandomness)?,
            shards: (0..count).map(slot).collect(),
        })
    }

    /// Records a call of the key if the limit allows it.
    pub fn check(&self, now: u64, key: Key<'_>, limit: Limit) -> Result<Counted, Exceeded> {
        let id = self.keyed.id(key);
        let at = self.lock(self.index(id)).check(id, now, limit)?;
        Ok(Counted {
            first: (id, at),
            second: None,
        })
    }

    /// Records one call of both keys if both limits allow it, and of none otherwise.
    ///
    /// The same key twice is one key with two limits.
    pub fn check_both(
        &self,
        now: u64,
        first: (Key<'_>, Limit),
        second: (Key<'_>, Limit),
    ) -> Result<Counted, Exceeded> {
        let (one, two) = (self.keyed.id(first.0), self.keyed.id(second.0));
        let mut both = self.lock_both(one, two);
        let waits_one = both.shard_of(one).wait(one, now, first.1);
        let waits_two = both.shard_of(two).wait(two, now, second.1);
        if let Some(retry_after) = waits_one.max(waits_two) {
            let which = usize::from(waits_two > waits_one);
            return Err(Exceeded::Limit { which, retry_after });
        }
        let longer = first.1.window.max(second.1.window);
        if one == two {
            let at = both.shard_of(one).record(one, now, longer)?;
            return Ok(Counted {
                first: (one, at),
                second: None,
            });
        }
        let at_one = both.shard_of(one).record(one, now, first.1.window)?;
        match both.shard_of(two).record(two, now, second.1.window) {
            Ok(at_two) => Ok(Counted {
                first: (one, at_one),
                second: Some((two, at_two)),
            }),
            Err(full) => {
                both.shard_of(one).refund(one, at_one);
                Err(full)
            }
        }
    }

    /// Takes back a call that turned out not to count.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a call can be taken back only once"
    )]
    pub fn refund(&self, metered: Counted) {
        let Counted { first, second } = metered;
        for (id, at) in std::iter::once(first).chain(second) {
            self.lock(self.index(id)).refund(id, at);
        }
    }

    /// How long a call of the key would have to wait, if it would. Nothing is recorded.
    #[must_use]
    pub fn wait(&self, now: u64, key: Key<'_>, limit: Limit) -> Option<Duration> {
        let id = self.keyed.id(key);
        self.lock(self.index(id)).wait(id, now, limit)
    }

    /// How many calls of the key count in a window of this length.
    #[must_use]
    pub fn count(&self, now: u64, key: Key<'_>, window: Duration) -> usize {
        let id = self.keyed.id(key);
        self.lock(self.index(id)).count(id, now, window)
    }

    /// How far the tool's own limit is used up.
    #[must_use]
    pub fn state<'t>(&self, now: u64, tool: &'t str, limit: Limit) -> RateLimitState<'t> {
        let window = u64::try_from(limit.window.as_nanos()).unwrap_or(u64::MAX);
        RateLimitState {
            connector_name: tool,
            window_start: now.saturating_sub(window),
            request_count: self.count(now, Key::of_tool(tool), limit.window),
            limit: limit.max,
        }
    }

    /// Forgets the calls of a key, if there are any.
    pub fn reset(&self, key: Key<'_>) {
        let id = self.keyed.id(key);
        self.lock(self.index(id)).reset(id);
    }

    /// How many keys are held, idle ones that were not dropped yet among them.
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

    /// Drops the keys that are idle, and gives their memory back.
    ///
    /// Needed only to have memory back while no new keys come.
    pub fn sweep(&self, now: u64) {
        for index in 0..self.shards.len() {
            self.lock(index).sweep(now);
        }
    }

    fn index(&self, id: Id) -> usize {
        id.shard(self.shards.len())
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "every index is taken modulo the number of shards, or counted up to it"
    )]
    fn lock(&self, index: usize) -> MutexGuard<'_, Shard> {
        // Whoever panicked while holding the lock may have recorded a call too many, never one too
        // few, so what it left behind still holds calls to their limits.
        let lock = self.shards[index].0.lock();
        lock.unwrap_or_else(PoisonError::into_inner)
    }

    /// Lower index first, so that nobody waits for each other.
    fn lock_both(&self, one: Id, two: Id) -> Both<'_> {
        let (one, two) = (self.index(one), self.index(two));
        let (low, high) = (one.min(two), one.max(two));
        Both {
            shards: self.shards.len(),
            low: self.lock(low),
            high: (low != high).then(|| (high, self.lock(high))),
        }
    }
}

/// The locked shards of two keys, which may be the same.
struct Both<'l> {
    shards: usize,
    low: MutexGuard<'l, Shard>,
    high: Option<(usize, MutexGuard<'l, Shard>)>,
}

impl Both<'_> {
    fn shard_of(&mut self, id: Id) -> &mut Shard {
        match &mut self.high {
            Some((index, shard)) if *index == id.shard(self.shards) => shard,
            _ => &mut self.low,
        }
    }
}
