//! Copies a store while other processes use it.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;
use toolwarden_guard::audit::ChainLink;
use toolwarden_store::{CopyProgress, Store, StoreError, sidecar_files};

use crate::lock::folder_of;
use toolwarden_live_guard::audit::{Verification, verify};

/// The options of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupOptions {
    /// Whether to replace a file that has the name of the copy.
    pub replace: bool,
    /// Whether to verify the copy before it gets its name.
    pub verify: bool,
}

/// The current stage of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackupStage {
    /// Copying pages.
    Copying(CopyProgress),
    /// Verifying the copy.
    Verifying,
}

/// A finished copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupReport {
    /// Its size.
    pub bytes: u64,
    /// Its audit log; `None` if it was not verified.
    pub log: Option<BackupLogSummary>,
}

/// The audit log of a verified copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupLogSummary {
    /// The number of records.
    pub records: u64,
    /// Its head.
    pub head: ChainLink,
}

/// Why no copy was made.
#[derive(Debug, Error)]
pub enum BackupError {
    /// The store cannot be read, or the copy cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file with the name of the copy exists.
    #[error("{} already exists", path.display())]
    Exists {
        /// The name.
        path: PathBuf,
    },
    /// The copy would replace the store itself.
    #[error("{} is the store itself", path.display())]
    IsSource {
        /// The name.
        path: PathBuf,
    },
    /// The name of the copy belongs to something that is not a file.
    #[error("{} is not a file", path.display())]
    NotAFile {
        /// The name.
        path: PathBuf,
    },
    /// Next to the name of the copy is a file that SQLite would read as a part of it.
    #[error("{} exists, so {} is a database that is in use or was not closed", companion.display(), path.display())]
    InUse {
        /// The name.
        path: PathBuf,
        /// The file next to it.
        companion: PathBuf,
    },
    /// The copy is damaged or its audit log is broken, as in the store itself.
    #[error("the copy did not pass verification")]
    Unverified {
        /// The result of the verification.
        found: Box<Verification>,
    },
    /// The copy cannot be renamed.
    #[error("cannot write {}", path.display())]
    Write {
        /// The name.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Copies a store to a file that appears complete and verified, or not at all. Other processes may read and
/// write the store meanwhile; the copy holds everything that was committed before this call.
///
/// # Errors
/// No copy was made, and a file with its name is unchanged.
pub fn backup(
    store: &Store,
    target: &Path,
    options: BackupOptions,
    mut report: impl FnMut(BackupStage),
) -> Result<BackupReport, BackupError> {
    let failed = |source| BackupError::Write {
        path: target.to_owned(),
        source,
    };
    check_target(store, target, options)?;
    // SQLite keeps files next to a database, so the unfinished copy has its own folder.
    let unfinished = tempfile::Builder::new()
        .prefix(".toolwarden-backup-")
        .tempdir_in(folder_of(target))
        .map_err(failed)?;
    let copy = unfinished.path().join("copy.db");
    store.copy_to(&copy, |progress| report(BackupStage::Copying(progress)))?;
    let mut log = None;
    if options.verify {
        report(BackupStage::Verifying);
        log = Some(verify_copy(&copy)?);
    }
    let bytes = std::fs::metadata(&copy).map_err(failed)?.len();
    // Copying takes a while, during which another process may have created the file.
    check_target(store, target, options)?;
    if options.replace {
        std::fs::rename(&copy, target).map_err(failed)?;
    } else {
        rename_without_replacing(&copy, target)?;
    }
    // The new name is durable only after its folder is synced.
    #[cfg(unix)]
    std::fs::File::open(folder_of(target))
        .and_then(|folder| folder.sync_all())
        .map_err(failed)?;
    Ok(BackupReport { bytes, log })
}

fn check_target(store: &Store, target: &Path, options: BackupOptions) -> Result<(), BackupError> {
    let path = target.to_owned();
    let canonical = |path: &Path| path.canonicalize().ok();
    if canonical(target).is_some() && canonical(target) == canonical(store.path()) {
        return Err(BackupError::IsSource { path });
    }
    if let Some(companion) = sidecar_files(target).into_iter().find(|it| it.exists()) {
        return Err(BackupError::InUse { path, companion });
    }
    match std::fs::symlink_metadata(target) {
        Err(_) => Ok(()),
        Ok(found) if !found.is_file() => Err(BackupError::NotAFile { path }),
        Ok(_) if !options.replace => Err(BackupError::Exists { path }),
        Ok(_) => Ok(()),
    }
}

/// Gives a file an unused name, without a race with other processes.
fn rename_without_replacing(copy: &Path, target: &Path) -> Result<(), BackupError> {
    let named = match std::fs::hard_link(copy, target) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(BackupError::Exists {
                path: target.to_owned(),
            });
        }
        // Some file systems have no hard links.
        Err(_) => std::fs::rename(copy, target),
        Ok(()) => Ok(()),
    };
    named.map_err(|source| BackupError::Write {
        path: target.to_owned(),
        source,
    })
}

fn verify_copy(copy: &Path) -> Result<BackupLogSummary, BackupError> {
    let store = Store::open(copy)?;
    let found = verify(&store, None)?;
    match &found.chain {
        Ok(intact) if found.damage.is_empty() => Ok(BackupLogSummary {
            records: intact.records,
            head: intact.head,
        }),
        _ => Err(BackupError::Unverified {
            found: Box::new(found),
        }),
    }
}
