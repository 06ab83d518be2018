//! Creates the file of a store.
//!
//! SQLite locks the file with POSIX advisory locks. They belong to the process, and closing any
//! descriptor of the file releases all of them, including those that SQLite holds through another
//! descriptor. Another process then believes that the store is not in use and removes its journal.
//! So this module never opens a file that may be open, and it closes the descriptor of a new file
//! before any thread can open a connection to it.

use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The longest chain of symbolic links that is followed.
const MAX_LINKS: usize = 8;

/// Locked by every thread before it connects: while it is locked, a new file may have an open
/// descriptor.
static CREATING: Mutex<()> = Mutex::new(());

/// Creates an empty file that only the user can read, unless the file exists.
pub(crate) fn create_if_missing(path: &Path) -> io::Result<()> {
    let _creating = CREATING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        if std::fs::metadata(&path).is_ok() {
            return Ok(());
        }
        match create_new(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // Another process has created it in the meantime, or it is a link to a missing
                // file.
                let Some(target) = link_target(&path) else {
                    return Ok(());
                };
                path = target;
            }
            done => return done,
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// Removes read and write permission from everyone but the owner. Another program may have created
/// the file with wider permissions, and the store holds the key of the hashed values and the audit
/// log. The mode is changed by path; the file is not opened.
#[cfg(unix)]
pub(crate) fn restrict_permissions(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let Ok(found) = std::fs::metadata(path) else {
        return Ok(());
    };
    let mode = found.permissions().mode() & 0o7777;
    if !found.is_file() || mode & 0o077 == 0 {
        return Ok(());
    }
    let closed = std::fs::Permissions::from_mode(mode & 0o700);
    match std::fs::set_permissions(path, closed) {
        Ok(()) => Ok(()),
        // The owner is another user, who may let others read the file. Only that owner can write to
        // it.
        Err(_) if mode & 0o022 == 0 => Ok(()),
        Err(error) => Err(io::Error::new(
            error.kind(),
            format!(
                "others may write to it (mode {mode:03o}), and its mode cannot be changed ({error}); run `chmod \
                 600 {}` as its owner",
                path.display()
            ),
        )),
    }
}

/// Only Unix has file modes.
#[cfg(not(unix))]
pub(crate) fn restrict_permissions(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// Creates a file; fails if the path already exists.
pub(crate) fn create_new(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    // The store holds the key of the hashed values. SQLite gives its journal the same mode.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

fn link_target(link: &Path) -> Option<PathBuf> {
    let target = std::fs::read_link(link).ok()?;
    Some(match link.parent() {
        Some(folder) => folder.join(target),
        None => target,
    })
}
