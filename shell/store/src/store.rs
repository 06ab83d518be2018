use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rusqlite::{Connection, OpenFlags, Row, Transaction, TransactionBehavior};

use crate::create_file;
use crate::error::StoreError;
use crate::file_id::{FileId, file_id_of, journal_file_id, sidecar_files};
use crate::migrations::{APPLICATION_ID, STEPS};
use crate::open_stores::{self, ConnectionGuard};

/// How long to wait for locks of other processes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a connection of this process may take from removing its journal to deregistering
/// itself.
const CLOSE_GRACE: Duration = Duration::from_secs(1);

/// An open store.
pub struct Store {
    path: PathBuf,
    connection: Connection,
    file_id: Option<FileId>,
    journal_id: Option<FileId>,
    /// The last field: it is dropped after the connection is closed.
    guard: Option<ConnectionGuard>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({})", self.path.display())
    }
}

impl Store {
    /// Opens a store; creates it if it does not exist.
    ///
    /// # Errors
    /// The file is not a store, is damaged, was written by a newer program, or cannot be used. It
    /// is left unchanged.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let failed = |source| StoreError::Open {
            path: path.to_owned(),
            source,
        };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        create_file::create_if_missing(path).map_err(failed)?;
        let started = Instant::now();
        loop {
            // SQLite does not always wait for locks when it changes the journal mode, so this loop
            // does.
            match Self::connect(path) {
                Err(StoreError::Busy { .. }) if started.elapsed() < BUSY_TIMEOUT => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                // Another thread may be closing the last connection, which removes the journal just
                // before it deregisters.
                Err(StoreError::Gone { .. }) if started.elapsed() < CLOSE_GRACE => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                opened => return opened,
            }
        }
    }

    /// Opens a store if it exists.
    ///
    /// # Errors
    /// See [`Self::open`].
    pub fn open_existing(path: &Path) -> Result<Option<Self>, StoreError> {
        match std::fs::metadata(path) {
            Err(_) => Ok(None),
            // An emptied file must not be mistaken for a new store.
            Ok(file) if file.len() == 0 => Err(StoreError::NotAStore {
                path: path.to_owned(),
            }),
            Ok(_) => Self::open(path).map(Some),
        }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sets how long to wait for other processes; the default is one minute.
    ///
    /// # Errors
    /// SQLite refuses it.
    pub fn set_busy_timeout(&self, patience: Duration) -> Result<(), StoreError> {
        self.sql(|it| it.busy_timeout(patience))
    }

    /// Refuses a file that was moved or removed. SQLite would continue to use it: its own writes
    /// would be lost, and writes of other processes would not be seen.
    ///
    /// # Errors
    /// The file was moved or removed.
    pub fn require_same_file(&self) -> Result<(), StoreError> {
        // The journal may be empty: backups truncate it.
        let same_journal =
            self.journal_id.is_none() || journal_file_id(&self.path) == self.journal_id;
        if file_id_of(&self.path) == self.file_id && same_journal {
            return Ok(());
        }
        let path = self.path.clone();
        Err(StoreError::Gone { path })
    }

    /// Writes the content of the journal to the file if the journal was removed while it was open.
    /// Open connections still have it; closing the last of them loses it.
    ///
    /// A replaced journal is left alone: another process may have written to the new one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn rescue_journal(&self) -> Result<(), StoreError> {
        let [journal, ..] = sidecar_files(&self.path);
        let removed = std::fs::symlink_metadata(journal)
            .is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
        if self.journal_id.is_none() || !removed || file_id_of(&self.path) != self.file_id {
            return Ok(());
        }
        let query = "PRAGMA wal_checkpoint(FULL)";
        let busy: bool = self.sql(|it| it.query_row(query, [], |row| row.get(0)))?;
        if busy {
            let path = self.path.clone();
            return Err(StoreError::Busy { path });
        }
        Ok(())
    }

    /// The bytes that its contents use, without freed space that SQLite will reuse.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn used_bytes(&self) -> Result<u64, StoreError> {
        let pragma = |name: &str| -> Result<u64, StoreError> {
            self.sql(|it| it.pragma_query_value(None, name, |row| row.get::<_, i64>(0)))
                .map(i64::unsigned_abs)
        };
        let pages = pragma("page_count")?.saturating_sub(pragma("freelist_count")?);
        Ok(pages.saturating_mul(pragma("page_size")?))
    }

    /// The identity of the file that was opened, even if it has been moved.
    #[must_use]
    pub const fn place(&self) -> Option<FileId> {
        self.file_id
    }

    fn connect(path: &Path) -> Result<Self, StoreError> {
        open_stores::require_journal(path)?;
        // SQLite would create a missing file readable by everyone, so it must not create one.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(path, flags);
        let connection = opened.map_err(|error| StoreError::from_sqlite(path, error))?;
        let mut store = Self {
            path: path.to_owned(),
            connection,
            file_id: None,
            journal_id: None,
            guard: None,
        };
        if store.sql(|it| it.is_readonly(rusqlite::MAIN_DB))? {
            // SQLite falls back to read-only mode; the store must be writable.
            return Err(StoreError::Open {
                path: path.to_owned(),
                source: std::io::ErrorKind::PermissionDenied.into(),
            });
        }
        store.sql(|it| it.busy_timeout(BUSY_TIMEOUT))?;
        let layout = store.read_consistent(Self::schema_version)?;
        // The file is known to be a store now, and SQLite has not yet given its journal the same
        // mode.
        for file in [path.to_owned()].into_iter().chain(sidecar_files(path)) {
            create_file::restrict_permissions(&file).map_err(|source| StoreError::Open {
                path: path.to_owned(),
                source,
            })?;
        }
        if layout < STEPS.len() {
            store.sql(|it| it.pragma_update(None, "journal_mode", "wal"))?;
            store.write_transaction(|store| store.migrate())?;
        }
        store.sql(|it| it.pragma_update(None, "synchronous", "full"))?;
        store.sql(|it| it.pragma_update(None, "foreign_keys", true))?;
        store.file_id = file_id_of(path);
        store.journal_id = journal_file_id(path);
        store.guard = store
            .file_id
            .map(|it| ConnectionGuard::new(it, store.journal_id));
        Ok(store)
    }

    /// The number of migrations already applied to the file.
    fn schema_version(&self) -> Result<usize, StoreError> {
        let pragma =
            |name: &str| self.sql(|it| it.pragma_query_value(None, name, |row| row.get(0)));
        let application: i64 = pragma("application_id")?;
        let layout: i64 = pragma("user_version")?;
        let tables: i64 = self
            .sql(|it| it.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)))?;
        let fresh = application == 0 && layout == 0 && tables == 0;
        if application != APPLICATION_ID && !fresh {
            let path = self.path.clone();
            return Err(StoreError::NotAStore { path });
        }
        let known = usize::try_from(layout).ok().filter(|it| *it <= STEPS.len());
        known.ok_or_else(|| StoreError::Newer {
            path: self.path.clone(),
            found: layout,
            known: i64::try_from(STEPS.len()).unwrap_or(i64::MAX),
        })
    }

    fn migrate(&self) -> Result<(), StoreError> {
        // Another process may have migrated the file first.
        let done = self.schema_version()?;
        for step in STEPS.iter().skip(done) {
            self.sql(|it| it.execute_batch(step))?;
        }
        if done == 0 {
            let mut key = [0; 16];
            getrandom::fill(&mut key).map_err(|error| StoreError::Open {
                path: self.path.clone(),
                source: std::io::Error::other(error),
            })?;
            self.sql(|it| it.execute("INSERT INTO setting VALUES ('value_key', ?1)", [&key[..]]))?;
            self.sql(|it| it.pragma_update(None, "application_id", APPLICATION_ID))?;
        }
        let layout = i64::try_from(STEPS.len()).unwrap_or(i64::MAX);
        self.sql(|it| it.pragma_update(None, "user_version", layout))
    }

    /// The secret key for hashing values of results.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn value_key(&self) -> Result<[u8; 16], StoreError> {
        let query = "SELECT value FROM setting WHERE name = 'value_key'";
        self.sql(|it| it.query_row(query, [], |row| row.get(0)))
    }

    /// Runs reads on one snapshot, whatever other processes write meanwhile.
    ///
    /// # Errors
    /// A read failed.
    pub fn read_transaction<T, E: From<StoreError>>(
        &self,
        read: impl FnOnce(&Self) -> Result<T, E>,
    ) -> Result<T, E> {
        // Inside a transaction all reads already see one snapshot.
        if !self.connection.is_autocommit() {
            return read(self);
        }
        let begun = Transaction::new_unchecked(&self.connection, TransactionBehavior::Deferred);
        let _until_read = begun.map_err(|error| self.sqlite_error(error))?;
        read(self)
    }

    /// Runs changes in one transaction, excluding all other writers.
    ///
    /// # Errors
    /// A change failed, and nothing was changed.
    pub fn write_transaction<T, E: From<StoreError>>(
        &self,
        change: impl FnOnce(&Self) -> Result<T, E>,
    ) -> Result<T, E> {
        self.in_transaction(TransactionBehavior::Immediate, change)
    }

    /// Runs several reads on one snapshot.
    pub(crate) fn read_consistent<T>(
        &self,
        read: impl FnOnce(&Self) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.in_transaction(TransactionBehavior::Deferred, read)
    }

    fn in_transaction<T, E: From<StoreError>>(
        &self,
        behavior: TransactionBehavior,
        act: impl FnOnce(&Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let begun = Transaction::new_unchecked(&self.connection, behavior);
        let transaction = begun.map_err(|error| self.sqlite_error(error))?;
        let done = act(self)?;
        transaction
            .commit()
            .map_err(|error| self.sqlite_error(error))?;
        Ok(done)
    }

    pub(crate) const fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(crate) fn sql<T>(
        &self,
        run: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        run(&self.connection).map_err(|error| self.sqlite_error(error))
    }

    pub(crate) fn sqlite_error(&self, error: rusqlite::Error) -> StoreError {
        StoreError::from_sqlite(&self.path, error)
    }

    pub(crate) fn damaged_error(&self, detail: impl Into<String>) -> StoreError {
        StoreError::Damaged {
            path: self.path.clone(),
            detail: detail.into(),
        }
    }

    /// Every row of a query.
    pub(crate) fn rows<T>(
        &self,
        query: &str,
        parameters: impl rusqlite::Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        self.sql(|it| {
            let mut statement = it.prepare_cached(query)?;
            let rows = statement.query_map(parameters, read)?;
            rows.collect()
        })
    }

    /// Runs a statement with a cached plan.
    pub(crate) fn execute(
        &self,
        statement: &str,
        parameters: impl rusqlite::Params,
    ) -> Result<usize, StoreError> {
        self.sql(|it| it.prepare_cached(statement)?.execute(parameters))
    }
}

/// A time as stored: UTC with milliseconds, so that texts sort in time order.
pub(crate) fn time_text(at: Timestamp) -> String {
    format!("{at:.3}")
}

/// A time in a row.
pub(crate) fn time_column(row: &Row<'_>, column: usize) -> rusqlite::Result<Timestamp> {
    let text: String = row.get(column)?;
    text.parse().map_err(|error| invalid_column(column, error))
}

/// The error for a column with an invalid value.
pub(crate) fn invalid_column(
    column: usize,
    error: impl std::error::Error + Send + Sync + 'static,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(error))
}
