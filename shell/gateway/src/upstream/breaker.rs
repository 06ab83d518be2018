//! A circuit breaker: it stops requests to a failing server for a while, then tries the server with one request.

use std::time::Duration;

use tokio::time::Instant;
use toolwarden_settings::BreakerSettings;

use super::status::BreakerStatus;

/// Counts consecutive failures and decides whether requests may be sent.
#[derive(Debug)]
pub(super) struct CircuitBreaker {
    settings: BreakerSettings,
    mode: Mode,
}

#[derive(Debug, PartialEq, Eq)]
enum Mode {
    Closed {
        failures: u32,
    },
    Open {
        until: Instant,
    },
    /// One request is trying the server.
    HalfOpen,
}

/// The role of a request for the breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// A normal request.
    Normal,
    /// The request that finds out whether the server has recovered.
    Trial,
}

impl CircuitBreaker {
    pub(super) const fn new(settings: BreakerSettings) -> Self {
        Self {
            settings,
            mode: Mode::Closed { failures: 0 },
        }
    }

    /// Whether a request may be sent.
    ///
    /// # Errors
    /// The breaker is open; the value is how long to wait.
    pub(super) fn admit(&mut self, now: Instant) -> Result<Admission, Duration> {
        match self.mode {
            Mode::Closed { .. } => Ok(Admission::Normal),
            Mode::Open { until } if now < until => Err(until - now),
            Mode::Open { .. } => {
                self.mode = Mode::HalfOpen;
                Ok(Admission::Trial)
            }
            // The duration of the trial is unknown.
            Mode::HalfOpen => Err(self.settings.pause.min(Duration::from_secs(1))),
        }
    }

    /// Whether a request that stays open may be sent. Such a request cannot be the trial, which would never end.
    ///
    /// # Errors
    /// The breaker is open, or no other request has shown yet that the server has recovered.
    pub(super) fn admit_long_lived(&self, now: Instant) -> Result<Admission, Duration> {
        let soon = self.settings.pause.min(Duration::from_secs(1));
        match self.mode {
            Mode::Closed { .. } => Ok(Admission::Normal),
            Mode::Open { until } if now < until => Err(until - now),
            Mode::Open { .. } | Mode::HalfOpen => Err(soon),
        }
    }

    /// Records that the server responded. Returns whether this changes the status.
    pub(super) fn record_success(&mut self) -> bool {
        let healthy = Mode::Closed { failures: 0 };
        std::mem::replace(&mut self.mode, healthy) != Mode::Closed { failures: 0 }
    }

    /// Records that the server failed. Returns whether this opens the breaker.
    pub(super) fn record_failure(&mut self, now: Instant) -> bool {
        let failures = match self.mode {
            Mode::Closed { failures } => failures.saturating_add(1),
            Mode::HalfOpen => u32::MAX,
            // Requests sent before the breaker opened end while it is open.
            Mode::Open { .. } => return false,
        };
        let trips = failures >= self.settings.failures.get();
        self.mode = if trips {
            let until = now + self.settings.pause;
            Mode::Open { until }
        } else {
            Mode::Closed { failures }
        };
        trips
    }

    /// Opens the breaker. Returns whether it was not open already.
    pub(super) fn open(&mut self, now: Instant) -> bool {
        let is_open = matches!(self.mode, Mode::Open { until } if now < until);
        if !is_open {
            let until = now + self.settings.pause;
            self.mode = Mode::Open { until };
        }
        !is_open
    }

    /// Whether the last request succeeded.
    pub(super) fn is_healthy(&self) -> bool {
        self.mode == Mode::Closed { failures: 0 }
    }

    /// Whether it can be dropped without letting through a request that it would refuse now.
    pub(super) fn is_forgettable(&self, now: Instant) -> bool {
        match self.mode {
            Mode::Closed { .. } => true,
            Mode::Open { until } => until <= now,
            Mode::HalfOpen => false,
        }
    }

    /// Records that the trial was inconclusive.
    pub(super) fn abandon_trial(&mut self, now: Instant) {
        if self.mode == Mode::HalfOpen {
            self.mode = Mode::Open { until: now };
        }
    }

    /// Records that a new connection was opened, which is a reason to try the server.
    pub(super) fn allow_trial(&mut self, now: Instant) {
        if let Mode::Open { until } = &mut self.mode {
            *until = now.min(*until);
        }
    }

    pub(super) fn status(&self, now: Instant) -> BreakerStatus {
        match self.mode {
            Mode::Closed { .. } => BreakerStatus::Closed,
            Mode::Open { until } if now < until => BreakerStatus::Open {
                remaining: until - now,
            },
            Mode::Open { .. } | Mode::HalfOpen => BreakerStatus::HalfOpen,
        }
    }

    /// Whether requests pass.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self.mode, Mode::Closed { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU32;

    fn breaker() -> (CircuitBreaker, Instant) {
        let settings = BreakerSettings {
            failures: NonZeroU32::new(3).unwrap(),
            pause: Duration::from_secs(10),
        };
        (CircuitBreaker::new(settings), Instant::now())
    }

    #[test]
    fn failures_in_a_row_open_it_and_one_trial_decides() {
        let (mut breaker, start) = breaker();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(!breaker.record_failure(start));
        assert!(!breaker.record_failure(start));
        assert!(breaker.record_success());
        assert!(!breaker.record_success());
        for trips in [false, false, true, false] {
            assert_eq!(breaker.record_failure(start), trips);
        }
        assert_eq!(breaker.admit(at(4)), Err(Duration::from_secs(6)));
        assert_eq!(
            breaker.admit_long_lived(at(10)),
            Err(Duration::from_secs(1))
        );
        assert_eq!(breaker.admit(at(10)), Ok(Admission::Trial));
        assert_eq!(breaker.admit(at(10)), Err(Duration::from_secs(1)));
        assert!(breaker.record_failure(at(11)));
        assert_eq!(breaker.admit(at(12)), Err(Duration::from_secs(9)));
        assert_eq!(breaker.admit(at(21)), Ok(Admission::Trial));
        assert!(breaker.record_success());
        assert_eq!(breaker.admit(at(21)), Ok(Admission::Normal));
        assert_eq!(breaker.status(at(21)), BreakerStatus::Closed);
    }

    #[test]
    fn a_trial_that_finds_nothing_out_leaves_room_for_another() {
        let (mut breaker, start) = breaker();
        for _ in 0..3 {
            breaker.record_failure(start);
        }
        let later = start + Duration::from_secs(10);
        assert_eq!(breaker.admit(later), Ok(Admission::Trial));
        breaker.abandon_trial(later);
        assert_eq!(breaker.admit(later), Ok(Admission::Trial));
    }

    #[test]
    fn a_new_connection_ends_the_pause() {
        let (mut breaker, start) = breaker();
        for _ in 0..3 {
            breaker.record_failure(start);
        }
        breaker.allow_trial(start);
        assert_eq!(breaker.status(start), BreakerStatus::HalfOpen);
        assert_eq!(breaker.admit(start), Ok(Admission::Trial));
    }
}
