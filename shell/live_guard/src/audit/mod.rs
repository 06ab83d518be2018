//! The durable audit log: records are written in batches, hash-chained, verified, and removed when they
//! expire. All of it needs the feature `store`, except what the log in memory shares with it.

#[cfg(feature = "store")]
mod approval_records;
#[cfg(feature = "store")]
mod audit_writer;
#[cfg(feature = "store")]
mod direct_writer;
#[cfg(feature = "store")]
mod log_connection;
#[cfg(feature = "store")]
mod prune;
#[cfg_attr(not(feature = "store"), path = "no_batches.rs")]
mod record_batch;
#[cfg(feature = "store")]
mod record_queue;
#[cfg(feature = "store")]
mod record_row;
#[cfg(feature = "store")]
mod store_quota;
mod ticket;
#[cfg(feature = "store")]
mod verification_report;
#[cfg(feature = "store")]
mod verify;

#[cfg(feature = "store")]
pub use approval_records::record_approval;
#[cfg(feature = "store")]
pub use audit_writer::{AuditHealth, AuditOptions, AuditWriter, IntoRecord};
#[cfg(feature = "store")]
pub use prune::prune;
#[cfg(feature = "store")]
pub use store_quota::StoreUsage;
pub use ticket::{AuditError, Ticket};
#[cfg(feature = "store")]
pub use verification_report::describe_fault;
#[cfg(feature = "store")]
pub use verify::{Verification, verify};
