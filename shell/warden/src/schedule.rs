use std::time::Duration;

/// A server that keeps failing is still asked this often.
const LONGEST: Duration = Duration::from_secs(3600);

/// The share of an interval by which checks are spread, so that servers are not asked all at once.
const JITTER: f64 = 0.1;

/// When a server is checked next.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    interval: Duration,
    failures: u32,
}

impl Schedule {
    /// A server that is checked once per interval.
    #[must_use]
    pub const fn new(interval: Duration) -> Self {
        Self {
            interval,
            failures: 0,
        }
    }

    /// How often in a row it has failed.
    #[must_use]
    pub const fn failures(&self) -> u32 {
        self.failures
    }

    /// The server answered.
    pub const fn answered(&mut self) {
        self.failures = 0;
    }

    /// The server did not answer.
    pub const fn failed(&mut self) {
        self.failures = self.failures.saturating_add(1);
    }

    /// How long to wait for the next check: the interval, doubled for each failure in a row up to an
    /// hour, give or take a tenth. `chance` is from 0 to 1.
    #[must_use]
    pub fn wait(&self, chance: f64) -> Duration {
        let doubled = 1_u32.checked_shl(self.failures).unwrap_or(u32::MAX);
        let longest = LONGEST.max(self.interval);
        let wait = self.interval.saturating_mul(doubled).min(longest);
        wait.mul_f64(1.0 - JITTER + 2.0 * JITTER * chance.clamp(0.0, 1.0))
    }

    /// How long to wait for the first check, so that they are spread from the start.
    #[must_use]
    pub fn first(&self, chance: f64) -> Duration {
        self.interval.mul_f64(JITTER * chance.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_make_checks_rarer_and_an_answer_makes_them_usual_again() {
        let mut schedule = Schedule::new(Duration::from_secs(300));
        let middle = |schedule: &Schedule| schedule.wait(0.5).as_secs();
        assert_eq!(middle(&schedule), 300);
        schedule.failed();
        assert_eq!(middle(&schedule), 600);
        for _ in 0..40 {
            schedule.failed();
        }
        assert_eq!(middle(&schedule), 3600, "but never rarer than hourly");
        schedule.answered();
        assert_eq!(middle(&schedule), 300);
        assert_eq!(schedule.wait(0.0).as_secs(), 270);
        assert_eq!(schedule.wait(1.0).as_secs(), 330);
        assert!(schedule.first(1.0) <= Duration::from_secs(30));
    }

    #[test]
    fn a_long_interval_is_kept() {
        let mut daily = Schedule::new(Duration::from_secs(86_400));
        daily.failed();
        assert_eq!(daily.wait(0.5).as_secs(), 86_400);
    }
}
