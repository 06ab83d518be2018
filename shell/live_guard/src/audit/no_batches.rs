//! Stands in for `record_batch` where no store is built in: a log in memory has no batches to wait for.

use std::sync::Arc;
use std::task::{Poll, Waker};

use super::ticket::AuditError;

/// A batch that never exists.
#[derive(Debug)]
pub(super) enum NoBatch {}

/// Shared like a real batch, so that tickets behave alike in both builds.
pub(super) type SharedBatch = Arc<NoBatch>;

impl NoBatch {
    pub(super) const fn wait(&self) -> Result<(), AuditError> {
        match *self {}
    }

    pub(super) const fn poll(
        &self,
        _place: &mut Option<usize>,
        _task: &Waker,
    ) -> Poll<Result<(), AuditError>> {
        match *self {}
    }
}
