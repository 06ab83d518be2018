use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use super::writer::AuditError;

/// Records that are written together: those who wait for it learn what became of it.
#[derive(Debug, Default)]
pub(super) struct Batch {
    progress: Mutex<Progress>,
    done: Condvar,
}

#[derive(Debug, Default)]
struct Progress {
    outcome: Option<Result<(), AuditError>>,
    /// Tasks that wait, each in a place of its own.
    tasks: Vec<Waker>,
}

impl Batch {
    /// Waits until the batch is written or is not.
    pub(super) fn wait(&self) -> Result<(), AuditError> {
        let mut progress = lock(&self.progress);
        loop {
            if let Some(outcome) = &progress.outcome {
                return outcome.clone();
            }
            let woken = self.done.wait(progress);
            progress = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// What became of the batch, or a promise to wake the task. The place is the task's own: none
    /// until it has waited once.
    pub(super) fn poll(
        &self,
        place: &mut Option<usize>,
        task: &Waker,
    ) -> Poll<Result<(), AuditError>> {
        let mut progress = lock(&self.progress);
        if let Some(outcome) = &progress.outcome {
            return Poll::Ready(outcome.clone());
        }
        let tasks = &mut progress.tasks;
        match place.and_then(|place| tasks.get_mut(place)) {
            Some(known) => known.clone_from(task),
            None => {
                *place = Some(tasks.len());
                tasks.push(task.clone());
            }
        }
        Poll::Pending
    }

    /// Tells everybody who waits; the first word counts.
    pub(super) fn settle(&self, outcome: Result<(), AuditError>) {
        let mut progress = lock(&self.progress);
        progress.outcome.get_or_insert(outcome);
        let tasks = std::mem::take(&mut progress.tasks);
        drop(progress);
        self.done.notify_all();
        for task in tasks {
            task.wake();
        }
    }
}

/// What a batch is shared as.
pub(super) type SharedBatch = Arc<Batch>;

/// Frees whoever waits for a batch that a writer has taken, even if it panics.
pub(super) struct Taken(pub(super) SharedBatch);

impl Drop for Taken {
    fn drop(&mut self) {
        self.0.settle(Err(AuditError::Closed));
    }
}

/// Nothing behind these locks is left half changed, so a panic elsewhere does no harm.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
