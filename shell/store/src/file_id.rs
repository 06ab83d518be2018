//! The identity of a store's file and of the files that SQLite keeps beside it.

use std::path::{Path, PathBuf};

/// Identifies a file by device and inode number.
pub type FileId = (u64, u64);

/// The identity of the journal.
pub(crate) fn journal_file_id(path: &Path) -> Option<FileId> {
    let [journal, ..] = sidecar_files(path);
    inode_of(&std::fs::metadata(journal).ok()?)
}

/// The identity of the file; `None` if it is empty.
pub(crate) fn file_id_of(path: &Path) -> Option<FileId> {
    let file = std::fs::metadata(path).ok()?;
    if file.len() == 0 {
        None
    } else {
        inode_of(&file)
    }
}

#[cfg(unix)]
fn inode_of(file: &std::fs::Metadata) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt;
    Some((file.dev(), file.ino()))
}

/// On other systems an open file cannot be moved.
#[cfg(not(unix))]
fn inode_of(_: &std::fs::Metadata) -> Option<FileId> {
    None
}

/// The files that SQLite keeps beside an open database. The first is the one it writes to.
#[must_use]
pub fn sidecar_files(path: &Path) -> [PathBuf; 3] {
    ["-wal", "-shm", "-journal"].map(|ending| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        name.into()
    })
}
