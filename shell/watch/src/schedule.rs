use std::time::Duration;

/// The maximum interval between checks of a failing server.
const MAX_INTERVAL: Duration = Duration::from_secs(3600);

/// The share of an interval by which checks are spread, so that they do not all happen at once.
const JITTER: f64 = 0.1;

/// When to check a server next.
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

    /// The number of consecutive failures.
    #[must_use]
    pub const fn failures(&self) -> u32 {
        self.failures
    }

    /// Notes that the server answered.
    pub const fn record_success(&mut self) {
        self.failures = 0;
    }

    /// Notes that the server did not answer.
    pub const fn record_failure(&mut self) {
        self.failures = self.failures.saturating_add(1);
    }

    /// How long to wait for the next check: the interval, doubled for each consecutive failure up to an
    /// hour, with a jitter of a tenth. `chance` is from 0 to 1.
    #[must_use]
    pub fn next_delay(&self, chance: f64) -> Duration {
        let doubled = 1_u32.checked_shl(self.failures).unwrap_or(u32::MAX);
        let longest = MAX_INTERVAL.max(self.interval);
        let wait = self.interval.saturating_mul(doubled).min(longest);
        wait.mul_f64(1.0 - JITTER + 2.0 * JITTER * chance.clamp(0.0, 1.0))
    }

    /// How long to wait for the first check, so that checks are spread from the start.
    #[must_use]
    pub fn first(&self, chance: f64) -> Duration {
        self.interval.mul_f64(JITTER * chance.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_back_off_and_a_success_resets() {
        let mut schedule = Schedule::new(Duration::from_secs(300));
        let middle = |schedule: &Schedule| schedule.next_delay(0.5).as_secs();
        assert_eq!(middle(&schedule), 300);
        schedule.record_failure();
        assert_eq!(middle(&schedule), 600);
        for _ in 0..40 {
            schedule.record_failure();
        }
        assert_eq!(middle(&schedule), 3600, "but never rarer than hourly");
        schedule.record_success();
        assert_eq!(middle(&schedule), 300);
        assert_eq!(schedule.next_delay(0.0).as_secs(), 270);
        assert_eq!(schedule.next_delay(1.0).as_secs(), 330);
        assert!(schedule.first(1.0) <= Duration::from_secs(30));
    }

    #[test]
    fn a_long_interval_is_not_shortened() {
        let mut daily = Schedule::new(Duration::from_secs(86_400));
        daily.record_failure();
        assert_eq!(daily.next_delay(0.5).as_secs(), 86_400);
    }
}
