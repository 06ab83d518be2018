use std::time::Duration;

use jiff::Timestamp;
use toolwarden_mcp::Era;

/// The status of a server.
#[derive(Clone, Debug)]
pub struct UpstreamStatus {
    /// A summary.
    pub health: UpstreamHealth,
    /// When `health_alerts` last changed.
    pub since: Timestamp,
    /// How many links are open.
    pub links: usize,
    /// How many requests are in flight or wait for their turn.
    pub in_flight: usize,
    /// How often a link was reopened after one ended on its own or its session expired.
    pub restarts: u64,
    /// Whether the circuit breaker lets requests through.
    pub breaker: BreakerStatus,
    /// The last error.
    pub last_error: Option<LastUpstreamError>,
    /// The era it speaks, if a link was ever open.
    pub era: Option<Era>,
    /// The protocol version it speaks, if a link was ever open.
    pub protocol_version: Option<String>,
    /// The process ids of its running programs.
    pub pids: Vec<u32>,
    /// Its recent response time.
    pub latency: Option<Duration>,
}

/// The health of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamHealth {
    /// No request has needed it yet, or for some time.
    Idle,
    /// Its first link is being opened.
    Starting,
    /// It responds.
    Up,
    /// A link is open, and the last request failed.
    Degraded,
    /// It cannot be reached, or its breaker is open. It may recover on its own.
    Down,
    /// It cannot be used until an operator fixes the cause.
    Failed,
    /// It was removed.
    Closed,
}

/// The status of a server's circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerStatus {
    /// Requests pass.
    Closed,
    /// Requests are refused.
    Open {
        /// For this long.
        remaining: Duration,
    },
    /// The next request tries the server, or one is trying it.
    HalfOpen,
}

/// The last error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastUpstreamError {
    /// When it happened.
    pub at: Timestamp,
    /// The message.
    pub text: String,
}

impl UpstreamHealth {
    /// The stable name of the health value.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Starting => "starting",
            Self::Up => "up",
            Self::Degraded => "degraded",
            Self::Down => "down",
            Self::Failed => "failed",
            Self::Closed => "closed",
        }
    }
}
