use std::error::Error as _;
use std::io;
use std::path::PathBuf;

use thiserror::Error;
use toolwarden_model::document::DocumentError;
use toolwarden_model::json::JsonError;

/// Why a file says nothing.
#[derive(Debug, Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is too large.
    #[error("{} is larger than {} MiB", path.display(), most >> 20)]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// How many bytes it may have.
        most: u64,
    },
    /// It is no UTF-8 text.
    #[error("{}: {source}", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// What does not fit, and where.
        source: JsonError,
    },
    /// It is no YAML and no JSON.
    #[error("{}:{}:{}: {}", path.display(), source.position.line, source.position.column, source.kind)]
    Document {
        /// The file.
        path: PathBuf,
        /// What does not fit, and where.
        source: DocumentError,
    },
}

impl FileError {
    /// Whether the cause is part of the message already.
    #[must_use]
    pub const fn tells_its_cause(&self) -> bool {
        !matches!(self, Self::Read { .. })
    }

    /// Whether there is no such file.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Read { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// The message with its cause.
    #[must_use]
    pub fn whole(&self) -> String {
        match self.source() {
            Some(cause) if !self.tells_its_cause() => format!("{self}: {cause}"),
            _ => self.to_string(),
        }
    }
}
