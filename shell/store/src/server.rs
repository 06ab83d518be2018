use jiff::Timestamp;
use rusqlite::OptionalExtension;

use crate::error::StoreError;
use crate::store::{Store, kept_time};

/// Names the tools of one server as one principal sees them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerKey {
    /// What its user calls the server; never what the server calls itself.
    pub name: String,
    /// For whom it was asked: a server may show different tools to different principals.
    pub scope: String,
}

/// A server that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Its place in the store.
    pub id: ServerId,
    /// Its key.
    pub key: ServerKey,
    /// Whether its list of tools was pinned as a whole: a further one is drift.
    pub sealed: bool,
    /// Whether it was left open on purpose: a further tool is pinned when it is first seen.
    pub open: bool,
}

/// The place of a server in a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerId(pub(crate) i64);

impl Store {
    /// The server of a key.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn server(&self, key: &ServerKey) -> Result<Option<Server>, StoreError> {
        let query = "SELECT id, sealed, open FROM server WHERE name = ?1 AND scope = ?2";
        self.sql(|it| {
            let mut statement = it.prepare_cached(query)?;
            let row = statement.query_row([&key.name, &key.scope], |row| {
                Ok(Server {
                    id: ServerId(row.get(0)?),
                    key: key.clone(),
                    sealed: row.get(1)?,
                    open: row.get(2)?,
                })
            });
            row.optional()
        })
    }

    /// Every server, sorted by key.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn servers(&self) -> Result<Vec<Server>, StoreError> {
        let query = "SELECT id, name, scope, sealed, open FROM server ORDER BY name, scope";
        self.rows(query, [], |row| {
            Ok(Server {
                id: ServerId(row.get(0)?),
                key: ServerKey {
                    name: row.get(1)?,
                    scope: row.get(2)?,
                },
                sealed: row.get(3)?,
                open: row.get(4)?,
            })
        })
    }

    /// The server of a key, kept from now on if it was not. A seal is never broken by this.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn keep_server(
        &self,
        key: &ServerKey,
        sealed: bool,
        at: Timestamp,
    ) -> Result<Server, StoreError> {
        let statement = "
            INSERT INTO server (name, scope, sealed, first_seen) VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT DO UPDATE SET sealed = max(sealed, excluded.sealed),
                open = CASE WHEN excluded.sealed THEN 0 ELSE open END";
        self.execute(statement, (&key.name, &key.scope, sealed, kept_time(at)))?;
        let kept = self.server(key)?;
        kept.ok_or_else(|| self.damaged("a server vanished while it was written"))
    }

    /// Leaves a server open: its list of tools is not pinned as a whole.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn leave_open(&self, key: &ServerKey, at: Timestamp) -> Result<(), StoreError> {
        self.keep_server(key, false, at)?;
        let statement = "UPDATE server SET sealed = 0, open = 1 WHERE name = ?1 AND scope = ?2";
        self.execute(statement, (&key.name, &key.scope))?;
        Ok(())
    }
}
