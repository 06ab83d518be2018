use std::collections::HashMap;
use std::time::Duration;

use toolwarden_guard::{Limit, RetryAfter, Window};

use super::Exceeded;
use super::key::{BuildUnhashed, Id};

/// The windows of some of the keys.
#[derive(Debug)]
pub(super) struct Shard {
    windows: HashMap<Id, Window, BuildUnhashed>,
    max_keys: usize,
    /// No key is idle before.
    idle_from: u64,
    /// Looking for idle keys before costs more than it is worth.
    rests_until: u64,
    /// Every check in the order in which this shard decided them: the key, the time, the record.
    #[cfg(test)]
    pub(super) decided: Vec<(Id, u64, Option<u64>)>,
}

impl Shard {
    pub(super) fn new(max_keys: usize) -> Self {
        Self {
            windows: HashMap::default(),
            max_keys,
            idle_from: u64::MAX,
            rests_until: 0,
            #[cfg(test)]
            decided: Vec::new(),
        }
    }

    pub(super) fn check(&mut self, id: Id, now: u64, limit: Limit) -> Result<u64, Exceeded> {
        let checked = match self.windows.get_mut(&id) {
            Some(window) => window.check(now, limit).map_err(limit_reached),
            None => self.open(id, now, limit.window),
        };
        #[cfg(test)]
        self.decided.push((id, now, checked.ok()));
        checked
    }

    /// How long a call must wait, if it must.
    pub(super) fn wait(&mut self, id: Id, now: u64, limit: Limit) -> Option<Duration> {
        let window = self.windows.get_mut(&id)?;
        let RetryAfter(wait) = window.admits(now, limit).err()?;
        Some(wait)
    }

    pub(super) fn record(&mut self, id: Id, now: u64, kept: Duration) -> Result<u64, Exceeded> {
        match self.windows.get_mut(&id) {
            Some(window) => Ok(window.record(now, kept)),
            None => self.open(id, now, kept),
        }
    }

    pub(super) fn refund(&mut self, id: Id, at: u64) {
        let Some(window) = self.windows.get_mut(&id) else {
            return;
        };
        window.refund(at);
        self.idle_from = self.idle_from.min(window.idle_at());
        if window.is_empty() {
            self.windows.remove(&id);
        }
    }

    pub(super) fn count(&self, id: Id, now: u64, window: Duration) -> usize {
        let calls = self.windows.get(&id);
        calls.map_or(0, |calls| calls.count(now, window))
    }

    pub(super) fn reset(&mut self, id: Id) {
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
        // A shard full of keys that go idle one by one would otherwise be searched for each of them.
        self.rests_until = now.saturating_add((last - now) / 256);
        if self.windows.capacity() > 64 && self.windows.len() < self.windows.capacity() / 4 {
            self.rebuild();
        }
    }

    /// The first call of a new key, which every limit allows.
    #[cold]
    fn open(&mut self, id: Id, now: u64, kept: Duration) -> Result<u64, Exceeded> {
        self.make_room(now)?;
        let mut window = Window::new();
        let at = window.record(now, kept);
        self.idle_from = self.idle_from.min(window.idle_at());
        self.windows.insert(id, window);
        Ok(at)
    }

    /// Where the table is full, drops idle keys before it grows, and refuses to grow beyond the bound.
    fn make_room(&mut self, now: u64) -> Result<(), Exceeded> {
        if self.windows.len() < self.windows.capacity().min(self.max_keys) {
            return Ok(());
        }
        let worth_sweeping = self.idle_from.max(self.rests_until);
        if now >= worth_sweeping {
            self.sweep(now);
        }
        if self.windows.len() >= self.max_keys {
            let next = self.idle_from.max(self.rests_until);
            let retry_after = Duration::from_nanos(next.saturating_sub(now));
            return Err(Exceeded::Full { retry_after });
        }
        // Growing while a quarter is free keeps sweeps apart: each is paid for by that many new keys.
        if self.windows.len() > self.windows.capacity() / 4 * 3 {
            self.rebuild();
        }
        Ok(())
    }

    /// Moves the windows to a table with room for a third more, whether that is larger or smaller.
    fn rebuild(&mut self) {
        let len = self.windows.len();
        let room = (len + len.div_ceil(3)).min(self.max_keys.max(len));
        let mut windows = HashMap::with_capacity_and_hasher(room, BuildUnhashed::default());
        windows.extend(std::mem::take(&mut self.windows));
        self.windows = windows;
    }
}

fn limit_reached(RetryAfter(retry_after): RetryAfter) -> Exceeded {
    Exceeded::Limit {
        which: 0,
        retry_after,
    }
}
