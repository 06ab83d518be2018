//! Jittered exponential backoff before the gateway restarts or reconnects to a server.

use std::time::Duration;

use tokio::time::Instant;
use toolwarden_settings::RestartSettings;

/// The end of a link that was up for this long does not count as a failure.
const STABLE: Duration = Duration::from_secs(60);

/// Delays that double with every failure in a row. Each is drawn between zero and its full length, so that
/// servers that failed together are not retried together.
#[derive(Debug)]
pub(super) struct Backoff {
    settings: RestartSettings,
    failures: u32,
    /// No link is opened before this time.
    requests_blocked_until: Option<Instant>,
    /// The keeper does not reopen the main link before this time.
    reconnect_blocked_until: Option<Instant>,
}

impl Backoff {
    pub(super) const fn new(settings: RestartSettings) -> Self {
        Self {
            settings,
            failures: 0,
            requests_blocked_until: None,
            reconnect_blocked_until: None,
        }
    }

    /// Records that a link could not be opened. `random_fraction` is between 0 and 1.
    pub(super) fn record_failure(&mut self, now: Instant, luck: f64) {
        let until = now + self.next(luck);
        self.requests_blocked_until = Some(until);
        self.reconnect_blocked_until = Some(until);
    }

    /// Records that a link was opened.
    pub(super) const fn record_success(&mut self) {
        self.requests_blocked_until = None;
        self.reconnect_blocked_until = None;
    }

    /// Records that the main link ended on its own after it was up for a time. A request opens a new one at once;
    /// the keeper waits longer after every such end.
    pub(super) fn record_end(&mut self, now: Instant, up: Duration, luck: f64) {
        if up >= STABLE {
            self.failures = 0;
            self.reconnect_blocked_until = None;
        } else {
            self.reconnect_blocked_until = Some(now + self.next(luck));
        }
    }

    /// Makes the keeper wait this long before it reopens the main link.
    pub(super) fn postpone(&mut self, now: Instant, by: Duration) {
        self.reconnect_blocked_until = Some(now + by);
    }

    /// Forgets all failures.
    pub(super) const fn reset(&mut self) {
        self.failures = 0;
        self.record_success();
    }

    /// How long no link is opened.
    pub(super) fn wait(&self, now: Instant) -> Option<Duration> {
        remaining(self.requests_blocked_until, now)
    }

    /// How long the keeper does not reopen the main link.
    pub(super) fn reconnect_wait(&self, now: Instant) -> Option<Duration> {
        remaining(self.reconnect_blocked_until, now)
    }

    fn next(&mut self, luck: f64) -> Duration {
        let doubled = 2_u32.saturating_pow(self.failures);
        self.failures = self.failures.saturating_add(1);
        let full = self.settings.first.saturating_mul(doubled);
        full.min(self.settings.max_delay)
            .mul_f64(luck.clamp(0.0, 1.0))
    }
}

/// A random number between 0 and 1.
pub(super) fn random_fraction() -> f64 {
    // Without randomness, every delay has its full length.
    let drawn = getrandom::u32().unwrap_or(u32::MAX);
    f64::from(drawn) / f64::from(u32::MAX)
}

fn remaining(until: Option<Instant>, now: Instant) -> Option<Duration> {
    let left = until?.saturating_duration_since(now);
    (!left.is_zero()).then_some(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_secs(1);

    fn backoff() -> (Backoff, Instant) {
        let most = Duration::from_secs(5);
        let settings = RestartSettings {
            first: FIRST,
            max_delay: most,
        };
        (Backoff::new(settings), Instant::now())
    }

    #[test]
    fn waits_double_up_to_the_most_and_are_drawn() {
        let (mut backoff, now) = backoff();
        let mut waits = Vec::new();
        for luck in [1.0, 1.0, 0.5, 1.0, 1.0, 0.0] {
            backoff.record_failure(now, luck);
            waits.push(backoff.wait(now).map(|wait| wait.as_millis()));
        }
        let expected = [1000, 2000, 2000, 5000, 5000].map(Some);
        assert_eq!(waits.split_last(), Some((&None, &expected[..])));
        assert!((0.0..=1.0).contains(&random_fraction()));
    }

    #[test]
    fn a_link_that_ends_young_delays_only_the_keeper() {
        let (mut backoff, now) = backoff();
        let waits = |it: &Backoff| (it.wait(now), it.reconnect_wait(now));
        backoff.record_end(now, Duration::from_secs(59), 1.0);
        assert_eq!(waits(&backoff), (None, Some(FIRST)));
        backoff.record_success();
        assert_eq!(waits(&backoff), (None, None));
        backoff.record_end(now, Duration::from_secs(59), 1.0);
        assert_eq!(waits(&backoff), (None, Some(FIRST * 2)));
        backoff.record_success();
        backoff.record_end(now, STABLE, 1.0);
        assert_eq!(waits(&backoff), (None, None));
        backoff.record_failure(now, 1.0);
        assert_eq!(waits(&backoff), (Some(FIRST), Some(FIRST)));
        backoff.reset();
        assert_eq!(waits(&backoff), (None, None));
    }
}
