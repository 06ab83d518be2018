use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use toolwarden_guard::audit::RecordContent;
use toolwarden_store::StoreError;

use super::audit_writer::{AuditHealth, IntoRecord};
use super::log_connection::LogConnection;
use super::record_batch::{BatchGuard, RecordBatch, SharedBatch, lock};
use super::ticket::AuditError;

/// The maximum number of records in one transaction, so that other processes get a turn.
const MAX_BATCH: usize = 4_096;

/// How long the writer waits for more records while no submitter waits for it. A submitter within this time
/// need not wake the writer, which costs far more than queueing a record. And one transaction of many
/// records costs far less than many transactions of one.
const BATCH_DELAY: Duration = Duration::from_millis(5);

/// How long the writer waits after a failure.
const RETRY_DELAY: Duration = Duration::from_millis(200);

/// The state that submitters and the writer share.
#[derive(Debug)]
pub(super) struct RecordQueue<E> {
    state: Mutex<QueueState<E>>,
    work_available: Condvar,
    capacity: usize,
    /// Whether submitters wait for their batch, and so get a failure themselves.
    submitters_wait: bool,
}

#[derive(Debug)]
struct QueueState<E> {
    /// The entries that the writer has not taken yet.
    entries: Vec<E>,
    /// The batch of these entries.
    batch: SharedBatch,
    /// The number of records that the writer has taken but not written.
    in_progress: usize,
    written: u64,
    /// Whether a submitter waits for the batch, even if it is empty.
    flush_requested: bool,
    /// Whether the writer must be woken.
    writer_asleep: bool,
    /// Whether the queue accepts no more entries.
    closed: bool,
    /// The current failure of the log.
    failure: Option<Arc<StoreError>>,
}

impl<E: IntoRecord> RecordQueue<E> {
    pub(super) fn new(capacity: usize, submitters_wait: bool) -> Self {
        Self {
            state: Mutex::new(QueueState {
                entries: Vec::new(),
                batch: SharedBatch::default(),
                in_progress: 0,
                written: 0,
                flush_requested: false,
                writer_asleep: false,
                closed: false,
                failure: None,
            }),
            work_available: Condvar::new(),
            capacity,
            submitters_wait,
        }
    }

    /// Queues an entry.
    pub(super) fn push(&self, entry: E) -> Result<(), AuditError> {
        self.enqueue(entry, |_| ())
    }

    /// Queues an entry, and returns its batch.
    pub(super) fn push_with_batch(&self, entry: E) -> Result<SharedBatch, AuditError> {
        self.enqueue(entry, Arc::clone)
    }

    fn enqueue<T>(&self, entry: E, then: impl FnOnce(&SharedBatch) -> T) -> Result<T, AuditError> {
        let mut status = lock(&self.state);
        if status.closed {
            return Err(AuditError::Closed);
        }
        // Waiting submitters get the failure from their own batch, which also triggers the retry.
        if !self.submitters_wait
            && let Some(source) = &status.failure
        {
            let source = Arc::clone(source);
            return Err(AuditError::Unwritable { source });
        }
        let capacity = self.capacity;
        if status.entries.len() + status.in_progress >= capacity {
            return Err(AuditError::Full { capacity });
        }
        status.entries.push(entry);
        let given = then(&status.batch);
        let asleep = std::mem::take(&mut status.writer_asleep);
        drop(status);
        if asleep {
            self.work_available.notify_one();
        }
        Ok(given)
    }

    /// The batch that settles when everything queued so far is written.
    pub(super) fn flush(&self) -> SharedBatch {
        let mut status = lock(&self.state);
        status.flush_requested = true;
        let batch = Arc::clone(&status.batch);
        if status.closed {
            batch.complete(Err(AuditError::Closed));
        }
        drop(status);
        self.work_available.notify_one();
        batch
    }

    /// Stops accepting entries; the writer ends after it has written the queued ones.
    pub(super) fn close(&self) {
        lock(&self.state).closed = true;
        self.work_available.notify_one();
    }

    pub(super) fn health(&self) -> AuditHealth {
        let status = lock(&self.state);
        AuditHealth {
            queued: status.entries.len() + status.in_progress,
            written: status.written,
            failure: status.failure.clone(),
        }
    }

    /// Writes until the queue is closed and empty.
    pub(super) fn run(&self, mut sink: LogConnection) -> Result<(), AuditError> {
        let _ended = CloseOnDrop(self);
        let mut entries: Vec<E> = Vec::new();
        let mut pending: Vec<RecordContent> = Vec::new();
        loop {
            let (batch, closed) = self.next_batch(&mut entries);
            let batch = BatchGuard(batch);
            pending.extend(entries.drain(..).map(IntoRecord::content));
            let written = self.write(&mut sink, &mut pending);
            batch.0.complete(written.clone());
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

    /// Waits for entries; returns the batch of the entries taken, and whether they are the last.
    fn next_batch(&self, entries: &mut Vec<E>) -> (SharedBatch, bool) {
        let mut status = lock(&self.state);
        let mut lingered = self.submitters_wait;
        loop {
            let retry = status.failure.is_some() && status.in_progress > 0;
            let has_work =
                !status.entries.is_empty() && (lingered || status.entries.len() >= MAX_BATCH);
            if status.closed || status.flush_requested || has_work && !retry {
                break;
            }
            if retry {
                status = self.pause(status, RETRY_DELAY);
                break;
            }
            if !lingered {
                status = self.pause(status, BATCH_DELAY);
                lingered = true;
                continue;
            }
            status.writer_asleep = true;
            let woken = self.work_available.wait(status);
            status = woken.unwrap_or_else(PoisonError::into_inner);
            status.writer_asleep = false;
        }
        std::mem::swap(&mut status.entries, entries);
        status.in_progress += entries.len();
        status.flush_requested = false;
        let closed = status.closed;
        let batch = std::mem::replace(&mut status.batch, Arc::new(RecordBatch::default()));
        (batch, closed)
    }

    fn pause<'s>(
        &self,
        status: std::sync::MutexGuard<'s, QueueState<E>>,
        time: Duration,
    ) -> std::sync::MutexGuard<'s, QueueState<E>> {
        let woken = self.work_available.wait_timeout(status, time);
        woken.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Writes the pending records. After a failure they stay pending, unless a submitter waits for them: it
    /// has got the failure, so they must not be written later.
    fn write(
        &self,
        sink: &mut LogConnection,
        pending: &mut Vec<RecordContent>,
    ) -> Result<(), AuditError> {
        let mut done = 0;
        let mut outcome = Ok(());
        for part in pending.chunks(MAX_BATCH) {
            let failure = sink.write(part).err().map(Arc::new);
            let mut status = lock(&self.state);
            status.failure.clone_from(&failure);
            if let Some(source) = failure {
                outcome = Err(AuditError::Unwritable { source });
                break;
            }
            status.written += part.len() as u64;
            status.in_progress -= part.len();
            drop(status);
            done += part.len();
        }
        pending.drain(..done);
        if outcome.is_err() && self.submitters_wait {
            lock(&self.state).in_progress -= pending.len();
            pending.clear();
        }
        outcome
    }
}

/// Closes the queue when the writer ends, even by a panic.
struct CloseOnDrop<'q, E>(&'q RecordQueue<E>);

impl<E> Drop for CloseOnDrop<'_, E> {
    fn drop(&mut self) {
        let mut status = lock(&self.0.state);
        status.closed = true;
        status.batch.complete(Err(AuditError::Closed));
    }
}
