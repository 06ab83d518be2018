//! How long the client waits and how much it accepts.

use std::time::Duration;

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
        }
    }
}
