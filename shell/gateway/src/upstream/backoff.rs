//! How long to wait before a server is started or reached again.

use std::time::Duration;

use tokio::time::Instant;
use toolwarden_warden::settings::Restart;

/// A link that was up for so long was no failure.
const STABLE: Duration = Duration::from_secs(60);

/// Waits that double with every failure in a row, each between nothing and its full length, so that
/// what failed together does not come back together.
#[derive(Debug)]
pub(super) struct Backoff {
    settings: Restart,
    failures: u32,
    /// Nobody opens a link before.
    anybody: Option<Instant>,
    /// The main link is not opened by itself before.
    keeper: Option<Instant>,
}

impl Backoff {
    pub(super) const fn new(settings: Restart) -> Self {
        Self {
            settings,
            failures: 0,
            anybody: None,
            keeper: None,
        }
    }

    /// A link could not be opened. `luck` is between 0 and 1.
    pub(super) fn failed(&mut self, now: Instant, luck: f64) {
        let until = now + self.next(luck);
        self.anybody = Some(until);
        self.keeper = Some(until);
    }

    /// A link was opened.
    pub(super) const fn opened(&mut self) {
        self.anybody = None;
        self.keeper = None;
    }

    /// The main link ended by itself after it was up for a time. Whoever asks gets a new one at once;
    /// by itself it is opened later and later.
    pub(super) fn ended(&mut self, now: Instant, up: Duration, luck: f64) {
        if up >= STABLE {
            self.failures = 0;
            self.keeper = None;
        } else {
            self.keeper = Some(now + self.next(luck));
        }
    }

    /// The main link is not opened by itself before so much time has passed.
    pub(super) fn postpone(&mut self, now: Instant, by: Duration) {
        self.keeper = Some(now + by);
    }

    /// Forgets all failures.
    pub(super) const fn forget(&mut self) {
        self.failures = 0;
        self.opened();
    }

    /// How long nobody opens a link.
    pub(super) fn wait(&self, now: Instant) -> Option<Duration> {
        left(self.anybody, now)
    }

    /// How long the main link is not opened by itself.
    pub(super) fn keeper_wait(&self, now: Instant) -> Option<Duration> {
        left(self.keeper, now)
    }

    fn next(&mut self, luck: f64) -> Duration {
        let doubled = 2_u32.saturating_pow(self.failures);
        self.failures = self.failures.saturating_add(1);
        let full = self.settings.first.saturating_mul(doubled);
        full.min(self.settings.most).mul_f64(luck.clamp(0.0, 1.0))
    }
}

/// A number between 0 and 1.
pub(super) fn luck() -> f64 {
    // Without randomness everybody waits the longest.
    let drawn = getrandom::u32().unwrap_or(u32::MAX);
    f64::from(drawn) / f64::from(u32::MAX)
}

fn left(until: Option<Instant>, now: Instant) -> Option<Duration> {
    let left = until?.saturating_duration_since(now);
    (!left.is_zero()).then_some(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_secs(1);

    fn backoff() -> (Backoff, Instant) {
        let most = Duration::from_secs(5);
        let settings = Restart { first: FIRST, most };
        (Backoff::new(settings), Instant::now())
    }

    #[test]
    fn waits_double_up_to_the_most_and_are_drawn() {
        let (mut backoff, now) = backoff();
        let mut waits = Vec::new();
        for luck in [1.0, 1.0, 0.5, 1.0, 1.0, 0.0] {
            backoff.failed(now, luck);
            waits.push(backoff.wait(now).map(|wait| wait.as_millis()));
        }
        let expected = [1000, 2000, 2000, 5000, 5000].map(Some);
        assert_eq!(waits.split_last(), Some((&None, &expected[..])));
        assert!((0.0..=1.0).contains(&luck()));
    }

    #[test]
    fn a_link_that_ends_young_delays_only_the_keeper() {
        let (mut backoff, now) = backoff();
        let waits = |it: &Backoff| (it.wait(now), it.keeper_wait(now));
        backoff.ended(now, Duration::from_secs(59), 1.0);
        assert_eq!(waits(&backoff), (None, Some(FIRST)));
        backoff.opened();
        assert_eq!(waits(&backoff), (None, None));
        backoff.ended(now, Duration::from_secs(59), 1.0);
        assert_eq!(waits(&backoff), (None, Some(FIRST * 2)));
        backoff.opened();
        backoff.ended(now, STABLE, 1.0);
        assert_eq!(waits(&backoff), (None, None));
        backoff.failed(now, 1.0);
        assert_eq!(waits(&backoff), (Some(FIRST), Some(FIRST)));
        backoff.forget();
        assert_eq!(waits(&backoff), (None, None));
    }
}
