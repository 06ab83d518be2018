use std::path::{Path, PathBuf};
use std::time::Duration;

use toolwarden_guard::audit::Content;
use toolwarden_store::{Store, StoreError};

use super::row;

/// A connection to the log that is opened again after a failure.
#[derive(Debug)]
pub(super) struct Sink {
    path: PathBuf,
    patience: Duration,
    store: Option<Store>,
}

impl Sink {
    pub(super) fn open(path: &Path, patience: Duration) -> Result<Self, StoreError> {
        let store = Store::open(path)?;
        store.set_patience(patience)?;
        Ok(Self {
            path: path.to_owned(),
            patience,
            store: Some(store),
        })
    }

    /// Writes all of these records or none.
    pub(super) fn write(&mut self, contents: &[Content]) -> Result<(), StoreError> {
        let store = match self.store.take() {
            Some(store) => store,
            None => self.reopen()?,
        };
        store.append_records(|appender| {
            let mut contents = contents.iter();
            contents.try_for_each(|it| row::append(appender, it.borrow()).map(drop))
        })?;
        self.store = Some(store);
        Ok(())
    }

    /// Never makes a new store: a log that is gone is not to be replaced by an empty one unnoticed.
    fn reopen(&self) -> Result<Store, StoreError> {
        let path = self.path.clone();
        let store = Store::open_existing(&self.path)?.ok_or(StoreError::Gone { path })?;
        store.set_patience(self.patience)?;
        Ok(store)
    }
}
