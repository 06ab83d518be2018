use std::time::Duration;

use jiff::Timestamp;
use toolwarden_mcp::Era;

/// How a server fares.
#[derive(Clone, Debug)]
pub struct UpstreamStatus {
    /// In a word.
    pub health: Health,
    /// Since when.
    pub since: Timestamp,
    /// How many links are open.
    pub links: usize,
    /// How many requests are under way or wait for their turn.
    pub in_flight: usize,
    /// How often a link was opened again after one had ended by itself or its session had expired.
    pub restarts: u64,
    /// Whether it is left alone for a while.
    pub breaker: BreakerStatus,
    /// What went wrong last.
    pub last_error: Option<LastError>,
    /// The era it speaks, if a link was ever open.
    pub era: Option<Era>,
    /// The protocol version it speaks, if a link was ever open.
    pub protocol_version: Option<String>,
    /// The programs that run.
    pub pids: Vec<u32>,
    /// How long it takes to answer, of late.
    pub latency: Option<Duration>,
}

/// How a server fares, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// Nobody needed it yet, or for some time.
    Idle,
    /// Its first link is being opened.
    Starting,
    /// It answers.
    Up,
    /// A link is open, and the last request failed.
    Degraded,
    /// It cannot be reached, or is left alone for a while. That may pass.
    Down,
    /// It cannot be used until somebody changes something.
    Failed,
    /// It was taken away.
    Closed,
}

/// Whether a server is left alone for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerStatus {
    /// It is not.
    Closed,
    /// It is.
    Open {
        /// For so long.
        remaining: Duration,
    },
    /// The next request tries it, or one does.
    HalfOpen,
}

/// What went wrong last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastError {
    /// When.
    pub at: Timestamp,
    /// What.
    pub text: String,
}

impl Health {
    /// The word.
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
