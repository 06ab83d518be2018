use std::ops::ControlFlow;

use rusqlite::types::{Value, ValueRef};
use rusqlite::{CachedStatement, Row, params_from_iter};
use toolwarden_model::Fingerprint;

use crate::error::StoreError;
use crate::store::Store;

/// One record of the audit log as stored. The store does not know how records are hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRow<'r> {
    /// Its sequence number; the first is 1.
    pub seq: u64,
    /// The time, in milliseconds since 1970.
    pub at_ms: i64,
    /// The kind of record.
    pub kind: &'r str,
    /// The principal it concerns.
    pub principal: Option<&'r str>,
    /// The tool it concerns.
    pub tool: Option<&'r str>,
    /// The session it concerns.
    pub session: Option<&'r str>,
    /// The reason code.
    pub code: &'r str,
    /// Whether the record allows or denies; `None` if it does neither.
    pub allowed: Option<bool>,
    /// All other fields, as JSON.
    pub body: &'r str,
    /// Its hash.
    pub hash: Fingerprint,
}

/// The end and the start of the audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditHead {
    /// The last record; 0 if there was never a record.
    pub seq: u64,
    /// Its hash.
    pub hash: Fingerprint,
    /// The last removed record; 0 if none was removed.
    pub removed_through: u64,
    /// Its hash.
    pub removed_hash: Fingerprint,
}

/// Which of the oldest records to remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PruneRange {
    /// Those before the first record at this time or later, in milliseconds since 1970.
    Before(i64),
    /// All but this many.
    Keep(u64),
}

/// The result of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrunedRecords {
    /// The number of removed records.
    pub records: u64,
    /// The last removed record.
    pub through: u64,
    /// Its hash.
    pub hash: Fingerprint,
}

/// Appends to the log within a transaction.
pub struct RecordAppender<'s> {
    store: &'s Store,
    insert: CachedStatement<'s>,
    head: AuditHead,
}

impl std::fmt::Debug for RecordAppender<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Appender({:?}, {:?})", self.store, self.head)
    }
}

impl RecordAppender<'_> {
    /// The current end of the log.
    #[must_use]
    pub const fn head(&self) -> AuditHead {
        self.head
    }

    /// Appends the record that follows the head.
    ///
    /// # Errors
    /// The store cannot be written, or the record does not follow the head.
    pub fn append(&mut self, row: &RecordRow<'_>) -> Result<(), StoreError> {
        if row.seq != self.head.seq.saturating_add(1) {
            return Err(self.store.damaged_error("a record is out of sequence"));
        }
        let inserted = self.insert.execute((
            sql_integer(row.seq),
            row.at_ms,
            row.kind,
            row.principal,
            row.tool,
            row.session,
            row.code,
            row.allowed,
            row.body,
            row.hash.as_bytes().as_slice(),
        ));
        let inserted = inserted.map_err(|error| self.store.sqlite_error(error))?;
        if inserted != 1 {
            return Err(self.store.damaged_error("a record was not inserted"));
        }
        (self.head.seq, self.head.hash) = (row.seq, row.hash);
        Ok(())
    }
}

impl Store {
    /// Appends records, all or none; when this returns, they survive a power loss.
    ///
    /// # Errors
    /// The append failed, and nothing was appended.
    pub fn append_records<T, E: From<StoreError>>(
        &self,
        append: impl FnOnce(&mut RecordAppender<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.require_same_file()?;
        self.write_transaction(|store| store.append_in_transaction(append))
    }

    /// Appends records within a transaction of [`Self::write_transaction`], so that the change and its records
    /// are committed together or not at all.
    ///
    /// # Errors
    /// The append failed; the caller must then fail the transaction.
    pub fn append_within_write<T, E: From<StoreError>>(
        &self,
        append: impl FnOnce(&mut RecordAppender<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.require_same_file()?;
        self.append_in_transaction(append)
    }

    /// Removes the oldest records. Before that, `seal` appends a record of the removal.
    ///
    /// # Errors
    /// The removal failed, and nothing was changed.
    pub fn prune_records(
        &self,
        cut: PruneRange,
        seal: impl FnOnce(&mut RecordAppender<'_>, PrunedRecords) -> Result<(), StoreError>,
    ) -> Result<Option<PrunedRecords>, StoreError> {
        self.require_same_file()?;
        self.write_transaction(|store| {
            let Some(removal) = store.prunable_records(cut)? else {
                return Ok(None);
            };
            store.append_in_transaction(|appender| seal(appender, removal))?;
            let through = sql_integer(removal.through);
            let moved = "UPDATE audit_head SET removed_through = ?1, removed_hash = ?2";
            store.execute(moved, (through, removal.hash.as_bytes().as_slice()))?;
            store.execute("DELETE FROM audit_record WHERE seq <= ?1", [through])?;
            Ok(Some(removal))
        })
    }

    /// What [`Self::prune_records`] would remove now; `None` if nothing.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn prunable_records(&self, cut: PruneRange) -> Result<Option<PrunedRecords>, StoreError> {
        let head = self.audit_head()?;
        let through = self.last_to_remove(cut, head)?;
        if through <= head.removed_through {
            return Ok(None);
        }
        let query = "SELECT hash FROM audit_record WHERE seq = ?1";
        let hash = self.sql(|it| it.query_row(query, [sql_integer(through)], |row| row.get(0)))?;
        Ok(Some(PrunedRecords {
            records: through - head.removed_through,
            through,
            hash: Fingerprint::from_bytes(hash),
        }))
    }

    /// The end and the start of the audit log.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn audit_head(&self) -> Result<AuditHead, StoreError> {
        let query = "SELECT seq, hash, removed_through, removed_hash FROM audit_head";
        let found = self
            .connection()
            .prepare_cached(query)
            .and_then(|mut statement| {
                statement.query_row([], |row| {
                    Ok(AuditHead {
                        seq: unsigned_column(row, 0)?,
                        hash: Fingerprint::from_bytes(row.get(1)?),
                        removed_through: unsigned_column(row, 2)?,
                        removed_hash: Fingerprint::from_bytes(row.get(3)?),
                    })
                })
            });
        found.map_err(|error| match error.sqlite_error_code() {
            // The file can be read, but it contains no valid head.
            None | Some(rusqlite::ErrorCode::Unknown) => StoreError::NoAuditHead {
                path: self.path().to_owned(),
            },
            Some(_) => self.sqlite_error(error),
        })
    }

    /// Every record in order, and the head of the same snapshot. For an unreadable record only its
    /// number is passed.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn scan_records<T>(
        &self,
        begin: impl FnOnce(AuditHead) -> T,
        mut each: impl FnMut(&mut T, i64, Option<&RecordRow<'_>>) -> ControlFlow<()>,
    ) -> Result<T, StoreError> {
        self.read_consistent(|store| {
            let mut state = begin(store.audit_head()?);
            let query = format!("SELECT {COLUMNS} FROM audit_record ORDER BY seq");
            store.each_row(&query, &[], |row| {
                let record = record_from_row(row);
                Ok(each(&mut state, row.get(0)?, record.as_ref()))
            })?;
            Ok(state)
        })
    }

    /// Problems that SQLite finds in the file; empty if there are none.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn integrity(&self) -> Result<Vec<String>, StoreError> {
        let mut lines = self.rows("PRAGMA integrity_check(20)", [], |row| row.get(0))?;
        lines.retain(|line: &String| line != "ok");
        Ok(lines)
    }

    /// Appends within an open transaction.
    fn append_in_transaction<T, E: From<StoreError>>(
        &self,
        append: impl FnOnce(&mut RecordAppender<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let head = self.audit_head()?;
        let insert = "INSERT INTO audit_record VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
        let insert = self.connection().prepare_cached(insert);
        let insert = insert.map_err(|error| self.sqlite_error(error))?;
        let mut appender = RecordAppender {
            store: self,
            insert,
            head,
        };
        let done = append(&mut appender)?;
        let head = appender.head;
        // With FAIL, SQLite needs no statement journal: the whole transaction is rolled back
        // anyway.
        let moved = "UPDATE OR FAIL audit_head SET seq = ?1, hash = ?2";
        let moved = self.execute(
            moved,
            (sql_integer(head.seq), head.hash.as_bytes().as_slice()),
        )?;
        if moved != 1 {
            return Err(self
                .damaged_error("the head of the audit log was not updated")
                .into());
        }
        Ok(done)
    }

    fn last_to_remove(&self, cut: PruneRange, head: AuditHead) -> Result<u64, StoreError> {
        let before = match cut {
            PruneRange::Keep(count) => return Ok(head.seq.saturating_sub(count)),
            PruneRange::Before(before) => before,
        };
        let query = "SELECT min(seq) FROM audit_record WHERE at >= ?1";
        let kept: Option<i64> = self.sql(|it| it.query_row(query, [before], |row| row.get(0)))?;
        let before = |kept: i64| u64::try_from(kept - 1).unwrap_or_default();
        Ok(kept.map_or(head.seq, before))
    }

    /// Passes the rows of a query to a callback until it breaks.
    pub(crate) fn each_row(
        &self,
        query: &str,
        parameters: &[Value],
        mut each: impl FnMut(&Row<'_>) -> rusqlite::Result<ControlFlow<()>>,
    ) -> Result<(), StoreError> {
        self.sql(|it| {
            let mut statement = it.prepare(query)?;
            let mut rows = statement.query(params_from_iter(parameters))?;
            while let Some(row) = rows.next()? {
                if each(row)?.is_break() {
                    break;
                }
            }
            Ok(())
        })
    }
}

/// The columns that [`record_from_row`] reads.
pub(crate) const COLUMNS: &str =
    "seq, at, kind, principal, tool, session, code, allowed, body, hash";

/// A row as a record; `None` if another program wrote values into it that the store never writes.
pub(crate) fn record_from_row<'r>(row: &'r Row<'_>) -> Option<RecordRow<'r>> {
    let text = |column| row.get_ref(column).ok()?.as_str().ok();
    let text_or_none = |column| row.get_ref(column).ok()?.as_str_or_null().ok();
    let allowed = match row.get_ref(7).ok()? {
        ValueRef::Null => None,
        ValueRef::Integer(0) => Some(false),
        ValueRef::Integer(1) => Some(true),
        _ => return None,
    };
    Some(RecordRow {
        seq: unsigned_column(row, 0).ok()?,
        at_ms: row.get(1).ok()?,
        kind: text(2)?,
        principal: text_or_none(3)?,
        tool: text_or_none(4)?,
        session: text_or_none(5)?,
        code: text(6)?,
        allowed,
        body: text(8)?,
        hash: Fingerprint::from_bytes(row.get(9).ok()?),
    })
}

/// A sequence number as SQLite stores it.
pub(crate) fn sql_integer(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}

/// A non-negative number of a row.
pub(crate) fn unsigned_column(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(column)?;
    let outside = |_| rusqlite::Error::IntegralValueOutOfRange(column, number);
    u64::try_from(number).map_err(outside)
}
