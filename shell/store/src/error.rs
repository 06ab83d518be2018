use std::io;
use std::path::PathBuf;

use rusqlite::ErrorCode;
use thiserror::Error;

/// Why the store could not be read or written. Nothing was changed.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The file is not a store.
    #[error("{} is not a store of toolwarden", path.display())]
    NotAStore {
        /// The file.
        path: PathBuf,
    },
    /// A newer toolwarden wrote it.
    #[error("{} was written by a newer toolwarden (layout {found}, this one knows {known})", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its layout.
        found: i64,
        /// The newest layout known here.
        known: i64,
    },
    /// The file is damaged.
    #[error("{} is damaged: {detail}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is inconsistent.
        detail: String,
    },
    /// Another connection kept the store locked for too long.
    #[error("{} is locked by another connection; the wait timed out", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The file was moved or removed while it was open.
    #[error("{} is no longer the file that was opened", path.display())]
    Gone {
        /// The path of the store.
        path: PathBuf,
    },
    /// The head of the audit log is missing or unreadable.
    #[error("{} has no readable head of the audit log", path.display())]
    NoAuditHead {
        /// The file.
        path: PathBuf,
    },
    /// The store has reached its quota.
    #[error(
        "{} uses {used} bytes of its quota of {quota} (`store_quota`); remove old records with `toolwarden audit \
         prune`, or raise the quota",
        path.display()
    )]
    OverQuota {
        /// The file.
        path: PathBuf,
        /// The bytes it uses.
        used: u64,
        /// The quota in bytes.
        quota: u64,
    },
    /// The file or its directory cannot be used.
    #[error("cannot open {}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The store could not be copied.
    #[error("cannot copy {} to {}", path.display(), target.display())]
    Copy {
        /// The file.
        path: PathBuf,
        /// The copy.
        target: PathBuf,
        /// The cause.
        source: rusqlite::Error,
    },
    /// Any other SQLite error.
    #[error("cannot use {}", path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: rusqlite::Error,
    },
}

impl StoreError {
    pub(crate) fn from_sqlite(path: &std::path::Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Self::NotAStore { path },
            Some(ErrorCode::DatabaseCorrupt) => Self::Damaged {
                path,
                detail: source.to_string(),
            },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path },
            _ => Self::Sqlite { path, source },
        }
    }
}
