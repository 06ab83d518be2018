use std::io;

use thiserror::Error;
use toolwarden_store::StoreError;

use crate::approve::ApproveError;
use crate::pins::PinsError;

/// Why the watch cannot answer. What is not known to be as pinned must not be served.
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
    /// The watch gave no answer: it was closed, or failed on this question.
    #[error("the watch gave no answer")]
    Unanswered,
    /// Too many lists of a server wait to be compared.
    #[error(
        "too many lists of server `{server}` wait to be compared with its pins; ask again in a few seconds"
    )]
    Busy {
        /// The server.
        server: String,
    },
    /// No server of this name is known.
    #[error("no server is called `{name}`{suggestion}")]
    NoSuchServer {
        /// The name.
        name: String,
        /// What may have been meant.
        suggestion: String,
    },
    /// A server was seen by clients with too many different capabilities.
    #[error(
        "server `{server}` is pinned for {most} variants of clients already; a client with yet other capabilities is not served"
    )]
    TooManyVariants {
        /// The server.
        server: String,
        /// The limit.
        most: usize,
    },
    /// Nothing of a tool was ever pinned.
    #[error("nothing of a tool `{tool}` was ever pinned{suggestion}")]
    NoSuchTool {
        /// The name.
        tool: String,
        /// What may have been meant.
        suggestion: String,
    },
}

impl From<StoreError> for WatchError {
    fn from(error: StoreError) -> Self {
        Self::Pins(PinsError::Store(error))
    }
}
