use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use toolwarden_guard::audit::Content;
use toolwarden_store::{Place, Store, StoreError};

use super::quota::Quota;
use super::row;

/// A connection to the log that is opened again after a failure.
#[derive(Debug)]
pub(super) struct Sink {
    path: PathBuf,
    patience: Duration,
    store: Option<Store>,
    /// Which file the log is.
    place: Option<Place>,
    /// The last record that was written.
    reached: u64,
    quota: Arc<Quota>,
    /// When the store was last measured.
    measured: Option<Instant>,
}

impl Sink {
    pub(super) fn open(
        path: &Path,
        patience: Duration,
        quota: Arc<Quota>,
    ) -> Result<Self, StoreError> {
        let store = Store::open(path)?;
        store.set_patience(patience)?;
        Ok(Self {
            path: path.to_owned(),
            patience,
            place: store.place(),
            store: Some(store),
            reached: 0,
            quota,
            measured: None,
        })
    }

    /// Writes all of these records or none.
    pub(super) fn write(&mut self, contents: &[Content]) -> Result<(), StoreError> {
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
            if appender.head().seq < self.reached {
                // Somebody put an older log in its place.
                let path = self.path.clone();
                return Err(StoreError::Gone { path });
            }
            for content in contents {
                row::append(appender, content.borrow())?;
            }
            Ok(appender.head().seq)
        });
        if let Err(StoreError::Gone { .. }) = &reached {
            // The caller learns that the log cannot be written either way.
            drop(store.rescue_journal());
        }
        self.reached = reached?;
        self.store = Some(store);
        Ok(())
    }

    /// Opens the log again, and no other: one that is gone is not to be replaced by an empty or an older
    /// one unnoticed.
    fn reopen(&self) -> Result<Store, StoreError> {
        let gone = || StoreError::Gone {
            path: self.path.clone(),
        };
        let store = Store::open_existing(&self.path)?.ok_or_else(gone)?;
        store.set_patience(self.patience)?;
        if store.place() != self.place || store.audit_head()?.seq < self.reached {
            return Err(gone());
        }
        Ok(store)
    }
}
