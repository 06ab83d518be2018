use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use toolwarden_guard::audit::RecordContent;
use toolwarden_store::{FileId, Store, StoreError};

use super::record_row;
use super::store_quota::StoreQuota;

/// A connection to the log that reopens after a failure.
#[derive(Debug)]
pub(super) struct LogConnection {
    path: PathBuf,
    busy_timeout: Duration,
    store: Option<Store>,
    /// The identity of the log's file.
    place: Option<FileId>,
    /// The last record that was written.
    last_written: u64,
    quota: Arc<StoreQuota>,
    /// The time of the last measurement of the store.
    measured: Option<Instant>,
}

impl LogConnection {
    pub(super) fn open(
        path: &Path,
        patience: Duration,
        quota: Arc<StoreQuota>,
    ) -> Result<Self, StoreError> {
        let store = Store::open(path)?;
        store.set_busy_timeout(patience)?;
        Ok(Self {
            path: path.to_owned(),
            busy_timeout: patience,
            place: store.place(),
            store: Some(store),
            last_written: 0,
            quota,
            measured: None,
        })
    }

    /// Writes either all of these records or none.
    pub(super) fn write(&mut self, contents: &[RecordContent]) -> Result<(), StoreError> {
        let store = match self.store.take() {
            Some(store) => store,
            None => self.reopen()?,
        };
        if let Err(full) = self.quota.check(&store, &mut self.measured) {
            if matches!(full, StoreError::OverQuota { .. }) {
                self.store = Some(store);
            }
            return Err(full);
        }
        let reached: Result<u64, StoreError> = store.append_records(|appender| {
            if appender.head().seq < self.last_written {
                // The file was replaced by an older log.
                let path = self.path.clone();
                return Err(StoreError::Gone { path });
            }
            for content in contents {
                record_row::append_record(appender, content.borrow())?;
            }
            Ok(appender.head().seq)
        });
        if let Err(StoreError::Gone { .. }) = &reached {
            // Either way the caller gets an error that the log cannot be written.
            drop(store.rescue_journal());
        }
        self.last_written = reached?;
        self.store = Some(store);
        Ok(())
    }

    /// Reopens the same log and no other: a missing log must not be silently replaced by an empty or older
    /// one.
    fn reopen(&self) -> Result<Store, StoreError> {
        let gone = || StoreError::Gone {
            path: self.path.clone(),
        };
        let store = Store::open_existing(&self.path)?.ok_or_else(gone)?;
        store.set_busy_timeout(self.busy_timeout)?;
        if store.place() != self.place || store.audit_head()?.seq < self.last_written {
            return Err(gone());
        }
        Ok(store)
    }
}
