//! Every record in a transaction of its own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;

use toolwarden_guard::audit::Content;

use super::batch::{SharedBatch, Taken, lock};
use super::sink::Sink;
use super::writer::{AuditError, Health, Recordable};

/// Writes on the thread of the submitter; and, for submitters that must not be held up, on a thread
/// of its own, which is started when the first of them comes.
#[derive(Debug)]
pub(super) struct Direct<E> {
    desk: Arc<Mutex<Desk>>,
    /// None inside where no thread could be started.
    aside: OnceLock<Option<Aside<E>>>,
    capacity: usize,
}

/// Whoever holds it writes.
#[derive(Debug)]
struct Desk {
    sink: Sink,
    health: Health,
}

#[derive(Debug)]
struct Aside<E> {
    /// None once it is closed.
    work: Option<SyncSender<Work<E>>>,
    waiting: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

/// A record to write, or none where somebody only waits for those before; and who waits.
#[derive(Debug)]
struct Work<E> {
    entry: Option<E>,
    batch: SharedBatch,
}

impl<E: Recordable> Direct<E> {
    pub(super) fn new(sink: Sink, capacity: usize) -> Self {
        let health = Health::default();
        Self {
            desk: Arc::new(Mutex::new(Desk { sink, health })),
            aside: OnceLock::new(),
            capacity,
        }
    }

    /// Writes a record.
    pub(super) fn write(&self, entry: E) -> Result<(), AuditError> {
        lock(&self.desk).write(entry.content())
    }

    /// From now on records nobody waits for here are written by a thread of their own.
    pub(super) fn go_aside(&self) {
        self.aside.get_or_init(|| {
            let (work, given) = sync_channel(self.capacity);
            let waiting = Arc::new(AtomicUsize::new(0));
            let desk = Arc::clone(&self.desk);
            let left = Arc::clone(&waiting);
            let thread = std::thread::Builder::new().name("audit".to_owned());
            let thread = thread.spawn(move || run(&desk, given, &left)).ok()?;
            Some(Aside {
                work: Some(work),
                waiting,
                thread: Some(thread),
            })
        });
    }

    /// Hands a record to the thread, or writes it where there is none; gives what becomes of it where
    /// that is not known yet.
    pub(super) fn begin(&self, entry: E) -> Result<Option<SharedBatch>, AuditError> {
        match self.aside.get().and_then(Option::as_ref) {
            None => self.write(entry).map(|()| None),
            Some(aside) => aside.push(entry, self.capacity).map(Some),
        }
    }

    /// Waits until everything handed over is written.
    pub(super) fn flush(&self) -> Result<(), AuditError> {
        match self.aside.get().and_then(Option::as_ref) {
            None => Ok(()),
            Some(aside) => aside.mark()?.wait(),
        }
    }

    pub(super) fn health(&self) -> Health {
        let waiting = self.aside.get().and_then(Option::as_ref);
        let queued = waiting.map_or(0, |it| it.waiting.load(Ordering::Acquire));
        let health = lock(&self.desk).health.clone();
        Health { queued, ..health }
    }

    pub(super) fn end(&mut self) -> Result<(), AuditError> {
        let Some(Some(aside)) = self.aside.get_mut() else {
            return Ok(());
        };
        aside.work = None;
        let Some(thread) = aside.thread.take() else {
            return Ok(());
        };
        thread.join().map_err(|_| AuditError::Closed)
    }
}

impl<E> Aside<E> {
    fn push(&self, entry: E, capacity: usize) -> Result<SharedBatch, AuditError> {
        let work = self.work.as_ref().ok_or(AuditError::Closed)?;
        let (given, batch) = Work::new(Some(entry));
        self.waiting.fetch_add(1, Ordering::AcqRel);
        let refused = match work.try_send(given) {
            Ok(()) => return Ok(batch),
            Err(TrySendError::Full(_)) => AuditError::Full { capacity },
            Err(TrySendError::Disconnected(_)) => AuditError::Closed,
        };
        self.waiting.fetch_sub(1, Ordering::AcqRel);
        Err(refused)
    }

    fn mark(&self) -> Result<SharedBatch, AuditError> {
        let work = self.work.as_ref().ok_or(AuditError::Closed)?;
        let (given, batch) = Work::new(None);
        work.send(given).map_err(|_| AuditError::Closed)?;
        Ok(batch)
    }
}

impl<E> Work<E> {
    fn new(entry: Option<E>) -> (Self, SharedBatch) {
        let batch = SharedBatch::default();
        let shared = Arc::clone(&batch);
        (Self { entry, batch }, shared)
    }
}

fn run<E: Recordable>(desk: &Mutex<Desk>, given: Receiver<Work<E>>, waiting: &AtomicUsize) {
    for Work { entry, batch } in given {
        let batch = Taken(batch);
        let Some(entry) = entry else {
            batch.0.settle(Ok(()));
            continue;
        };
        let written = lock(desk).write(entry.content());
        waiting.fetch_sub(1, Ordering::AcqRel);
        batch.0.settle(written);
    }
}

impl Desk {
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
