use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::writer::AuditError;

/// Records that are written together: those who wait for it learn what became of it.
#[derive(Debug, Default)]
pub(super) struct Batch {
    outcome: Mutex<Option<Result<(), AuditError>>>,
    done: Condvar,
}

impl Batch {
    /// Waits until the batch is written or is not.
    pub(super) fn wait(&self) -> Result<(), AuditError> {
        let mut outcome = lock(&self.outcome);
        loop {
            if let Some(outcome) = &*outcome {
                return outcome.clone();
            }
            let woken = self.done.wait(outcome);
            outcome = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Tells everybody who waits; the first word counts.
    pub(super) fn settle(&self, outcome: Result<(), AuditError>) {
        lock(&self.outcome).get_or_insert(outcome);
        self.done.notify_all();
    }
}

/// What a batch is shared as.
pub(super) type SharedBatch = Arc<Batch>;

/// Nothing behind these locks is left half changed, so a panic elsewhere does no harm.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
