use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use super::ticket::AuditError;

/// Records that are written together; waiting submitters get the result of the write.
#[derive(Debug, Default)]
pub(super) struct RecordBatch {
    state: Mutex<BatchState>,
    done: Condvar,
}

#[derive(Debug, Default)]
struct BatchState {
    outcome: Option<Result<(), AuditError>>,
    /// Waiting tasks, each in its own slot.
    wakers: Vec<Waker>,
}

impl RecordBatch {
    /// Waits until the batch was written or failed.
    pub(super) fn wait(&self) -> Result<(), AuditError> {
        let mut progress = lock(&self.state);
        loop {
            if let Some(outcome) = &progress.outcome {
                return outcome.clone();
            }
            let woken = self.done.wait(progress);
            progress = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The result of the batch, or registers the task to be woken. `place` is the task's slot: `None` until
    /// it has waited once.
    pub(super) fn poll(
        &self,
        place: &mut Option<usize>,
        task: &Waker,
    ) -> Poll<Result<(), AuditError>> {
        let mut progress = lock(&self.state);
        if let Some(outcome) = &progress.outcome {
            return Poll::Ready(outcome.clone());
        }
        let tasks = &mut progress.wakers;
        match place.and_then(|place| tasks.get_mut(place)) {
            Some(known) => known.clone_from(task),
            None => {
                *place = Some(tasks.len());
                tasks.push(task.clone());
            }
        }
        Poll::Pending
    }

    /// Wakes all waiting submitters with the result; only the first result counts.
    pub(super) fn complete(&self, outcome: Result<(), AuditError>) {
        let mut progress = lock(&self.state);
        progress.outcome.get_or_insert(outcome);
        let tasks = std::mem::take(&mut progress.wakers);
        drop(progress);
        self.done.notify_all();
        for task in tasks {
            task.wake();
        }
    }
}

/// A shared batch.
pub(super) type SharedBatch = Arc<RecordBatch>;

/// Fails a batch that a writer has taken and not settled, even if the writer panics, so that its submitters
/// wake up.
pub(super) struct BatchGuard(pub(super) SharedBatch);

impl Drop for BatchGuard {
    fn drop(&mut self) {
        self.0.complete(Err(AuditError::Closed));
    }
}

/// No change under these locks is left half done, so a panic in another thread does no harm.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
