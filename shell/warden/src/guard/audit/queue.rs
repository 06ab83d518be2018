use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use toolwarden_guard::audit::Content;
use toolwarden_store::StoreError;

use super::batch::{Batch, SharedBatch, Taken, lock};
use super::sink::Sink;
use super::writer::{AuditError, Health, Recordable};

/// The most records of one transaction, so that other processes get their turn.
const MOST: usize = 4_096;

/// How long the writer waits for more where nobody waits for it. Whoever submits in this time need not
/// wake it, which costs far more than to queue a record; and a transaction of many records costs far less
/// than many of one.
const LINGER: Duration = Duration::from_millis(5);

/// How long the writer waits after a failure.
const RETRY: Duration = Duration::from_millis(200);

/// What submitters and the writer share.
#[derive(Debug)]
pub(super) struct Queue<E> {
    status: Mutex<Status<E>>,
    work: Condvar,
    capacity: usize,
    /// Whether submitters wait, and so learn of a failure themselves.
    waited_for: bool,
}

#[derive(Debug)]
struct Status<E> {
    /// What the writer has not taken yet.
    entries: Vec<E>,
    /// What becomes of these entries.
    batch: SharedBatch,
    /// How many records the writer has taken and not written.
    taken: usize,
    written: u64,
    /// Somebody waits for the batch, be it empty.
    wanted: bool,
    /// The writer must be woken.
    asleep: bool,
    /// No more entries are taken.
    closed: bool,
    /// Why the log cannot be written at present.
    failure: Option<Arc<StoreError>>,
}

impl<E: Recordable> Queue<E> {
    pub(super) fn new(capacity: usize, waited_for: bool) -> Self {
        Self {
            status: Mutex::new(Status {
                entries: Vec::new(),
                batch: SharedBatch::default(),
                taken: 0,
                written: 0,
                wanted: false,
                asleep: false,
                closed: false,
                failure: None,
            }),
            work: Condvar::new(),
            capacity,
            waited_for,
        }
    }

    /// Queues an entry.
    pub(super) fn push(&self, entry: E) -> Result<(), AuditError> {
        self.add(entry, |_| ())
    }

    /// Queues an entry, and gives what becomes of it.
    pub(super) fn push_waiting(&self, entry: E) -> Result<SharedBatch, AuditError> {
        self.add(entry, Arc::clone)
    }

    fn add<T>(&self, entry: E, then: impl FnOnce(&SharedBatch) -> T) -> Result<T, AuditError> {
        let mut status = lock(&self.status);
        if status.closed {
            return Err(AuditError::Closed);
        }
        // Those who wait learn it from their own batch, which is also how it is tried again.
        if !self.waited_for
            && let Some(source) = &status.failure
        {
            let source = Arc::clone(source);
            return Err(AuditError::Unwritable { source });
        }
        let capacity = self.capacity;
        if status.entries.len() + status.taken >= capacity {
            return Err(AuditError::Full { capacity });
        }
        status.entries.push(entry);
        let given = then(&status.batch);
        let asleep = std::mem::take(&mut status.asleep);
        drop(status);
        if asleep {
            self.work.notify_one();
        }
        Ok(given)
    }

    /// The batch that is settled when everything queued so far is.
    pub(super) fn flush(&self) -> SharedBatch {
        let mut status = lock(&self.status);
        status.wanted = true;
        let batch = Arc::clone(&status.batch);
        if status.closed {
            batch.settle(Err(AuditError::Closed));
        }
        drop(status);
        self.work.notify_one();
        batch
    }

    /// Takes no more entries; the writer ends when it has written what it has.
    pub(super) fn close(&self) {
        lock(&self.status).closed = true;
        self.work.notify_one();
    }

    pub(super) fn health(&self) -> Health {
        let status = lock(&self.status);
        Health {
            queued: status.entries.len() + status.taken,
            written: status.written,
            failure: status.failure.clone(),
        }
    }

    /// Writes until the queue is closed and empty.
    pub(super) fn run(&self, mut sink: Sink) -> Result<(), AuditError> {
        let _ended = Ended(self);
        let mut entries: Vec<E> = Vec::new();
        let mut pending: Vec<Content> = Vec::new();
        loop {
            let (batch, closed) = self.take(&mut entries);
            let batch = Taken(batch);
            pending.extend(entries.drain(..).map(Recordable::content));
            let written = self.write(&mut sink, &mut pending);
            batch.0.settle(written.clone());
            match written {
                Err(AuditError::Unwritable { source }) if closed && !pending.is_empty() => {
                    let records = pending.len();
                    return Err(AuditError::Lost { records, source });
                }
                _ if closed && pending.is_empty() => return Ok(()),
                _ => {}
            }
        }
    }

    /// Waits for something to do; gives the batch of the entries taken, and whether they are the
    /// last.
    fn take(&self, entries: &mut Vec<E>) -> (SharedBatch, bool) {
        let mut status = lock(&self.status);
        let mut lingered = self.waited_for;
        loop {
            let retry = status.failure.is_some() && status.taken > 0;
            let has_work = !status.entries.is_empty() && (lingered || status.entries.len() >= MOST);
            if status.closed || status.wanted || has_work && !retry {
                break;
            }
            if retry {
                status = self.pause(status, RETRY);
                break;
            }
            if !lingered {
                status = self.pause(status, LINGER);
                lingered = true;
                continue;
            }
            status.asleep = true;
            let woken = self.work.wait(status);
            status = woken.unwrap_or_else(PoisonError::into_inner);
            status.asleep = false;
        }
        std::mem::swap(&mut status.entries, entries);
        status.taken += entries.len();
        status.wanted = false;
        let closed = status.closed;
        let batch = std::mem::replace(&mut status.batch, Arc::new(Batch::default()));
        (batch, closed)
    }

    fn pause<'s>(
        &self,
        status: std::sync::MutexGuard<'s, Status<E>>,
        time: Duration,
    ) -> std::sync::MutexGuard<'s, Status<E>> {
        let woken = self.work.wait_timeout(status, time);
        woken.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Writes what is pending. After a failure it stays pending, unless somebody waits for it: then
    /// they know that it was not written, and it must not be.
    fn write(&self, sink: &mut Sink, pending: &mut Vec<Content>) -> Result<(), AuditError> {
        let mut done = 0;
        let mut outcome = Ok(());
        for part in pending.chunks(MOST) {
            let failure = sink.write(part).err().map(Arc::new);
            let mut status = lock(&self.status);
            status.failure.clone_from(&failure);
            if let Some(source) = failure {
                outcome = Err(AuditError::Unwritable { source });
                break;
            }
            status.written += part.len() as u64;
            status.taken -= part.len();
            drop(status);
            done += part.len();
        }
        pending.drain(..done);
        if outcome.is_err() && self.waited_for {
            lock(&self.status).taken -= pending.len();
            pending.clear();
        }
        outcome
    }
}

/// Takes no more entries when the writer ends, even by a panic.
struct Ended<'q, E>(&'q Queue<E>);

impl<E> Drop for Ended<'_, E> {
    fn drop(&mut self) {
        let mut status = lock(&self.0.status);
        status.closed = true;
        status.batch.settle(Err(AuditError::Closed));
    }
}
