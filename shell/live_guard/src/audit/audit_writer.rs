use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use toolwarden_guard::Durability;
use toolwarden_guard::audit::RecordContent;
use toolwarden_store::StoreError;

use super::direct_writer::DirectWriter;
use super::log_connection::LogConnection;
use super::record_queue::RecordQueue;
use super::store_quota::{StoreQuota, StoreUsage};
use super::ticket::{AuditError, Ticket};
use crate::log_entry::LogEntry;

/// An entry that becomes a record on the writer's thread, so that the submitter does not pay for the
/// conversion.
pub trait IntoRecord: Send + 'static {
    /// The record.
    fn content(self) -> RecordContent;
}

impl IntoRecord for RecordContent {
    fn content(self) -> RecordContent {
        self
    }
}

impl IntoRecord for LogEntry {
    fn content(self) -> RecordContent {
        Self::content(&self)
    }
}

/// The options of a writer.
#[derive(Clone, Copy, Debug)]
pub struct AuditOptions {
    /// The durability of a submitted record.
    pub durability: Durability,
    /// The maximum number of queued records.
    pub capacity: usize,
    /// How long to wait for other processes that lock the store.
    pub busy_timeout: Duration,
}

impl AuditOptions {
    /// Options with the default limits.
    #[must_use]
    pub const fn new(durability: Durability) -> Self {
        Self {
            durability,
            capacity: 65_536,
            busy_timeout: Duration::from_secs(10),
        }
    }
}

/// The status of a writer.
#[derive(Clone, Debug, Default)]
pub struct AuditHealth {
    /// The number of queued records.
    pub queued: usize,
    /// The number of written records.
    pub written: u64,
    /// Why the last attempt to write failed; `None` if it succeeded.
    pub failure: Option<Arc<StoreError>>,
}

/// Writes records to the log of a store.
///
/// After a failure every submission is an error until writing works again. The writer keeps and retries
/// records that were queued without a waiting submitter; if the failure came after SQLite had written them,
/// they are then in the log twice. Dropping the writer writes the queued records; [`Self::close`] also
/// reports whether that worked.
#[derive(Debug)]
pub struct AuditWriter<E: IntoRecord>(WriteMode<E>, Arc<StoreQuota>);

#[derive(Debug)]
enum WriteMode<E: IntoRecord> {
    /// On the submitter's thread, unless it must not block.
    Direct(Box<DirectWriter<E>>),
    Queued {
        queue: Arc<RecordQueue<E>>,
        waited_for: bool,
        thread: Option<JoinHandle<Result<(), AuditError>>>,
    },
}

impl<E: IntoRecord> AuditWriter<E> {
    /// Opens the store, and creates it if it does not exist.
    ///
    /// # Errors
    /// Those of [`toolwarden_store::Store::open`], or the thread cannot be started.
    pub fn open(path: &Path, options: AuditOptions) -> Result<Self, StoreError> {
        let quota = Arc::<StoreQuota>::default();
        let sink = LogConnection::open(path, options.busy_timeout, Arc::clone(&quota))?;
        let waited_for = match options.durability {
            Durability::Sync => {
                let direct = DirectWriter::new(sink, options.capacity);
                return Ok(Self(WriteMode::Direct(Box::new(direct)), quota));
            }
            Durability::Group => true,
            Durability::Async => false,
        };
        let queue = Arc::new(RecordQueue::new(options.capacity, waited_for));
        let shared = Arc::clone(&queue);
        let thread = std::thread::Builder::new().name("audit".to_owned());
        let thread = thread.spawn(move || shared.run(sink));
        let thread = thread.map_err(|source| StoreError::Open {
            path: path.to_owned(),
            source,
        })?;
        let way = WriteMode::Queued {
            queue,
            waited_for,
            thread: Some(thread),
        };
        Ok(Self(way, quota))
    }

    /// Records an entry, and waits as long as the durability requires.
    ///
    /// # Errors
    /// The entry is not recorded.
    pub fn submit(&self, entry: E) -> Result<(), AuditError> {
        match &self.0 {
            WriteMode::Direct(direct) => direct.write(entry),
            WriteMode::Queued {
                queue,
                waited_for: false,
                ..
            } => queue.push(entry),
            WriteMode::Queued { queue, .. } => queue.push_with_batch(entry)?.wait(),
        }
    }

    /// Starts recording an entry; the caller waits later, so that one thread can have many records written
    /// together. With `sync` the record is written immediately, unless [`Self::never_block`] was called.
    ///
    /// # Errors
    /// The entry is not recorded.
    pub fn begin(&self, entry: E) -> Result<Ticket, AuditError> {
        match &self.0 {
            WriteMode::Direct(direct) => direct.begin(entry).map(Ticket::new),
            WriteMode::Queued {
                queue,
                waited_for: true,
                ..
            } => Ok(Ticket::new(Some(queue.push_with_batch(entry)?))),
            WriteMode::Queued { queue, .. } => queue.push(entry).map(|()| Ticket::completed()),
        }
    }

    /// From now on [`Self::begin`] never waits for a disk: with `sync`, a separate thread writes each
    /// record in its own transaction.
    pub fn never_block(&self) {
        if let WriteMode::Direct(direct) = &self.0 {
            direct.start_background();
        }
    }

    /// Waits until everything submitted so far is on disk.
    ///
    /// # Errors
    /// It is not. The writer still retries records that were queued without a waiting submitter.
    pub fn flush(&self) -> Result<(), AuditError> {
        match &self.0 {
            WriteMode::Direct(direct) => direct.flush(),
            WriteMode::Queued { queue, .. } => queue.flush().wait(),
        }
    }

    /// The durability of a submitted record.
    #[must_use]
    pub const fn durability(&self) -> Durability {
        match &self.0 {
            WriteMode::Direct(_) => Durability::Sync,
            WriteMode::Queued {
                waited_for: true, ..
            } => Durability::Group,
            WriteMode::Queued { .. } => Durability::Async,
        }
    }

    /// Sets the maximum size of the store in bytes; without it the size is unlimited. The writer does not
    /// write to a store that is larger.
    pub fn set_quota(&self, bytes: u64) {
        self.1.set(bytes);
    }

    /// How much of its quota the store uses.
    #[must_use]
    pub fn usage(&self) -> StoreUsage {
        self.1.usage()
    }

    /// The status of the writer.
    #[must_use]
    pub fn health(&self) -> AuditHealth {
        match &self.0 {
            WriteMode::Direct(direct) => direct.health(),
            WriteMode::Queued { queue, .. } => queue.health(),
        }
    }

    /// Writes the queued records, and ends.
    ///
    /// # Errors
    /// Some records could not be written and are lost.
    pub fn close(mut self) -> Result<(), AuditError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), AuditError> {
        let (queue, thread) = match &mut self.0 {
            WriteMode::Direct(direct) => return direct.end(),
            WriteMode::Queued { queue, thread, .. } => (queue, thread),
        };
        queue.close();
        let Some(thread) = thread.take() else {
            return Ok(());
        };
        thread.join().unwrap_or(Err(AuditError::Closed))
    }
}

impl<E: IntoRecord> Drop for AuditWriter<E> {
    fn drop(&mut self) {
        // `drop` cannot report an error; `close` does.
        drop(self.end());
    }
}
