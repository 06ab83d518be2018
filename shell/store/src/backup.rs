use std::path::Path;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use crate::create_file;
use crate::error::StoreError;
use crate::store::Store;

/// How many pages to copy between two progress reports: 4 MiB.
const PAGES_PER_STEP: i32 = 1_024;

/// The progress of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyProgress {
    /// The pages copied so far.
    pub done: u64,
    /// All pages.
    pub total: u64,
}

impl Store {
    /// Copies the current content of the store into a new file that only the user can read. Other
    /// processes can read and write the store meanwhile. When this returns, the copy is on disk.
    ///
    /// # Errors
    /// The target file already exists, or the copy failed. A partial copy is left in place.
    pub fn copy_to(
        &self,
        target: &Path,
        mut progress: impl FnMut(CopyProgress),
    ) -> Result<(), StoreError> {
        let failed = |source| StoreError::Open {
            path: target.to_owned(),
            source,
        };
        create_file::create_new(target).map_err(failed)?;
        let uncopied = |source| StoreError::Copy {
            path: self.path().to_owned(),
            target: target.to_owned(),
            source,
        };
        let mut copy = Connection::open_with_flags(
            target,
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )
        .map_err(uncopied)?;
        self.read_consistent(|store| {
            // This read fixes the snapshot that the transaction sees. Without it every write of
            // another process would restart the copy, which would never finish under load.
            store.audit_head()?;
            let backup = Backup::new(store.connection(), &mut copy).map_err(uncopied)?;
            loop {
                let step = backup.step(PAGES_PER_STEP).map_err(uncopied)?;
                let pages = backup.progress();
                let count = |pages: i32| u64::try_from(pages).unwrap_or_default();
                let total = count(pages.pagecount);
                let done = total.saturating_sub(count(pages.remaining));
                progress(CopyProgress { done, total });
                match step {
                    StepResult::Done => return Ok(()),
                    StepResult::More => {}
                    _ => {
                        return Err(StoreError::Busy {
                            path: store.path().to_owned(),
                        });
                    }
                }
            }
        })?;
        copy.close().map_err(|(_, source)| uncopied(source))?;
        // All connections to the copy are closed: see `create`.
        let written = std::fs::OpenOptions::new().write(true).open(target);
        written.and_then(|it| it.sync_all()).map_err(failed)
    }
}
