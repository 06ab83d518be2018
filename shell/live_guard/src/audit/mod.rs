//! The durable audit log: records are written in batches, hash-chained, verified, and removed when they
//! expire.

mod approval_records;
mod audit_writer;
mod direct_writer;
mod log_connection;
mod prune;
mod record_batch;
mod record_queue;
mod record_row;
mod store_quota;
mod verification_report;
mod verify;

pub(crate) use approval_records::ADMINISTRATION;
pub use approval_records::record_approval;
pub use audit_writer::{AuditError, AuditHealth, AuditOptions, AuditWriter, Recordable, Ticket};
pub use prune::prune;
pub use store_quota::StoreUsage;
pub use verification_report::describe_fault;
pub use verify::{Verification, verify};
