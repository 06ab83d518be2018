//! The messages to the thread that records deliveries.

use tokio::sync::oneshot;
use toolwarden_settings::AlertTarget;
use toolwarden_store::{Delivery, DeliveryFilter, StoreError};

use super::notice::Notice;
use super::target_status::{AttemptReport, TargetStatus};

/// A message to the thread.
#[derive(Debug)]
pub(super) enum DeliveryCommand {
    Deliver(Box<Notice>),
    RecordAttempt(AttemptReport),
    SetTargets(Vec<AlertTarget>),
    GetStatus(oneshot::Sender<DeliveryLogStatus>),
    ListDeliveries(
        DeliveryFilter,
        oneshot::Sender<Result<Vec<Delivery>, StoreError>>,
    ),
    /// A request to answer once everything sent before was handed to its targets.
    Flush(oneshot::Sender<()>),
    /// A request to end.
    Shutdown(oneshot::Sender<()>),
}

/// The state of the thread.
#[derive(Debug)]
pub(super) struct DeliveryLogStatus {
    pub(super) targets: Vec<TargetStatus>,
    pub(super) overflowed: u64,
    pub(super) repeated: u64,
    pub(super) store_error: Option<String>,
}
