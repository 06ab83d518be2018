use std::num::NonZeroU32;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use toolwarden_guard::Limit;

use super::{Limiter, RateKey};

/// Counts a call of the connector, unless it would exceed `max_requests` in the window.
///
/// The whole process shares one limiter. A limit of zero allows nothing.
#[must_use]
pub fn check_rate_limit(connector: &str, window_seconds: u64, max_requests: u32) -> bool {
    static SHARED: LazyLock<Option<Limiter>> = LazyLock::new(|| Limiter::new().ok());
    // Without randomness the limiter cannot be created, and without a limiter every call is denied.
    SHARED.as_ref().is_some_and(|limiter| {
        check_rate_limit_with(limiter, connector, window_seconds, max_requests)
    })
}

/// Like [`check_rate_limit`], with the caller's own limiter.
#[must_use]
pub fn check_rate_limit_with(
    limiter: &Limiter,
    connector: &str,
    window_seconds: u64,
    max_requests: u32,
) -> bool {
    let Some(max) = NonZeroU32::new(max_requests) else {
        return false;
    };
    let limit = Limit {
        max,
        window: Duration::from_secs(window_seconds),
    };
    let checked = limiter.check(monotonic_now(), RateKey::of_tool(connector), limit);
    checked.is_ok()
}

/// Nanoseconds since the first call in this process, on a monotonic clock.
#[must_use]
pub fn monotonic_now() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(START.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// How much of a limit is used, under the names of the connectorguard document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimitState<'n> {
    /// The tool.
    pub connector_name: &'n str,
    /// The start of the window, on the clock of the limiter.
    pub window_start: u64,
    /// The number of calls that count.
    pub request_count: usize,
    /// The maximum number of calls.
    pub limit: NonZeroU32,
}

impl RateLimitState<'_> {
    /// Whether the next call would exceed the limit.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        u32::try_from(self.request_count).map_or(true, |count| count >= self.limit.get())
    }
}
