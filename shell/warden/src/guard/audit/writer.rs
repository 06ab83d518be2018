use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use thiserror::Error;
use toolwarden_guard::Durability;
use toolwarden_guard::audit::Content;
use toolwarden_store::StoreError;

use super::batch::{SharedBatch, lock};
use super::queue::Queue;
use super::sink::Sink;

/// Something that is recorded. It becomes a record on the thread of the writer, so that whoever
/// submits it does not pay for that.
pub trait Recordable: Send + 'static {
    /// The record.
    fn content(self) -> Content;
}

impl Recordable for Content {
    fn content(self) -> Content {
        self
    }
}

/// How a writer works.
#[derive(Clone, Copy, Debug)]
pub struct AuditOptions {
    /// What a submitted record has survived.
    pub durability: Durability,
    /// How many records may wait to be written.
    pub capacity: usize,
    /// How long to wait for other processes that hold the store.
    pub patience: Duration,
}

impl AuditOptions {
    /// With the usual limits.
    #[must_use]
    pub const fn new(durability: Durability) -> Self {
        Self {
            durability,
            capacity: 65_536,
            patience: Duration::from_secs(10),
        }
    }
}

/// Why a record is not, or not yet, in the log.
#[derive(Clone, Debug, Error)]
pub enum AuditError {
    /// Too many records wait to be written; this one is dropped.
    #[error("{capacity} audit records wait to be written already")]
    Full {
        /// How many may wait.
        capacity: usize,
    },
    /// The writer has ended.
    #[error("the audit log is closed")]
    Closed,
    /// The log cannot be written at present; this record is dropped.
    #[error("the audit log cannot be written")]
    Unwritable {
        /// Why.
        source: Arc<StoreError>,
    },
    /// The writer ended, and these records could not be written before.
    #[error("{records} audit records could not be written")]
    Lost {
        /// How many.
        records: usize,
        /// Why.
        source: Arc<StoreError>,
    },
}

/// How a writer is.
#[derive(Clone, Debug, Default)]
pub struct Health {
    /// How many records wait to be written.
    pub queued: usize,
    /// How many were written.
    pub written: u64,
    /// Why the last attempt to write failed; none if it did not.
    pub failure: Option<Arc<StoreError>>,
}

/// Tells what became of a record that is waited for later.
#[derive(Debug)]
#[must_use = "whether the record was written is only known after `wait`"]
pub struct Ticket(Option<SharedBatch>);

impl Ticket {
    /// Waits as long as the durability asks for.
    ///
    /// # Errors
    /// The record was not written.
    pub fn wait(self) -> Result<(), AuditError> {
        self.0.map_or(Ok(()), |batch| batch.wait())
    }
}

/// Writes records to the log of a store.
///
/// After a failure every submission is an error until writing works again. Records that were queued
/// without being waited for are kept and tried again; if the failure came after SQLite had written
/// them, they are then in the log twice. Dropping the writer writes what is queued;
/// [`Self::close`] also tells whether that worked.
#[derive(Debug)]
pub struct AuditWriter<E: Recordable>(Way<E>);

#[derive(Debug)]
enum Way<E: Recordable> {
    /// On the thread of the submitter.
    Direct(Box<Mutex<Direct>>),
    Queued {
        queue: Arc<Queue<E>>,
        waited_for: bool,
        thread: Option<JoinHandle<Result<(), AuditError>>>,
    },
}

#[derive(Debug)]
struct Direct {
    sink: Sink,
    health: Health,
}

impl<E: Recordable> AuditWriter<E> {
    /// Opens the store, and makes it where there is none.
    ///
    /// # Errors
    /// As for [`toolwarden_store::Store::open`], or no thread can be started.
    pub fn open(path: &Path, options: AuditOptions) -> Result<Self, StoreError> {
        let sink = Sink::open(path, options.patience)?;
        let waited_for = match options.durability {
            Durability::Sync => {
                let health = Health::default();
                let direct = Mutex::new(Direct { sink, health });
                return Ok(Self(Way::Direct(Box::new(direct))));
            }
            Durability::Group => true,
            Durability::Async => false,
        };
        let queue = Arc::new(Queue::new(options.capacity, waited_for));
        let shared = Arc::clone(&queue);
        let thread = std::thread::Builder::new().name("audit".to_owned());
        let thread = thread.spawn(move || shared.run(sink));
        let thread = thread.map_err(|source| StoreError::Open {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self(Way::Queued {
            queue,
            waited_for,
            thread: Some(thread),
        }))
    }

    /// Records something, and waits as long as the durability asks for.
    ///
    /// # Errors
    /// It is not recorded.
    pub fn submit(&self, entry: E) -> Result<(), AuditError> {
        match &self.0 {
            Way::Direct(direct) => lock(direct).write(entry.content()),
            Way::Queued {
                queue,
                waited_for: false,
                ..
            } => queue.push(entry),
            Way::Queued { queue, .. } => queue.push_waiting(entry)?.wait(),
        }
    }

    /// Records something and waits later, so that one thread can have many records written together.
    ///
    /// # Errors
    /// It is not recorded.
    pub fn begin(&self, entry: E) -> Result<Ticket, AuditError> {
        match &self.0 {
            Way::Queued {
                queue,
                waited_for: true,
                ..
            } => Ok(Ticket(Some(queue.push_waiting(entry)?))),
            _ => self.submit(entry).map(|()| Ticket(None)),
        }
    }

    /// Waits until everything submitted so far is on the disk.
    ///
    /// # Errors
    /// It is not; if it was queued without being waited for, it is still tried.
    pub fn flush(&self) -> Result<(), AuditError> {
        match &self.0 {
            Way::Direct(_) => Ok(()),
            Way::Queued { queue, .. } => queue.flush().wait(),
        }
    }

    /// What a submitted record has survived.
    #[must_use]
    pub const fn durability(&self) -> Durability {
        match &self.0 {
            Way::Direct(_) => Durability::Sync,
            Way::Queued {
                waited_for: true, ..
            } => Durability::Group,
            Way::Queued { .. } => Durability::Async,
        }
    }

    /// How it is.
    #[must_use]
    pub fn health(&self) -> Health {
        match &self.0 {
            Way::Direct(direct) => lock(direct).health.clone(),
            Way::Queued { queue, .. } => queue.health(),
        }
    }

    /// Writes what is queued, and ends.
    ///
    /// # Errors
    /// Something could not be written, and is lost.
    pub fn close(mut self) -> Result<(), AuditError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), AuditError> {
        let Way::Queued { queue, thread, .. } = &mut self.0 else {
            return Ok(());
        };
        queue.close();
        let Some(thread) = thread.take() else {
            return Ok(());
        };
        thread.join().unwrap_or(Err(AuditError::Closed))
    }
}

impl<E: Recordable> Drop for AuditWriter<E> {
    fn drop(&mut self) {
        // Nobody is left to be told; `close` tells.
        drop(self.end());
    }
}

impl Direct {
    fn write(&mut self, content: Content) -> Result<(), AuditError> {
        let failure = self.sink.write(&[content]).err().map(Arc::new);
        self.health.failure.clone_from(&failure);
        if let Some(source) = failure {
            return Err(AuditError::Unwritable { source });
        }
        self.health.written += 1;
        Ok(())
    }
}
