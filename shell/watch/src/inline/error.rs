use std::io;

use thiserror::Error;
use toolwarden_store::StoreError;

use crate::approve::ApproveError;
use crate::pins::PinsError;

/// Why the watch cannot answer. The gateway must not serve a tool that is not known to match its pin.
#[derive(Debug, Error)]
pub enum WatchError {
    /// The pins cannot be read or written.
    #[error(transparent)]
    Pins(#[from] PinsError),
    /// Something cannot be approved.
    #[error(transparent)]
    Approve(#[from] ApproveError),
    /// A thread cannot be started.
    #[error("cannot start watching")]
    Start(#[source] io::Error),
    /// The watch gave no answer: it was closed, or failed on this request.
    #[error("the watch did not answer")]
    NoReply,
    /// Too many lists of a server are queued for comparison.
    #[error(
        "too many lists of server `{server}` wait to be compared with its pins; ask again in a few seconds"
    )]
    Busy {
        /// The server.
        server: String,
    },
    /// No server of this name is known.
    #[error("no server is called `{name}`{suggestion}")]
    UnknownServer {
        /// The name.
        name: String,
        /// The text that suggests the closest name.
        suggestion: String,
    },
    /// Clients with too many different capabilities used a server.
    #[error(
        "server `{server}` is already pinned for {most} variants of clients; clients with other capabilities are not served"
    )]
    TooManyVariants {
        /// The server.
        server: String,
        /// The limit.
        most: usize,
    },
    /// No version of a tool was ever pinned.
    #[error("tool `{tool}` was never pinned{suggestion}")]
    UnknownTool {
        /// The name.
        tool: String,
        /// The text that suggests the closest name.
        suggestion: String,
    },
}

impl From<StoreError> for WatchError {
    fn from(error: StoreError) -> Self {
        Self::Pins(PinsError::Store(error))
    }
}
