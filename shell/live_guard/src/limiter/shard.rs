use std::collections::HashMap;
use std::time::Duration;

use toolwarden_guard::{Limit, RetryAfter, Window};

use super::RateLimitExceeded;
use super::rate_key::{BuildPassthroughHasher, RateKeyHash};

/// The windows of one share of the keys.
#[derive(Debug)]
pub(super) struct LimiterShard {
    windows: HashMap<RateKeyHash, Window, BuildPassthroughHasher>,
    max_keys: usize,
    /// No key is idle before this time.
    idle_from: u64,
    /// Before this time, a search for idle keys is not worth its cost.
    next_sweep: u64,
    /// Every check in the order in which this shard decided them: the key, the time, the record.
    #[cfg(test)]
    pub(super) decided: Vec<(RateKeyHash, u64, Option<u64>)>,
}

impl LimiterShard {
    pub(super) fn new(max_keys: usize) -> Self {
        Self {
            windows: HashMap::default(),
            max_keys,
            idle_from: u64::MAX,
            next_sweep: 0,
            #[cfg(test)]
            decided: Vec::new(),
        }
    }

    pub(super) fn check(
        &mut self,
        id: RateKeyHash,
        now: u64,
        limit: Limit,
    ) -> Result<u64, RateLimitExceeded> {
        let checked = match self.windows.get_mut(&id) {
            Some(window) => window.check(now, limit).map_err(limit_reached),
            None => self.insert_first(id, now, limit.window),
        };
        #[cfg(test)]
        self.decided.push((id, now, checked.ok()));
        checked
    }

    /// How long a call must wait, if at all.
    pub(super) fn time_until_allowed(
        &mut self,
        id: RateKeyHash,
        now: u64,
        limit: Limit,
    ) -> Option<Duration> {
        let window = self.windows.get_mut(&id)?;
        let RetryAfter(wait) = window.admits(now, limit).err()?;
        Some(wait)
    }

    pub(super) fn record(
        &mut self,
        id: RateKeyHash,
        now: u64,
        kept: Duration,
    ) -> Result<u64, RateLimitExceeded> {
        match self.windows.get_mut(&id) {
            Some(window) => Ok(window.record(now, kept)),
            None => self.insert_first(id, now, kept),
        }
    }

    pub(super) fn refund(&mut self, id: RateKeyHash, at: u64) {
        let Some(window) = self.windows.get_mut(&id) else {
            return;
        };
        window.refund(at);
        self.idle_from = self.idle_from.min(window.idle_at());
        if window.is_empty() {
            self.windows.remove(&id);
        }
    }

    pub(super) fn count(&self, id: RateKeyHash, now: u64, window: Duration) -> usize {
        let calls = self.windows.get(&id);
        calls.map_or(0, |calls| calls.count(now, window))
    }

    pub(super) fn reset(&mut self, id: RateKeyHash) {
        self.windows.remove(&id);
    }

    pub(super) fn len(&self) -> usize {
        self.windows.len()
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.windows.capacity()
    }

    pub(super) fn sweep(&mut self, now: u64) {
        let (mut first, mut last) = (u64::MAX, now);
        self.windows.retain(|_, window| {
            let idle_at = window.idle_at();
            let lives = now < idle_at;
            if lives {
                first = first.min(idle_at);
                last = last.max(idle_at);
            }
            lives
        });
        self.idle_from = first;
        // Without this pause, a shard full of keys that become idle one by one would be searched for each
        // of them.
        self.next_sweep = now.saturating_add((last - now) / 256);
        if self.windows.capacity() > 64 && self.windows.len() < self.windows.capacity() / 4 {
            self.rebuild();
        }
    }

    /// The first call of a new key, which every limit allows.
    #[cold]
    fn insert_first(
        &mut self,
        id: RateKeyHash,
        now: u64,
        kept: Duration,
    ) -> Result<u64, RateLimitExceeded> {
        self.evict_idle_keys(now)?;
        let mut window = Window::new();
        let at = window.record(now, kept);
        self.idle_from = self.idle_from.min(window.idle_at());
        self.windows.insert(id, window);
        Ok(at)
    }

    /// If the table is full, drops idle keys before it grows, and refuses to grow beyond the bound.
    fn evict_idle_keys(&mut self, now: u64) -> Result<(), RateLimitExceeded> {
        if self.windows.len() < self.windows.capacity().min(self.max_keys) {
            return Ok(());
        }
        let worth_sweeping = self.idle_from.max(self.next_sweep);
        if now >= worth_sweeping {
            self.sweep(now);
        }
        if self.windows.len() >= self.max_keys {
            let next = self.idle_from.max(self.next_sweep);
            let retry_after = Duration::from_nanos(next.saturating_sub(now));
            return Err(RateLimitExceeded::Full { retry_after });
        }
        // Growing while a quarter is free makes sweeps rare: that many new keys pay for each sweep.
        if self.windows.len() > self.windows.capacity() / 4 * 3 {
            self.rebuild();
        }
        Ok(())
    }

    /// Moves the windows to a table with room for a third more, which may be larger or smaller.
    fn rebuild(&mut self) {
        let len = self.windows.len();
        let room = (len + len.div_ceil(3)).min(self.max_keys.max(len));
        let mut windows =
            HashMap::with_capacity_and_hasher(room, BuildPassthroughHasher::default());
        windows.extend(std::mem::take(&mut self.windows));
        self.windows = windows;
    }
}

fn limit_reached(RetryAfter(retry_after): RetryAfter) -> RateLimitExceeded {
    RateLimitExceeded::Limit {
        which: 0,
        retry_after,
    }
}
