//! Tracks which stores this process has open, and with which journal.
//!
//! The connections of a process share SQLite's in-memory state of the journal, while each has
//! opened the journal itself. If the journal is removed and recreated, old and new connections
//! would read and write different files under one index, and damage the store. So while connections
//! with the old journal exist, none is opened with another journal.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::StoreError;
use crate::file_id::{FileId, file_id_of, journal_file_id};

static OPEN_STORES: Mutex<BTreeMap<FileId, OpenStore>> = Mutex::new(BTreeMap::new());

#[derive(Debug)]
struct OpenStore {
    connections: usize,
    journal: Option<FileId>,
}

fn lock_open_stores() -> MutexGuard<'static, BTreeMap<FileId, OpenStore>> {
    OPEN_STORES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Refuses a store that this process has open with a journal that has since been removed or
/// replaced.
pub(crate) fn require_journal(path: &Path) -> Result<(), StoreError> {
    let Some(place) = file_id_of(path) else {
        return Ok(());
    };
    let journal = lock_open_stores().get(&place).and_then(|it| it.journal);
    if journal.is_none() || journal_file_id(path) == journal {
        return Ok(());
    }
    Err(StoreError::Gone {
        path: path.to_owned(),
    })
}

/// Counts one open connection for as long as it lives.
#[derive(Debug)]
pub(crate) struct ConnectionGuard(FileId);

impl ConnectionGuard {
    pub(crate) fn new(place: FileId, journal: Option<FileId>) -> Self {
        let mut open = lock_open_stores();
        let known = open.entry(place).or_insert(OpenStore {
            connections: 0,
            journal,
        });
        known.connections += 1;
        Self(place)
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        let mut open = lock_open_stores();
        if let Some(known) = open.get_mut(&self.0) {
            known.connections -= 1;
            if known.connections == 0 {
                open.remove(&self.0);
            }
        }
    }
}
