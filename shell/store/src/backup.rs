use std::path::Path;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use crate::create;
use crate::error::StoreError;
use crate::store::Store;

/// How many pages are copied between two reports of progress: 4 MiB.
const PAGES: i32 = 1_024;

/// How far a copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyProgress {
    /// The pages that were copied.
    pub done: u64,
    /// All pages.
    pub total: u64,
}

impl Store {
    /// Copies the store, as it is now, into a new file that only the user can read, while others read
    /// and write the store. When this returns, the copy is on the disk.
    ///
    /// # Errors
    /// The file exists already, or the copy failed. What was copied so far is left in place.
    pub fn copy_to(
        &self,
        target: &Path,
        mut progress: impl FnMut(CopyProgress),
    ) -> Result<(), StoreError> {
        let failed = |source| StoreError::Open {
            path: target.to_owned(),
            source,
        };
        create::create_new(target).map_err(failed)?;
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
        self.read(|store| {
            // This read fixes what the transaction sees. Without it every write of another process
            // would make the copy start anew, and under load it would never end.
            store.audit_head()?;
            let backup = Backup::new(store.connection(), &mut copy).map_err(uncopied)?;
            loop {
                let step = backup.step(PAGES).map_err(uncopied)?;
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
        // No connection to the copy is open any more: see `create`.
        let written = std::fs::OpenOptions::new().write(true).open(target);
        written.and_then(|it| it.sync_all()).map_err(failed)
    }
}
