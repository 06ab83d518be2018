use std::num::NonZeroU32;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use toolwarden_guard::Limit;

use super::{Key, Limiter};

/// Counts a call of the connector, unless that would be more than `max_requests` in the window.
///
/// One limiter is shared by the whole process. A limit of none allows nothing.
#[must_use]
pub fn check_rate_limit(connector: &str, window_seconds: u64, max_requests: u32) -> bool {
    static SHARED: LazyLock<Option<Limiter>> = LazyLock::new(|| Limiter::new().ok());
    // Without randomness there is no limiter, and without a limiter no call.
    SHARED.as_ref().is_some_and(|limiter| {
        check_rate_limit_with(limiter, connector, window_seconds, max_requests)
    })
}

/// As [`check_rate_limit`], with a limiter of one's own.
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
    let checked = limiter.check(monotonic_now(), Key::of_tool(connector), limit);
    checked.is_ok()
}

/// Nanoseconds since this process first asked, on a clock that never goes back.
#[must_use]
pub fn monotonic_now() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(START.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// How far a limit is used up, under the names of the connectorguard document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimitState<'n> {
    /// The tool.
    pub connector_name: &'n str,
    /// Since when calls count, on the clock of the limiter.
    pub window_start: u64,
    /// How many calls count.
    pub request_count: usize,
    /// How many may count at once.
    pub limit: NonZeroU32,
}

impl RateLimitState<'_> {
    /// Whether the next call would be one too many.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        u32::try_from(self.request_count).map_or(true, |count| count >= self.limit.get())
    }
}
