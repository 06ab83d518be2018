use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rusqlite::{Connection, OpenFlags, Row, Transaction, TransactionBehavior};

use crate::create;
use crate::error::StoreError;
use crate::in_use::{self, InUse};
use crate::migrations::{APPLICATION_ID, STEPS};

/// How long a process waits for others before it gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long a connection of this process may take between the removal of its journal and its end.
const CLOSING: Duration = Duration::from_secs(1);

/// An open store.
pub struct Store {
    path: PathBuf,
    connection: Connection,
    place: Option<Place>,
    journal: Option<Place>,
    /// The last field: it is dropped when the connection is closed.
    in_use: Option<InUse>,
}

/// Which file: its device and number.
pub type Place = (u64, u64);

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({})", self.path.display())
    }
}

impl Store {
    /// Opens a store, and makes it where there is none.
    ///
    /// # Errors
    /// The file is something else, damaged, from a newer program, or cannot be used. It is left as it
    /// is.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let failed = |source| StoreError::Open {
            path: path.to_owned(),
            source,
        };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        create::if_missing(path).map_err(failed)?;
        let started = Instant::now();
        loop {
            // Whether a change of the journal waits for others is up to SQLite; so is this loop.
            match Self::connect(path) {
                Err(StoreError::Busy { .. }) if started.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                // Another thread may be closing the last connection, which removes the journal just before it
                // says so.
                Err(StoreError::Gone { .. }) if started.elapsed() < CLOSING => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                opened => return opened,
            }
        }
    }

    /// Opens a store if there is one.
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub fn open_existing(path: &Path) -> Result<Option<Self>, StoreError> {
        match std::fs::metadata(path) {
            Err(_) => Ok(None),
            // What was emptied is not to be mistaken for what was never filled.
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

    /// Waits this long for other processes, instead of a minute.
    ///
    /// # Errors
    /// SQLite refuses it.
    pub fn set_patience(&self, patience: Duration) -> Result<(), StoreError> {
        self.sql(|it| it.busy_timeout(patience))
    }

    /// Refuses a file that was moved or removed: SQLite would go on with it, what is written would be
    /// lost, and what others write would not be seen.
    ///
    /// # Errors
    /// It was.
    pub fn require_place(&self) -> Result<(), StoreError> {
        // It may be empty: backups do that to it.
        let same_journal = self.journal.is_none() || journal_place(&self.path) == self.journal;
        if place(&self.path) == self.place && same_journal {
            return Ok(());
        }
        let path = self.path.clone();
        Err(StoreError::Gone { path })
    }

    /// Writes what is only in the journal to the file, if the journal was removed while it was open.
    /// Open connections still have it; with the last of them it is lost.
    ///
    /// A journal that was replaced is left alone: another process may have written to the new one.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn rescue_journal(&self) -> Result<(), StoreError> {
        let [journal, ..] = companions(&self.path);
        let removed = std::fs::symlink_metadata(journal)
            .is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
        if self.journal.is_none() || !removed || place(&self.path) != self.place {
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

    /// How many bytes its contents take; room that was freed and is used again is not among them.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn used_bytes(&self) -> Result<u64, StoreError> {
        let pragma = |name: &str| -> Result<u64, StoreError> {
            self.sql(|it| it.pragma_query_value(None, name, |row| row.get::<_, i64>(0)))
                .map(i64::unsigned_abs)
        };
        let pages = pragma("page_count")?.saturating_sub(pragma("freelist_count")?);
        Ok(pages.saturating_mul(pragma("page_size")?))
    }

    /// Which file it is, wherever it may be by now.
    #[must_use]
    pub const fn place(&self) -> Option<Place> {
        self.place
    }

    fn connect(path: &Path) -> Result<Self, StoreError> {
        in_use::require_journal(path)?;
        // SQLite would create a missing file for everyone to read, so it may not create one.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(path, flags);
        let connection = opened.map_err(|error| StoreError::of(path, error))?;
        let mut store = Self {
            path: path.to_owned(),
            connection,
            place: None,
            journal: None,
            in_use: None,
        };
        if store.sql(|it| it.is_readonly(rusqlite::MAIN_DB))? {
            // SQLite falls back to reading only; everything here may write.
            return Err(StoreError::Open {
                path: path.to_owned(),
                source: std::io::ErrorKind::PermissionDenied.into(),
            });
        }
        store.sql(|it| it.busy_timeout(PATIENCE))?;
        let layout = store.read(Self::layout)?;
        // Now that it is known to be a store, and before SQLite gives its journal the same mode.
        for file in [path.to_owned()].into_iter().chain(companions(path)) {
            create::close_to_others(&file).map_err(|source| StoreError::Open {
                path: path.to_owned(),
                source,
            })?;
        }
        if layout < STEPS.len() {
            store.sql(|it| it.pragma_update(None, "journal_mode", "wal"))?;
            store.write(|store| store.migrate())?;
        }
        store.sql(|it| it.pragma_update(None, "synchronous", "full"))?;
        store.sql(|it| it.pragma_update(None, "foreign_keys", true))?;
        store.place = place(path);
        store.journal = journal_place(path);
        store.in_use = store.place.map(|it| InUse::new(it, store.journal));
        Ok(store)
    }

    /// The number of steps the file has behind it.
    fn layout(&self) -> Result<usize, StoreError> {
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
        // Another process may have been faster.
        let done = self.layout()?;
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

    /// The secret under which values of results are hashed.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn value_key(&self) -> Result<[u8; 16], StoreError> {
        let query = "SELECT value FROM setting WHERE name = 'value_key'";
        self.sql(|it| it.query_row(query, [], |row| row.get(0)))
    }

    /// Reads everything as it is at one moment, whatever others write meanwhile.
    ///
    /// # Errors
    /// Whatever went wrong.
    pub fn snapshot<T, E: From<StoreError>>(
        &self,
        read: impl FnOnce(&Self) -> Result<T, E>,
    ) -> Result<T, E> {
        // Within a change everything is as the change sees it.
        if !self.connection.is_autocommit() {
            return read(self);
        }
        let begun = Transaction::new_unchecked(&self.connection, TransactionBehavior::Deferred);
        let _until_read = begun.map_err(|error| self.failed(error))?;
        read(self)
    }

    /// Runs changes that happen all together or not at all, alone among all processes.
    ///
    /// # Errors
    /// Whatever went wrong; then nothing has happened.
    pub fn write<T, E: From<StoreError>>(
        &self,
        change: impl FnOnce(&Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let begun = Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate);
        let transaction = begun.map_err(|error| self.failed(error))?;
        let done = change(self)?;
        transaction.commit().map_err(|error| self.failed(error))?;
        Ok(done)
    }

    /// Reads several things as they are at one time.
    pub(crate) fn read<T>(
        &self,
        read: impl FnOnce(&Self) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let begun = Transaction::new_unchecked(&self.connection, TransactionBehavior::Deferred);
        let transaction = begun.map_err(|error| self.failed(error))?;
        let read = read(self)?;
        transaction.commit().map_err(|error| self.failed(error))?;
        Ok(read)
    }

    pub(crate) const fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(crate) fn sql<T>(
        &self,
        run: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        run(&self.connection).map_err(|error| self.failed(error))
    }

    pub(crate) fn failed(&self, error: rusqlite::Error) -> StoreError {
        StoreError::of(&self.path, error)
    }

    pub(crate) fn damaged(&self, detail: impl Into<String>) -> StoreError {
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

    /// Runs a statement that is run often.
    pub(crate) fn execute(
        &self,
        statement: &str,
        parameters: impl rusqlite::Params,
    ) -> Result<usize, StoreError> {
        self.sql(|it| it.prepare_cached(statement)?.execute(parameters))
    }
}

pub(crate) fn journal_place(path: &Path) -> Option<Place> {
    let [journal, ..] = companions(path);
    number(&std::fs::metadata(journal).ok()?)
}

/// Which file it is, unless somebody emptied it.
pub(crate) fn place(path: &Path) -> Option<Place> {
    let file = std::fs::metadata(path).ok()?;
    if file.len() == 0 { None } else { number(&file) }
}

#[cfg(unix)]
fn number(file: &std::fs::Metadata) -> Option<Place> {
    use std::os::unix::fs::MetadataExt;
    Some((file.dev(), file.ino()))
}

/// Elsewhere an open file cannot be moved.
#[cfg(not(unix))]
fn number(_: &std::fs::Metadata) -> Option<Place> {
    None
}

/// The files that SQLite keeps beside a database while it is open. The first is the one it writes to.
#[must_use]
pub fn companions(path: &Path) -> [PathBuf; 3] {
    ["-wal", "-shm", "-journal"].map(|ending| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        name.into()
    })
}

/// A time as it is kept: UTC with milliseconds, so that texts sort as times do.
pub(crate) fn kept_time(at: Timestamp) -> String {
    format!("{at:.3}")
}

/// A time of a row.
pub(crate) fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Timestamp> {
    let text: String = row.get(column)?;
    text.parse().map_err(|error| invalid(column, error))
}

/// The error for a column that holds what it never should.
pub(crate) fn invalid(
    column: usize,
    error: impl std::error::Error + Send + Sync + 'static,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(error))
}
