//! Writes every record in its own transaction.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;

use toolwarden_guard::audit::RecordContent;

use super::audit_writer::{AuditHealth, IntoRecord};
use super::log_connection::LogConnection;
use super::record_batch::{BatchGuard, SharedBatch, lock};
use super::ticket::AuditError;

/// Writes on the submitter's thread. For submitters that must not block, it writes on its own thread, which
/// it starts for the first of them.
#[derive(Debug)]
pub(super) struct DirectWriter<E> {
    state: Arc<Mutex<WriterState>>,
    /// Holds `None` if the thread could not be started.
    background: OnceLock<Option<BackgroundWriter<E>>>,
    capacity: usize,
}

/// The thread that holds this lock writes.
#[derive(Debug)]
struct WriterState {
    sink: LogConnection,
    health: AuditHealth,
}

#[derive(Debug)]
struct BackgroundWriter<E> {
    /// `None` after it is closed.
    jobs: Option<SyncSender<WriteJob<E>>>,
    waiting: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

/// A record to write, or `None` if a submitter only waits for earlier records; and the batch to settle.
#[derive(Debug)]
struct WriteJob<E> {
    entry: Option<E>,
    batch: SharedBatch,
}

impl<E: IntoRecord> DirectWriter<E> {
    pub(super) fn new(sink: LogConnection, capacity: usize) -> Self {
        let health = AuditHealth::default();
        Self {
            state: Arc::new(Mutex::new(WriterState { sink, health })),
            background: OnceLock::new(),
            capacity,
        }
    }

    /// Writes a record.
    pub(super) fn write(&self, entry: E) -> Result<(), AuditError> {
        lock(&self.state).write(entry.content())
    }

    /// From now on, a separate thread writes the records for which no submitter waits here.
    pub(super) fn start_background(&self) {
        self.background.get_or_init(|| {
            let (work, given) = sync_channel(self.capacity);
            let waiting = Arc::new(AtomicUsize::new(0));
            let desk = Arc::clone(&self.state);
            let left = Arc::clone(&waiting);
            let thread = std::thread::Builder::new().name("audit".to_owned());
            let thread = thread.spawn(move || run(&desk, given, &left)).ok()?;
            Some(BackgroundWriter {
                jobs: Some(work),
                waiting,
                thread: Some(thread),
            })
        });
    }

    /// Hands a record to the thread, or writes it here if there is no thread; returns the pending batch if
    /// the result is not known yet.
    pub(super) fn begin(&self, entry: E) -> Result<Option<SharedBatch>, AuditError> {
        match self.background.get().and_then(Option::as_ref) {
            None => self.write(entry).map(|()| None),
            Some(aside) => aside.push(entry, self.capacity).map(Some),
        }
    }

    /// Waits until everything handed to the thread is written.
    pub(super) fn flush(&self) -> Result<(), AuditError> {
        match self.background.get().and_then(Option::as_ref) {
            None => Ok(()),
            Some(aside) => aside.push_marker()?.wait(),
        }
    }

    pub(super) fn health(&self) -> AuditHealth {
        let waiting = self.background.get().and_then(Option::as_ref);
        let queued = waiting.map_or(0, |it| it.waiting.load(Ordering::Acquire));
        let health = lock(&self.state).health.clone();
        AuditHealth { queued, ..health }
    }

    pub(super) fn end(&mut self) -> Result<(), AuditError> {
        let Some(Some(aside)) = self.background.get_mut() else {
            return Ok(());
        };
        aside.jobs = None;
        let Some(thread) = aside.thread.take() else {
            return Ok(());
        };
        thread.join().map_err(|_| AuditError::Closed)
    }
}

impl<E> BackgroundWriter<E> {
    fn push(&self, entry: E, capacity: usize) -> Result<SharedBatch, AuditError> {
        let work = self.jobs.as_ref().ok_or(AuditError::Closed)?;
        let (given, batch) = WriteJob::new(Some(entry));
        self.waiting.fetch_add(1, Ordering::AcqRel);
        let refused = match work.try_send(given) {
            Ok(()) => return Ok(batch),
            Err(TrySendError::Full(_)) => AuditError::Full { capacity },
            Err(TrySendError::Disconnected(_)) => AuditError::Closed,
        };
        self.waiting.fetch_sub(1, Ordering::AcqRel);
        Err(refused)
    }

    fn push_marker(&self) -> Result<SharedBatch, AuditError> {
        let work = self.jobs.as_ref().ok_or(AuditError::Closed)?;
        let (given, batch) = WriteJob::new(None);
        work.send(given).map_err(|_| AuditError::Closed)?;
        Ok(batch)
    }
}

impl<E> WriteJob<E> {
    fn new(entry: Option<E>) -> (Self, SharedBatch) {
        let batch = SharedBatch::default();
        let shared = Arc::clone(&batch);
        (Self { entry, batch }, shared)
    }
}

fn run<E: IntoRecord>(
    desk: &Mutex<WriterState>,
    given: Receiver<WriteJob<E>>,
    waiting: &AtomicUsize,
) {
    for WriteJob { entry, batch } in given {
        let batch = BatchGuard(batch);
        let Some(entry) = entry else {
            batch.0.complete(Ok(()));
            continue;
        };
        let written = lock(desk).write(entry.content());
        waiting.fetch_sub(1, Ordering::AcqRel);
        batch.0.complete(written);
    }
}

impl WriterState {
    fn write(&mut self, content: RecordContent) -> Result<(), AuditError> {
        let failure = self.sink.write(&[content]).err().map(Arc::new);
        self.health.failure.clone_from(&failure);
        if let Some(source) = failure {
            return Err(AuditError::Unwritable { source });
        }
        self.health.written += 1;
        Ok(())
    }
}
