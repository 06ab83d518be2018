//! Which stores this process has open, and with which journal.
//!
//! The connections of a process share what SQLite keeps in memory about the journal, while each has
//! opened the journal by itself. If the journal is removed and a new one made, old and new connections
//! would read and write different files under one index, and damage the store. So while there are
//! connections with the old journal, none is opened with another.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::StoreError;
use crate::store::{Place, journal_place, place};

static OPEN: Mutex<BTreeMap<Place, Open>> = Mutex::new(BTreeMap::new());

#[derive(Debug)]
struct Open {
    connections: usize,
    journal: Option<Place>,
}

fn open() -> MutexGuard<'static, BTreeMap<Place, Open>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Refuses a store that is open here with a journal that is no longer the one of its name.
pub(crate) fn require_journal(path: &Path) -> Result<(), StoreError> {
    let Some(place) = place(path) else {
        return Ok(());
    };
    let journal = open().get(&place).and_then(|it| it.journal);
    if journal.is_none() || journal_place(path) == journal {
        return Ok(());
    }
    Err(StoreError::Gone {
        path: path.to_owned(),
    })
}

/// One open connection.
#[derive(Debug)]
pub(crate) struct InUse(Place);

impl InUse {
    pub(crate) fn new(place: Place, journal: Option<Place>) -> Self {
        let mut open = open();
        let known = open.entry(place).or_insert(Open {
            connections: 0,
            journal,
        });
        known.connections += 1;
        Self(place)
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        let mut open = open();
        if let Some(known) = open.get_mut(&self.0) {
            known.connections -= 1;
            if known.connections == 0 {
                open.remove(&self.0);
            }
        }
    }
}
