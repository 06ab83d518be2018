//! Counts the calls of one key in a sliding window, exactly.
//!
//! Times are nanoseconds on a clock that the caller owns. A call that is exactly as old as the window still
//! counts. If the clock goes back, a key's time stands still at its last call, so that no call counts for
//! longer than it would have.

use std::collections::VecDeque;
use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

#[cfg(test)]
mod tests;

/// How many calls are allowed in any period that is as long as the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The most calls that may count at once.
    pub max: NonZeroU32,
    /// How long a call counts; more than 584 years means forever.
    pub window: Duration,
}

/// How long to wait from the refused call until one is allowed: not a nanosecond less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RetryAfter(pub Duration);

/// The calls of one key that may still count.
///
/// One call costs 16 bytes. Up to three cost about 80 more on the heap, and each beyond 8 to 32.
#[derive(Debug)]
pub struct Window(Calls);

/// One call, the usual case among millions of keys, needs no heap.
#[derive(Debug)]
enum Calls {
    One { at: NonZeroTime, max_window: u64 },
    Many(Option<Box<Ring>>),
}

#[derive(Debug)]
struct Ring {
    /// The longest window queried: older calls are never needed again.
    max_window: u64,
    /// INVARIANT: ascending and not empty.
    calls: VecDeque<u64>,
}

impl Window {
    /// A window without calls.
    #[must_use]
    pub const fn new() -> Self {
        Self(Calls::Many(None))
    }

    /// Records a call if the limit allows it, and returns the time it is recorded at.
    pub fn check(&mut self, now: u64, limit: Limit) -> Result<u64, RetryAfter> {
        self.admits(now, limit)?;
        Ok(self.push(now, nanoseconds(limit.window)))
    }

    /// Whether the limit allows a call, without recording it.
    ///
    /// From now on, the window keeps all calls that count in a window of this length.
    pub fn admits(&mut self, now: u64, limit: Limit) -> Result<(), RetryAfter> {
        let window = nanoseconds(limit.window);
        self.keep(window);
        // As times ascend, the limit is reached exactly while the `max`-th last call counts.
        let Some(call) = self.nth_last(limit.max) else {
            return Ok(());
        };
        let counts_until = call.saturating_add(window);
        if counts_until < self.time(now) {
            return Ok(());
        }
        let wait = (counts_until - now).saturating_add(1);
        Err(RetryAfter(Duration::from_nanos(wait)))
    }

    /// Records a call regardless of limits, keeps it for at least `window`, and returns its time.
    pub fn record(&mut self, now: u64, window: Duration) -> u64 {
        let window = nanoseconds(window);
        self.keep(window);
        self.push(now, window)
    }

    #[inline]
    fn push(&mut self, now: u64, window: u64) -> u64 {
        let at = self.time(now).min(NonZeroTime::MAX);
        match &mut self.0 {
            Calls::One {
                at: first,
                max_window,
            } if first.get().saturating_add(*max_window) >= at => {
                self.0 = Calls::Many(Some(Box::new(Ring::new(*max_window, first.get(), at))));
            }
            Calls::One { at: first, .. } => *first = NonZeroTime::new(at),
            Calls::Many(None) => {
                self.0 = Calls::One {
                    at: NonZeroTime::new(at),
                    max_window: window,
                };
            }
            Calls::Many(Some(ring)) => {
                ring.evict(at);
                if ring.calls.is_empty() {
                    let max_window = ring.max_window;
                    let at = NonZeroTime::new(at);
                    self.0 = Calls::One { at, max_window };
                } else {
                    ring.calls.push_back(at);
                }
            }
        }
        at
    }

    /// How many calls count in a window of this length, as far as the window had to keep them.
    #[must_use]
    pub fn count(&self, now: u64, window: Duration) -> usize {
        let (now, window) = (self.time(now), nanoseconds(window));
        let is_over = |at: u64| at.saturating_add(window) < now;
        match &self.0 {
            Calls::One { at, .. } => usize::from(!is_over(at.get())),
            Calls::Many(None) => 0,
            Calls::Many(Some(ring)) => {
                ring.calls.len() - ring.calls.partition_point(|&at| is_over(at))
            }
        }
    }

    /// Removes one call that was recorded at exactly this time, and returns whether it existed.
    pub fn refund(&mut self, at: u64) -> bool {
        match &mut self.0 {
            Calls::One { at: only, .. } if only.get() == at => *self = Self::new(),
            Calls::One { .. } | Calls::Many(None) => return false,
            Calls::Many(Some(ring)) => {
                let Ok(index) = ring.calls.binary_search(&at) else {
                    return false;
                };
                ring.calls.remove(index);
                if ring.calls.is_empty() {
                    *self = Self::new();
                }
            }
        }
        true
    }

    /// The time from which no call counts in any window queried, so that the key can be dropped.
    #[must_use]
    pub fn idle_at(&self) -> u64 {
        let Some(last) = self.last() else {
            return 0;
        };
        last.saturating_add(self.max_window()).saturating_add(1)
    }

    /// Whether no call is recorded.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        matches!(self.0, Calls::Many(None))
    }

    /// The clock may go back; a key's time never goes back before its last call.
    fn time(&self, now: u64) -> u64 {
        self.last().map_or(now, |last| now.max(last))
    }

    fn last(&self) -> Option<u64> {
        self.nth_last(NonZeroU32::MIN)
    }

    fn nth_last(&self, n: NonZeroU32) -> Option<u64> {
        match &self.0 {
            Calls::One { at, .. } => (n == NonZeroU32::MIN).then(|| at.get()),
            Calls::Many(None) => None,
            Calls::Many(Some(ring)) => {
                let n = usize::try_from(n.get()).ok()?;
                let index = ring.calls.len().checked_sub(n)?;
                ring.calls.get(index).copied()
            }
        }
    }

    fn max_window(&self) -> u64 {
        match &self.0 {
            Calls::One { max_window, .. } => *max_window,
            Calls::Many(None) => 0,
            Calls::Many(Some(ring)) => ring.max_window,
        }
    }

    fn keep(&mut self, window: u64) {
        let max_window = match &mut self.0 {
            Calls::One { max_window, .. } => max_window,
            Calls::Many(None) => return,
            Calls::Many(Some(ring)) => &mut ring.max_window,
        };
        *max_window = window.max(*max_window);
    }
}

impl Default for Window {
    fn default() -> Self {
        Self::new()
    }
}

impl Ring {
    fn new(max_window: u64, first: u64, second: u64) -> Self {
        // The smallest allocation holds three, and most keys have few calls.
        let mut calls = VecDeque::with_capacity(3);
        calls.extend([first, second]);
        Self { max_window, calls }
    }

    /// Drops calls that no window counts at `now`, and frees memory that a burst left behind.
    ///
    /// Each call is dropped once, and memory moves only after half of it was emptied or filled, so a call
    /// costs O(1) amortized.
    fn evict(&mut self, now: u64) {
        let max_window = self.max_window;
        let is_over = |at: &u64| at.saturating_add(max_window) < now;
        while self.calls.front().is_some_and(is_over) {
            self.calls.pop_front();
        }
        let (len, capacity) = (self.calls.len(), self.calls.capacity());
        if capacity > 8 && len < capacity / 4 {
            self.calls.shrink_to(len * 2);
        }
    }
}

/// A time that is never zero, so that [`Calls`] needs no separate tag.
#[derive(Clone, Copy, Debug)]
struct NonZeroTime(NonZeroU64);

impl NonZeroTime {
    /// The latest time that can be represented.
    const MAX: u64 = u64::MAX - 1;

    fn new(at: u64) -> Self {
        Self(NonZeroU64::new(!at).unwrap_or(NonZeroU64::MIN))
    }

    const fn get(self) -> u64 {
        !self.0.get()
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    let seconds = duration.as_secs().saturating_mul(1_000_000_000);
    seconds.saturating_add(u64::from(duration.subsec_nanos()))
}
