use std::io;
use std::path::PathBuf;

use rusqlite::ErrorCode;
use thiserror::Error;

/// Why the store could not be read or written. Nothing was changed.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The file is something else.
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
        /// What does not fit.
        detail: String,
    },
    /// Others kept the store busy for too long.
    #[error("{} is in use by others and did not become free", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The file was moved or removed while it was open.
    #[error("{} is no longer the file that was opened", path.display())]
    Gone {
        /// Where it was.
        path: PathBuf,
    },
    /// The head of the audit log is gone or unreadable.
    #[error("{} has no readable head of the audit log", path.display())]
    NoAuditHead {
        /// The file.
        path: PathBuf,
    },
    /// It takes as much space as it may.
    #[error(
        "{} takes {used} of the {quota} bytes it may (`store_quota`); remove old records with `toolwarden audit \
         prune`, or raise the quota",
        path.display()
    )]
    OverQuota {
        /// The file.
        path: PathBuf,
        /// How much it takes.
        used: u64,
        /// How much it may.
        quota: u64,
    },
    /// The file or its directory cannot be used.
    #[error("cannot open {}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A copy could not be made.
    #[error("cannot copy {} to {}", path.display(), target.display())]
    Copy {
        /// The file.
        path: PathBuf,
        /// The copy.
        target: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
    /// Anything else SQLite refuses.
    #[error("cannot use {}", path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
}

impl StoreError {
    pub(crate) fn of(path: &std::path::Path, source: rusqlite::Error) -> Self {
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
