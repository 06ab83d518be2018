use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;

/// Where the time comes from.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The machine's clocks.
    System {
        /// What the monotonic time is counted from.
        since: Instant,
    },
    /// A time that is set, for recorded calls and tests.
    Set(Arc<SetClock>),
}

/// A time that moves only when it is told to.
#[derive(Debug)]
pub struct SetClock {
    start: Timestamp,
    passed: AtomicU64,
}

impl Default for Clock {
    fn default() -> Self {
        Self::System {
            since: Instant::now(),
        }
    }
}

impl Clock {
    /// Nanoseconds that never go back.
    #[must_use]
    pub fn monotonic(&self) -> u64 {
        match self {
            Self::System { since } => u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX),
            Self::Set(clock) => clock.passed.load(Ordering::Acquire),
        }
    }

    /// The time of day.
    #[must_use]
    pub fn wall(&self) -> Timestamp {
        match self {
            Self::System { .. } => Timestamp::now(),
            Self::Set(clock) => clock.wall(),
        }
    }
}

impl SetClock {
    /// A clock that stands at a time.
    #[must_use]
    pub fn at(start: Timestamp) -> Arc<Self> {
        Arc::new(Self {
            start,
            passed: AtomicU64::new(0),
        })
    }

    /// Sets the time that has passed since the start; it never goes back.
    pub fn set(&self, passed: Duration) {
        let passed = u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX);
        self.passed.fetch_max(passed, Ordering::AcqRel);
    }

    /// Moves the time forward to a time of day; one that is past changes nothing.
    pub fn reach(&self, time: Timestamp) {
        if let Ok(passed) = Duration::try_from(time.duration_since(self.start)) {
            self.set(passed);
        }
    }

    fn wall(&self) -> Timestamp {
        let passed = Duration::from_nanos(self.passed.load(Ordering::Acquire));
        self.start.checked_add(passed).unwrap_or(Timestamp::MAX)
    }
}
