//! The pending result of a record, and why a record is not in the log.

use std::future::Future;
use std::pin::Pin;
#[cfg(feature = "store")]
use std::sync::Arc;
use std::task::{Context, Poll};

use thiserror::Error;
#[cfg(feature = "store")]
use toolwarden_store::StoreError;

use super::record_batch::SharedBatch;

/// Why a record is not, or not yet, in the log.
#[derive(Clone, Debug, Error)]
pub enum AuditError {
    /// Too many records are queued; this one is dropped.
    #[error("{capacity} audit records are already queued")]
    Full {
        /// The maximum number of queued records.
        capacity: usize,
    },
    /// The writer has ended.
    #[error("the audit log is closed")]
    Closed,
    /// The log cannot currently be written; this record is dropped.
    #[cfg(feature = "store")]
    #[error("the audit log cannot be written")]
    Unwritable {
        /// Why.
        source: Arc<StoreError>,
    },
    /// The writer ended before it could write these records.
    #[cfg(feature = "store")]
    #[error("{records} audit records could not be written")]
    Lost {
        /// How many.
        records: usize,
        /// Why.
        source: Arc<StoreError>,
    },
}

/// The pending result of a record, to wait for later with [`Self::wait`] or as a future. Dropping the
/// ticket does not affect the record.
#[derive(Debug)]
#[must_use = "whether the record was written is only known after a wait"]
pub struct Ticket {
    /// `None` if there is nothing to wait for.
    batch: Option<SharedBatch>,
    /// The slot among those that wait for the batch; `None` before the first wait.
    waker_slot: Option<usize>,
}

impl Ticket {
    pub(super) const fn new(batch: Option<SharedBatch>) -> Self {
        Self {
            batch,
            waker_slot: None,
        }
    }

    /// The ticket of a record without a wait.
    pub(crate) const fn completed() -> Self {
        Self::new(None)
    }

    /// Waits as long as the durability requires.
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
        let Self {
            batch,
            waker_slot: place,
        } = self.get_mut();
        match batch {
            Some(batch) => batch.poll(place, context.waker()),
            None => Poll::Ready(Ok(())),
        }
    }
}
