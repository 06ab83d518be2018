use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;

/// The source of time.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The machine's clocks.
    System {
        /// The start of the monotonic time.
        since: Instant,
    },
    /// A time that is set explicitly, for recorded calls and tests.
    Manual(Arc<ManualClock>),
}

/// A time that changes only when it is set.
#[derive(Debug)]
pub struct ManualClock {
    start: Timestamp,
    elapsed: AtomicU64,
}

impl Default for Clock {
    fn default() -> Self {
        Self::System {
            since: Instant::now(),
        }
    }
}

impl Clock {
    /// Monotonic nanoseconds.
    #[must_use]
    pub fn monotonic(&self) -> u64 {
        match self {
            Self::System { since } => u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX),
            Self::Manual(clock) => clock.elapsed.load(Ordering::Acquire),
        }
    }

    /// The time of day.
    #[must_use]
    pub fn wall(&self) -> Timestamp {
        match self {
            Self::System { .. } => Timestamp::now(),
            Self::Manual(clock) => clock.wall(),
        }
    }
}

impl ManualClock {
    /// A clock that is set to a time.
    #[must_use]
    pub fn at(start: Timestamp) -> Arc<Self> {
        Arc::new(Self {
            start,
            elapsed: AtomicU64::new(0),
        })
    }

    /// Sets the time since the start; it never goes back.
    pub fn set_elapsed(&self, passed: Duration) {
        let passed = u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX);
        self.elapsed.fetch_max(passed, Ordering::AcqRel);
    }

    /// Advances the clock to a time of day; an earlier one changes nothing.
    pub fn advance_to(&self, time: Timestamp) {
        if let Ok(passed) = Duration::try_from(time.duration_since(self.start)) {
            self.set_elapsed(passed);
        }
    }

    fn wall(&self) -> Timestamp {
        let passed = Duration::from_nanos(self.elapsed.load(Ordering::Acquire));
        self.start.checked_add(passed).unwrap_or(Timestamp::MAX)
    }
}
