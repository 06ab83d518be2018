use std::error::Error as _;
use std::io;
use std::path::PathBuf;

use thiserror::Error;
use toolwarden_model::document::DocumentError;
use toolwarden_model::json::JsonError;

/// Why a file cannot be used.
#[derive(Debug, Error)]
pub enum FileError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file is too large.
    #[error("{} is larger than {} MiB", path.display(), most >> 20)]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The maximum size in bytes.
        most: u64,
    },
    /// The file is not UTF-8 text.
    #[error("{}: {source}", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// What is invalid, and where.
        source: JsonError,
    },
    /// The file is neither YAML nor JSON.
    #[error("{}:{}:{}: {}", path.display(), source.position.line, source.position.column, source.kind)]
    Document {
        /// The file.
        path: PathBuf,
        /// What is invalid, and where.
        source: DocumentError,
    },
}

impl FileError {
    /// Whether the message already includes the cause.
    #[must_use]
    pub const fn includes_cause(&self) -> bool {
        !matches!(self, Self::Read { .. })
    }

    /// Whether the file does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Read { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// The message with its cause.
    #[must_use]
    pub fn full_message(&self) -> String {
        match self.source() {
            Some(cause) if !self.includes_cause() => format!("{self}: {cause}"),
            _ => self.to_string(),
        }
    }
}
