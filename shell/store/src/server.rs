use jiff::Timestamp;
use rusqlite::OptionalExtension;

use crate::error::StoreError;
use crate::store::{Store, time_text};

/// Identifies the tools of one server as one principal sees them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerKey {
    /// The user's name for the server; never the name the server gives itself.
    pub name: String,
    /// The principal it was queried for: a server may show different tools to different principals.
    pub scope: String,
}

/// A server in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Its row id in the store.
    pub id: ServerId,
    /// Its key.
    pub key: ServerKey,
    /// Whether its whole list of tools is pinned: an additional tool is drift.
    pub sealed: bool,
    /// Whether an operator left it open: an additional tool is pinned when it is first seen.
    pub open: bool,
}

/// The row id of a server in a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerId(pub(crate) i64);

impl Store {
    /// The server with this key.
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

    /// The server with this key; adds it if it is missing. This never removes a seal.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn ensure_server(
        &self,
        key: &ServerKey,
        sealed: bool,
        at: Timestamp,
    ) -> Result<Server, StoreError> {
        let statement = "
            INSERT INTO server (name, scope, sealed, first_seen) VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT DO UPDATE SET sealed = max(sealed, excluded.sealed),
                open = CASE WHEN excluded.sealed THEN 0 ELSE open END";
        self.execute(statement, (&key.name, &key.scope, sealed, time_text(at)))?;
        let kept = self.server(key)?;
        kept.ok_or_else(|| self.damaged_error("a server vanished while it was written"))
    }

    /// Marks a server open: its list of tools is not pinned as a whole.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn mark_unsealed(&self, key: &ServerKey, at: Timestamp) -> Result<(), StoreError> {
        self.ensure_server(key, false, at)?;
        let statement = "UPDATE server SET sealed = 0, open = 1 WHERE name = ?1 AND scope = ?2";
        self.execute(statement, (&key.name, &key.scope))?;
        Ok(())
    }
}
