//! Copies a store that others use meanwhile.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;
use toolwarden_guard::audit::Link;
use toolwarden_store::{CopyProgress, Store, StoreError, companions};

use crate::guard::audit::{Verification, verify};
use crate::lock::folder_of;

/// How a backup is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupOptions {
    /// A file that has the name of the copy is replaced.
    pub replace: bool,
    /// The copy is verified before it gets its name.
    pub verify: bool,
}

/// What a backup does at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackupStage {
    /// Pages are copied.
    Copying(CopyProgress),
    /// The copy is verified.
    Verifying,
}

/// A copy that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackedUp {
    /// Its size.
    pub bytes: u64,
    /// Its audit log; none if it was not verified.
    pub log: Option<BackedUpLog>,
}

/// The audit log of a copy that was verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackedUpLog {
    /// How many records it holds.
    pub records: u64,
    /// Its head.
    pub head: Link,
}

/// Why no copy was made.
#[derive(Debug, Error)]
pub enum BackupError {
    /// The store cannot be read, or the copy cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Something has the name of the copy.
    #[error("{} exists already", path.display())]
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
    /// The name of the copy belongs to something that is no file.
    #[error("{} is not a file", path.display())]
    NotAFile {
        /// The name.
        path: PathBuf,
    },
    /// Beside the name of the copy is a file that SQLite would take for a part of it.
    #[error("{} exists, so {} is a database that is in use or was not closed", companion.display(), path.display())]
    InUse {
        /// The name.
        path: PathBuf,
        /// The file beside it.
        companion: PathBuf,
    },
    /// The copy is damaged or its audit log is broken, as in the store itself.
    #[error("the copy did not pass verification")]
    Unverified {
        /// What was found.
        found: Box<Verification>,
    },
    /// The copy cannot get its name.
    #[error("cannot write {}", path.display())]
    Write {
        /// The name.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Copies a store to a file that appears whole and verified, or not at all. Others may read and write the
/// store meanwhile; the copy holds everything that was committed before this was called.
///
/// # Errors
/// No copy was made, and what had its name is as it was.
pub fn backup(
    store: &Store,
    target: &Path,
    options: BackupOptions,
    mut report: impl FnMut(BackupStage),
) -> Result<BackedUp, BackupError> {
    let failed = |source| BackupError::Write {
        path: target.to_owned(),
        source,
    };
    refuse_target(store, target, options)?;
    // SQLite keeps files beside a database, so the unfinished copy has a folder of its own.
    let unfinished = tempfile::Builder::new()
        .prefix(".toolwarden-backup-")
        .tempdir_in(folder_of(target))
        .map_err(failed)?;
    let copy = unfinished.path().join("copy.db");
    store.copy_to(&copy, |progress| report(BackupStage::Copying(progress)))?;
    let mut log = None;
    if options.verify {
        report(BackupStage::Verifying);
        log = Some(verified(&copy)?);
    }
    let bytes = std::fs::metadata(&copy).map_err(failed)?.len();
    // Copying takes a while, in which another process may have taken the name.
    refuse_target(store, target, options)?;
    if options.replace {
        std::fs::rename(&copy, target).map_err(failed)?;
    } else {
        name_new(&copy, target)?;
    }
    // The new name is durable only once its folder is.
    #[cfg(unix)]
    std::fs::File::open(folder_of(target))
        .and_then(|folder| folder.sync_all())
        .map_err(failed)?;
    Ok(BackedUp { bytes, log })
}

fn refuse_target(store: &Store, target: &Path, options: BackupOptions) -> Result<(), BackupError> {
    let path = target.to_owned();
    let canonical = |path: &Path| path.canonicalize().ok();
    if canonical(target).is_some() && canonical(target) == canonical(store.path()) {
        return Err(BackupError::IsSource { path });
    }
    if let Some(companion) = companions(target).into_iter().find(|it| it.exists()) {
        return Err(BackupError::InUse { path, companion });
    }
    match std::fs::symlink_metadata(target) {
        Err(_) => Ok(()),
        Ok(found) if !found.is_file() => Err(BackupError::NotAFile { path }),
        Ok(_) if !options.replace => Err(BackupError::Exists { path }),
        Ok(_) => Ok(()),
    }
}

/// Gives a file a name that nothing has, also where another process takes it at the same time.
fn name_new(copy: &Path, target: &Path) -> Result<(), BackupError> {
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

fn verified(copy: &Path) -> Result<BackedUpLog, BackupError> {
    let store = Store::open(copy)?;
    let found = verify(&store, None)?;
    match &found.chain {
        Ok(intact) if found.damage.is_empty() => Ok(BackedUpLog {
            records: intact.records,
            head: intact.head,
        }),
        _ => Err(BackupError::Unverified {
            found: Box::new(found),
        }),
    }
}
