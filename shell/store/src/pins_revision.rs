use crate::error::StoreError;
use crate::store::Store;

/// A value that changes with every pin of a definition, approval and seal, and with nothing else.
/// Learned shapes do not count, because they do not affect what a server lists. Tools registered on
/// first sight in a separate scope do not count either, because they affect no other list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PinsRevision {
    baselines: i64,
    changes: i64,
    servers: i64,
    sealed: i64,
}

impl Store {
    /// A number that changes when another connection wrote to the file; writes through this store
    /// do not change it.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn data_version(&self) -> Result<i64, StoreError> {
        self.sql(|it| it.pragma_query_value(None, "data_version", |row| row.get(0)))
    }

    /// The current revision of pins and approvals.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn pins_revision(&self) -> Result<PinsRevision, StoreError> {
        // Pins and approvals are only ever added, so the last id represents all of them.
        let query = "
            SELECT coalesce((SELECT max(id) FROM baseline WHERE origin <> 'learned'
                    AND (origin <> 'registered'
                        OR server IN (SELECT id FROM server WHERE scope = 'default'))), 0),
                coalesce((SELECT max(id) FROM approved_change), 0),
                (SELECT count(*) FROM server WHERE scope = 'default'),
                (SELECT count(*) FROM server WHERE sealed AND scope = 'default')";
        self.sql(|it| {
            it.prepare_cached(query)?.query_row([], |row| {
                Ok(PinsRevision {
                    baselines: row.get(0)?,
                    changes: row.get(1)?,
                    servers: row.get(2)?,
                    sealed: row.get(3)?,
                })
            })
        })
    }
}
