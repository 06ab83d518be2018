//! How long the client waits and how much it accepts.

use std::time::Duration;

use crate::error::{Counted, McpError};

/// Bounds on time and size; every wait on a server is under one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Opening a TCP and TLS connection, and the handshake of a program started a second time.
    pub connect: Duration,
    /// From starting a program to its first answer. Long, because `npx` and `uvx` may download
    /// the server first.
    pub start: Duration,
    /// How long `server/discover` may stay unanswered before `initialize` is sent as well.
    pub probe: Duration,
    /// One request, from sending to its complete answer.
    pub request: Duration,
    /// One whole operation: connecting, or listing all pages.
    pub total: Duration,
    /// Each of the two waits at the end of a program: after its input is closed, and after SIGTERM.
    pub close: Duration,
    /// One message.
    pub message_bytes: usize,
    /// Output of a program that is not JSON-RPC, over the life of the connection.
    pub noise_bytes: usize,
    /// Pages of one listing.
    pub pages: usize,
    /// Tools of one listing.
    pub tools: usize,
    /// Bytes of one listing, all pages together.
    pub list_bytes: usize,
    /// Notifications and requests of the server over one connection in a minute.
    pub messages_per_minute: usize,
    /// The bytes of those.
    pub bytes_per_minute: usize,
}

impl Limits {
    /// The error of a connection over which the server sent too much.
    pub(crate) const fn flooded(&self) -> McpError {
        McpError::TooMany {
            what: Counted::Messages,
            limit: self.messages_per_minute,
        }
    }
}

impl Default for Limits {
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
