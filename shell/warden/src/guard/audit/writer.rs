use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration;

use thiserror::Error;
use toolwarden_guard::Durability;
use toolwarden_guard::audit::Content;
use toolwarden_store::StoreError;

use super::batch::SharedBatch;
use super::direct::Direct;
use super::queue::Queue;
use super::quota::{Quota, StoreUsage};
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

/// Tells what became of a record that is waited for later, by [`Self::wait`] or as a future. One that
/// is dropped changes nothing for the record.
#[derive(Debug)]
#[must_use = "whether the record was written is only known after a wait"]
pub struct Ticket {
    /// None where there is nothing to wait for.
    batch: Option<SharedBatch>,
    /// The place among those who wait for the batch; none before the first wait.
    place: Option<usize>,
}

impl Ticket {
    const fn new(batch: Option<SharedBatch>) -> Self {
        Self { batch, place: None }
    }

    /// The ticket of a record that is not waited for.
    pub(in crate::guard) const fn settled() -> Self {
        Self::new(None)
    }

    /// Waits as long as the durability asks for.
    ///
    /// # Errors
    /// The record was not written.
    pub fn wait(self) -> Result<(), AuditError> {
        self.batch.map_or(Ok(()), |batch| batch.wait())
    }
}

impl Future for Ticket {
    type Output = Result<(), AuditError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { batch, place } = self.get_mut();
        match batch {
            Some(batch) => batch.poll(place, context.waker()),
            None => Poll::Ready(Ok(())),
        }
    }
}

/// Writes records to the log of a store.
///
/// After a failure every submission is an error until writing works again. Records that were queued
/// without being waited for are kept and tried again; if the failure came after SQLite had written
/// them, they are then in the log twice. Dropping the writer writes what is queued;
/// [`Self::close`] also tells whether that worked.
#[derive(Debug)]
pub struct AuditWriter<E: Recordable>(Way<E>, Arc<Quota>);

#[derive(Debug)]
enum Way<E: Recordable> {
    /// On the thread of the submitter, unless it must not be held up.
    Direct(Box<Direct<E>>),
    Queued {
        queue: Arc<Queue<E>>,
        waited_for: bool,
        thread: Option<JoinHandle<Result<(), AuditError>>>,
    },
}

impl<E: Recordable> AuditWriter<E> {
    /// Opens the store, and makes it where there is none.
    ///
    /// # Errors
    /// As for [`toolwarden_store::Store::open`], or no thread can be started.
    pub fn open(path: &Path, options: AuditOptions) -> Result<Self, StoreError> {
        let quota = Arc::<Quota>::default();
        let sink = Sink::open(path, options.patience, Arc::clone(&quota))?;
        let waited_for = match options.durability {
            Durability::Sync => {
                let direct = Direct::new(sink, options.capacity);
                return Ok(Self(Way::Direct(Box::new(direct)), quota));
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
        let way = Way::Queued {
            queue,
            waited_for,
            thread: Some(thread),
        };
        Ok(Self(way, quota))
    }

    /// Records something, and waits as long as the durability asks for.
    ///
    /// # Errors
    /// It is not recorded.
    pub fn submit(&self, entry: E) -> Result<(), AuditError> {
        match &self.0 {
            Way::Direct(direct) => direct.write(entry),
            Way::Queued {
                queue,
                waited_for: false,
                ..
            } => queue.push(entry),
            Way::Queued { queue, .. } => queue.push_waiting(entry)?.wait(),
        }
    }

    /// Records something and waits later, so that one thread can have many records written together.
    /// With `sync` the record is written here and now, unless [`Self::never_block`] was said.
    ///
    /// # Errors
    /// It is not recorded.
    pub fn begin(&self, entry: E) -> Result<Ticket, AuditError> {
        match &self.0 {
            Way::Direct(direct) => direct.begin(entry).map(Ticket::new),
            Way::Queued {
                queue,
                waited_for: true,
                ..
            } => Ok(Ticket::new(Some(queue.push_waiting(entry)?))),
            Way::Queued { queue, .. } => queue.push(entry).map(|()| Ticket::settled()),
        }
    }

    /// From now on [`Self::begin`] never waits for a disk: with `sync`, a thread of its own writes each
    /// record in a transaction of its own.
    pub fn never_block(&self) {
        if let Way::Direct(direct) = &self.0 {
            direct.go_aside();
        }
    }

    /// Waits until everything submitted so far is on the disk.
    ///
    /// # Errors
    /// It is not; if it was queued without being waited for, it is still tried.
    pub fn flush(&self) -> Result<(), AuditError> {
        match &self.0 {
            Way::Direct(direct) => direct.flush(),
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

    /// How many bytes the store may take; without it any number. Nothing is written to a store that takes more.
    pub fn set_quota(&self, bytes: u64) {
        self.1.set(bytes);
    }

    /// How much the store takes.
    #[must_use]
    pub fn usage(&self) -> StoreUsage {
        self.1.usage()
    }

    /// How it is.
    #[must_use]
    pub fn health(&self) -> Health {
        match &self.0 {
            Way::Direct(direct) => direct.health(),
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
        let (queue, thread) = match &mut self.0 {
            Way::Direct(direct) => return direct.end(),
            Way::Queued { queue, thread, .. } => (queue, thread),
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
