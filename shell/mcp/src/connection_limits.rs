//! How long the client waits and how much it accepts.

use std::time::Duration;

use crate::error::{LimitedItem, McpError};

/// Limits on time and size; every wait for a server is bounded by one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Timeout for opening a TCP and TLS connection, and for the handshake of a program started a
    /// second time.
    pub connect: Duration,
    /// Timeout from starting a program to its first answer. Long, because `npx` and `uvx` may
    /// download the server first.
    pub start: Duration,
    /// How long `server/discover` may stay unanswered before `initialize` is sent as well.
    pub probe: Duration,
    /// Timeout of one request, from sending it to its complete answer.
    pub request: Duration,
    /// Timeout of one whole operation: connecting, or listing all pages.
    pub total: Duration,
    /// Each of the two waits when a program is stopped: after its input is closed, and after
    /// SIGTERM.
    pub close: Duration,
    /// Maximum size of one message.
    pub message_bytes: usize,
    /// Maximum output of a program that is not JSON-RPC, over the life of the connection.
    pub noise_bytes: usize,
    /// Maximum pages of one listing.
    pub pages: usize,
    /// Maximum tools of one listing.
    pub tools: usize,
    /// Maximum bytes of one listing, all pages together.
    pub list_bytes: usize,
    /// Maximum notifications and requests from the server per connection and minute.
    pub messages_per_minute: usize,
    /// Maximum bytes of those messages.
    pub bytes_per_minute: usize,
}

impl ConnectionLimits {
    /// The error of a connection on which the server exceeded its message limit.
    pub(crate) const fn message_rate_error(&self) -> McpError {
        McpError::TooMany {
            what: LimitedItem::Messages,
            limit: self.messages_per_minute,
        }
    }
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            start: Duration::from_secs(60),
            probe: Duration::from_secs(5),
            request: Duration::from_secs(30),
            total: Duration::from_secs(180),
            close: Duration::from_secs(2),
            message_bytes: 64 * 1024 * 1024,
            noise_bytes: 1024 * 1024,
            pages: 1000,
            tools: 100_000,
            list_bytes: 64 * 1024 * 1024,
            messages_per_minute: 60_000,
            bytes_per_minute: 256 * 1024 * 1024,
        }
    }
}
