use crate::error::StoreError;
use crate::store::Store;

/// What changes with every pin of a definition, approval and seal, and with nothing else: a shape that was
/// learned says nothing of what a server lists, and what is pinned on first sight in a scope of its own
/// concerns no other list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PinsRevision {
    baselines: i64,
    changes: i64,
    servers: i64,
    sealed: i64,
}

impl Store {
    /// A number that changes when others wrote to the file; what was written through this store does
    /// not count.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn data_version(&self) -> Result<i64, StoreError> {
        self.sql(|it| it.pragma_query_value(None, "data_version", |row| row.get(0)))
    }

    /// What pins and approvals there are, in short.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn pins_revision(&self) -> Result<PinsRevision, StoreError> {
        // Pins and approvals are only ever added, so that the last one tells of all.
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
