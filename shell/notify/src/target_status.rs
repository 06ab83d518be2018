//! How the deliveries to a target went.

use std::sync::Arc;

use jiff::Timestamp;

use super::error::DeliveryError;

/// The delivery status of one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetStatus {
    /// Its name.
    pub name: String,
    /// Its channel: `webhook`, `slack`, `feishu`, `dingtalk`, `wecom` or `smtp`.
    pub channel: &'static str,
    /// Its host; the rest of the address may be a secret.
    pub host: String,
    /// The number of pending notices.
    pub pending: usize,
    /// The number of delivered notices since the start.
    pub delivered: u64,
    /// The number of failed notices since the start.
    pub failed: u64,
    /// The time of the last delivery.
    pub last_success: Option<Timestamp>,
    /// The last failed attempt.
    pub last_error: Option<LastDeliveryError>,
    /// When the next attempt is due, after a failed one.
    pub next_attempt: Option<Timestamp>,
}

/// A failed attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastDeliveryError {
    /// The time.
    pub at: Timestamp,
    /// The error, without secrets.
    pub error: String,
}

/// A delivery that failed for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedDelivery {
    /// The name of the target.
    pub target: String,
    /// The id of the notice.
    pub notice: String,
    /// The number of attempts.
    pub tries: u32,
    /// Why the last attempt failed.
    pub error: DeliveryError,
}

/// A callback for deliveries that were given up.
pub type FailedDeliveryHook = Arc<dyn Fn(&FailedDelivery) + Send + Sync>;

/// The outcome of an attempt, as a worker reports it.
#[derive(Debug)]
pub(super) struct AttemptReport {
    pub(super) target: String,
    pub(super) notice: String,
    pub(super) tries: u32,
    pub(super) at: Timestamp,
    pub(super) outcome: DeliveryOutcome,
}

#[derive(Debug)]
pub(super) enum DeliveryOutcome {
    Delivered,
    /// It is retried at this time.
    Retry(DeliveryError, Timestamp),
    Failed(DeliveryError),
}
