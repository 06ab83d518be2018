use std::time::Duration;

/// The retry policy of deliveries.
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy {
    /// The maximum number of attempts for one notice at one target.
    pub max_attempts: u32,
    /// The timeout of one attempt.
    pub timeout: Duration,
    /// The delay after the first attempt.
    pub first: Duration,
    /// The factor by which each further delay grows.
    pub multiplier: u32,
    /// The maximum delay without a `Retry-After`.
    pub max_delay: Duration,
    /// The maximum delay that a target can ask for.
    pub max_retry_after: Duration,
    /// A random number between 0 and 1 for jitter, so that many failed deliveries are not retried at the
    /// same time.
    pub jitter: fn() -> f64,
}

impl Default for RetryPolicy {
    /// Six attempts in about six minutes.
    fn default() -> Self {
        Self {
            max_attempts: 6,
            timeout: Duration::from_secs(10),
            first: Duration::from_secs(1),
            multiplier: 4,
            max_delay: Duration::from_secs(300),
            max_retry_after: Duration::from_secs(3600),
            jitter: random_fraction,
        }
    }
}

impl RetryPolicy {
    /// The delay after a number of attempts: the one that the target asks for, else exponential backoff.
    pub(super) fn delay(&self, tries: u32, asked: Option<Duration>) -> Duration {
        if let Some(asked) = asked {
            return asked.min(self.max_retry_after);
        }
        let longer = self.multiplier.saturating_pow(tries.saturating_sub(1));
        let full = self.first.saturating_mul(longer).min(self.max_delay);
        full.mul_f64(0.5 + (self.jitter)().clamp(0.0, 1.0) / 2.0)
    }
}

fn random_fraction() -> f64 {
    // Without randomness every delay is the longest.
    let drawn = getrandom::u32().unwrap_or(u32::MAX);
    f64::from(drawn) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_and_are_bounded() {
        let policy = |jitter| RetryPolicy {
            jitter,
            ..RetryPolicy::default()
        };
        let late = policy(|| 1.0);
        let pauses = [1, 2, 3, 4, 5, 6, 99].map(|tries| late.delay(tries, None).as_secs());
        assert_eq!(pauses, [1, 4, 16, 64, 256, 300, 300]);
        assert_eq!(policy(|| 0.0).delay(2, None), Duration::from_secs(2));
        let asked = |seconds| late.delay(3, Some(Duration::from_secs(seconds))).as_secs();
        assert_eq!([asked(0), asked(7), asked(90_000)], [0, 7, 3600]);
        assert!((0.0..=1.0).contains(&random_fraction()));
    }
}
