use std::ops::ControlFlow;

use rusqlite::types::{Value, ValueRef};
use rusqlite::{CachedStatement, Row, params_from_iter};
use toolwarden_model::Fingerprint;

use crate::error::StoreError;
use crate::store::Store;

/// One record of the audit log as it is kept. The store knows nothing of how it is hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRow<'r> {
    /// Its number; the first is 1.
    pub seq: u64,
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
    /// What it is about.
    pub kind: &'r str,
    /// Whom it is about.
    pub principal: Option<&'r str>,
    /// The tool it is about.
    pub tool: Option<&'r str>,
    /// The session it is about.
    pub session: Option<&'r str>,
    /// The reason code.
    pub code: &'r str,
    /// Whether something was allowed.
    pub allowed: Option<bool>,
    /// All the rest, as JSON.
    pub body: &'r str,
    /// Its hash.
    pub hash: Fingerprint,
}

/// Where the audit log ends, and where it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditHead {
    /// The last record; 0 if there never was one.
    pub seq: u64,
    /// Its hash.
    pub hash: Fingerprint,
    /// The last record that was removed; 0 if none was.
    pub removed_through: u64,
    /// Its hash.
    pub removed_hash: Fingerprint,
}

/// Which of the oldest records are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Those before the first record of this time or later, in milliseconds since 1970.
    Before(i64),
    /// All but this many.
    Keep(u64),
}

/// What a removal did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removal {
    /// How many records were removed.
    pub records: u64,
    /// The last of them.
    pub through: u64,
    /// Its hash.
    pub hash: Fingerprint,
}

/// Appends to the log within a transaction.
pub struct Appender<'s> {
    store: &'s Store,
    insert: CachedStatement<'s>,
    head: AuditHead,
}

impl std::fmt::Debug for Appender<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Appender({:?}, {:?})", self.store, self.head)
    }
}

impl Appender<'_> {
    /// Where the log ends now.
    #[must_use]
    pub const fn head(&self) -> AuditHead {
        self.head
    }

    /// Appends the record that follows the head.
    ///
    /// # Errors
    /// The store cannot be written, or the record is not the next one.
    pub fn append(&mut self, row: &RecordRow<'_>) -> Result<(), StoreError> {
        if row.seq != self.head.seq.saturating_add(1) {
            return Err(self.store.damaged("a record is not the next one"));
        }
        let inserted = self.insert.execute((
            number(row.seq),
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
        let inserted = inserted.map_err(|error| self.store.failed(error))?;
        if inserted != 1 {
            return Err(self.store.damaged("a record was not taken"));
        }
        (self.head.seq, self.head.hash) = (row.seq, row.hash);
        Ok(())
    }
}

impl Store {
    /// Appends records, all together or not at all; when this returns, they survive a loss of power.
    ///
    /// # Errors
    /// Whatever went wrong; then nothing was appended.
    pub fn append_records<T, E: From<StoreError>>(
        &self,
        append: impl FnOnce(&mut Appender<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.require_place()?;
        self.write(|store| store.appended(append))
    }

    /// Appends records within a change that [`Self::write`] runs, so that the change and its records
    /// happen together or not at all.
    ///
    /// # Errors
    /// Whatever went wrong; then the change has to fail too.
    pub fn append_within_write<T, E: From<StoreError>>(
        &self,
        append: impl FnOnce(&mut Appender<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.require_place()?;
        self.appended(append)
    }

    /// Removes the oldest records. First, a record that says so is appended by `seal`.
    ///
    /// # Errors
    /// Whatever went wrong; then nothing has happened.
    pub fn remove_records(
        &self,
        cut: Cut,
        seal: impl FnOnce(&mut Appender<'_>, Removal) -> Result<(), StoreError>,
    ) -> Result<Option<Removal>, StoreError> {
        self.require_place()?;
        self.write(|store| {
            let Some(removal) = store.removal(cut)? else {
                return Ok(None);
            };
            store.appended(|appender| seal(appender, removal))?;
            let through = number(removal.through);
            let moved = "UPDATE audit_head SET removed_through = ?1, removed_hash = ?2";
            store.execute(moved, (through, removal.hash.as_bytes().as_slice()))?;
            store.execute("DELETE FROM audit_record WHERE seq <= ?1", [through])?;
            Ok(Some(removal))
        })
    }

    /// What [`Self::remove_records`] would remove now; none if nothing.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn removal(&self, cut: Cut) -> Result<Option<Removal>, StoreError> {
        let head = self.audit_head()?;
        let through = self.last_to_remove(cut, head)?;
        if through <= head.removed_through {
            return Ok(None);
        }
        let query = "SELECT hash FROM audit_record WHERE seq = ?1";
        let hash = self.sql(|it| it.query_row(query, [number(through)], |row| row.get(0)))?;
        Ok(Some(Removal {
            records: through - head.removed_through,
            through,
            hash: Fingerprint::from_bytes(hash),
        }))
    }

    /// Where the audit log ends, and where it starts.
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
                        seq: count(row, 0)?,
                        hash: Fingerprint::from_bytes(row.get(1)?),
                        removed_through: count(row, 2)?,
                        removed_hash: Fingerprint::from_bytes(row.get(3)?),
                    })
                })
            });
        found.map_err(|error| match error.sqlite_error_code() {
            // The file can be read, and what it holds is no head.
            None | Some(rusqlite::ErrorCode::Unknown) => StoreError::NoAuditHead {
                path: self.path().to_owned(),
            },
            Some(_) => self.failed(error),
        })
    }

    /// Every record in order, and the head at the same time. A record that cannot be read has only a
    /// number.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn scan_records<T>(
        &self,
        begin: impl FnOnce(AuditHead) -> T,
        mut each: impl FnMut(&mut T, i64, Option<&RecordRow<'_>>) -> ControlFlow<()>,
    ) -> Result<T, StoreError> {
        self.read(|store| {
            let mut state = begin(store.audit_head()?);
            let query = format!("SELECT {COLUMNS} FROM audit_record ORDER BY seq");
            store.each_row(&query, &[], |row| {
                let record = record(row);
                Ok(each(&mut state, row.get(0)?, record.as_ref()))
            })?;
            Ok(state)
        })
    }

    /// What SQLite finds wrong with the file; empty if nothing.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn integrity(&self) -> Result<Vec<String>, StoreError> {
        let mut lines = self.rows("PRAGMA integrity_check(20)", [], |row| row.get(0))?;
        lines.retain(|line: &String| line != "ok");
        Ok(lines)
    }

    /// Appends within a transaction that has begun.
    fn appended<T, E: From<StoreError>>(
        &self,
        append: impl FnOnce(&mut Appender<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let head = self.audit_head()?;
        let insert = "INSERT INTO audit_record VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
        let insert = self.connection().prepare_cached(insert);
        let insert = insert.map_err(|error| self.failed(error))?;
        let mut appender = Appender {
            store: self,
            insert,
            head,
        };
        let done = append(&mut appender)?;
        let head = appender.head;
        // FAIL, which SQLite needs no journal of the statement for: the transaction is undone anyway.
        let moved = "UPDATE OR FAIL audit_head SET seq = ?1, hash = ?2";
        let moved = self.execute(moved, (number(head.seq), head.hash.as_bytes().as_slice()))?;
        if moved != 1 {
            return Err(self
                .damaged("the head of the audit log was not moved")
                .into());
        }
        Ok(done)
    }

    fn last_to_remove(&self, cut: Cut, head: AuditHead) -> Result<u64, StoreError> {
        let before = match cut {
            Cut::Keep(count) => return Ok(head.seq.saturating_sub(count)),
            Cut::Before(before) => before,
        };
        let query = "SELECT min(seq) FROM audit_record WHERE at >= ?1";
        let kept: Option<i64> = self.sql(|it| it.query_row(query, [before], |row| row.get(0)))?;
        let before = |kept: i64| u64::try_from(kept - 1).unwrap_or_default();
        Ok(kept.map_or(head.seq, before))
    }

    /// Runs over the rows of a query until it is told to stop.
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

/// The columns that [`record`] reads.
pub(crate) const COLUMNS: &str =
    "seq, at, kind, principal, tool, session, code, allowed, body, hash";

/// A row as a record, unless somebody put into it what the store never does.
pub(crate) fn record<'r>(row: &'r Row<'_>) -> Option<RecordRow<'r>> {
    let text = |column| row.get_ref(column).ok()?.as_str().ok();
    let text_or_none = |column| row.get_ref(column).ok()?.as_str_or_null().ok();
    let allowed = match row.get_ref(7).ok()? {
        ValueRef::Null => None,
        ValueRef::Integer(0) => Some(false),
        ValueRef::Integer(1) => Some(true),
        _ => return None,
    };
    Some(RecordRow {
        seq: count(row, 0).ok()?,
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

/// A number as SQLite keeps it.
pub(crate) fn number(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}

/// A number of a row that is never negative.
pub(crate) fn count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(column)?;
    let outside = |_| rusqlite::Error::IntegralValueOutOfRange(column, number);
    u64::try_from(number).map_err(outside)
}
