//! Leaves a failing server alone for a while, then tries it with one request.

use std::time::Duration;

use tokio::time::Instant;
use toolwarden_warden::settings;

use super::status::BreakerStatus;

/// Counts failures in a row.
#[derive(Debug)]
pub(super) struct Breaker {
    settings: settings::Breaker,
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
    Trying,
}

/// What a request is for the breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// One of many.
    Usual,
    /// The one that finds out whether the server is back.
    Trial,
}

impl Breaker {
    pub(super) const fn new(settings: settings::Breaker) -> Self {
        Self {
            settings,
            mode: Mode::Closed { failures: 0 },
        }
    }

    /// Whether a request may be sent.
    ///
    /// # Errors
    /// Not before this time has passed.
    pub(super) fn admit(&mut self, now: Instant) -> Result<Admission, Duration> {
        match self.mode {
            Mode::Closed { .. } => Ok(Admission::Usual),
            Mode::Open { until } if now < until => Err(until - now),
            Mode::Open { .. } => {
                self.mode = Mode::Trying;
                Ok(Admission::Trial)
            }
            // How long the trial takes is not known.
            Mode::Trying => Err(self.settings.pause.min(Duration::from_secs(1))),
        }
    }

    /// Whether a request may be sent that stays open, and would try the server for ever.
    ///
    /// # Errors
    /// Not before this time has passed, and another has found out that the server is back.
    pub(super) fn admit_standing(&self, now: Instant) -> Result<Admission, Duration> {
        let soon = self.settings.pause.min(Duration::from_secs(1));
        match self.mode {
            Mode::Closed { .. } => Ok(Admission::Usual),
            Mode::Open { until } if now < until => Err(until - now),
            Mode::Open { .. } | Mode::Trying => Err(soon),
        }
    }

    /// The server answered. Says whether that is news.
    pub(super) fn succeeded(&mut self) -> bool {
        let healthy = Mode::Closed { failures: 0 };
        std::mem::replace(&mut self.mode, healthy) != Mode::Closed { failures: 0 }
    }

    /// The server failed. Says whether it is left alone from now on.
    pub(super) fn failed(&mut self, now: Instant) -> bool {
        let failures = match self.mode {
            Mode::Closed { failures } => failures.saturating_add(1),
            Mode::Trying => u32::MAX,
            // What was sent before the pause ends in it.
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

    /// Leaves the server alone from now on. Says whether that is news.
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

    /// Whether forgetting it lets no request through that it would refuse now.
    pub(super) fn is_rested(&self, now: Instant) -> bool {
        match self.mode {
            Mode::Closed { .. } => true,
            Mode::Open { until } => until <= now,
            Mode::Trying => false,
        }
    }

    /// The trial ended without finding anything out.
    pub(super) fn undecided(&mut self, now: Instant) {
        if self.mode == Mode::Trying {
            self.mode = Mode::Open { until: now };
        }
    }

    /// A new connection was opened, so that there is reason to try.
    pub(super) fn eased(&mut self, now: Instant) {
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
            Mode::Open { .. } | Mode::Trying => BreakerStatus::HalfOpen,
        }
    }

    /// Whether requests go through.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self.mode, Mode::Closed { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU32;

    fn breaker() -> (Breaker, Instant) {
        let settings = settings::Breaker {
            failures: NonZeroU32::new(3).unwrap(),
            pause: Duration::from_secs(10),
        };
        (Breaker::new(settings), Instant::now())
    }

    #[test]
    fn failures_in_a_row_open_it_and_one_trial_decides() {
        let (mut breaker, start) = breaker();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(!breaker.failed(start));
        assert!(!breaker.failed(start));
        assert!(breaker.succeeded());
        assert!(!breaker.succeeded());
        for trips in [false, false, true, false] {
            assert_eq!(breaker.failed(start), trips);
        }
        assert_eq!(breaker.admit(at(4)), Err(Duration::from_secs(6)));
        assert_eq!(breaker.admit_standing(at(10)), Err(Duration::from_secs(1)));
        assert_eq!(breaker.admit(at(10)), Ok(Admission::Trial));
        assert_eq!(breaker.admit(at(10)), Err(Duration::from_secs(1)));
        assert!(breaker.failed(at(11)));
        assert_eq!(breaker.admit(at(12)), Err(Duration::from_secs(9)));
        assert_eq!(breaker.admit(at(21)), Ok(Admission::Trial));
        assert!(breaker.succeeded());
        assert_eq!(breaker.admit(at(21)), Ok(Admission::Usual));
        assert_eq!(breaker.status(at(21)), BreakerStatus::Closed);
    }

    #[test]
    fn a_trial_that_finds_nothing_out_leaves_room_for_another() {
        let (mut breaker, start) = breaker();
        for _ in 0..3 {
            breaker.failed(start);
        }
        let later = start + Duration::from_secs(10);
        assert_eq!(breaker.admit(later), Ok(Admission::Trial));
        breaker.undecided(later);
        assert_eq!(breaker.admit(later), Ok(Admission::Trial));
    }

    #[test]
    fn a_new_connection_ends_the_pause() {
        let (mut breaker, start) = breaker();
        for _ in 0..3 {
            breaker.failed(start);
        }
        breaker.eased(start);
        assert_eq!(breaker.status(start), BreakerStatus::HalfOpen);
        assert_eq!(breaker.admit(start), Ok(Admission::Trial));
    }
}
