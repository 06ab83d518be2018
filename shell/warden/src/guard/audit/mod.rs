//! The durable audit log: records are written in batches, tied to each other, verified and removed
//! when they are old.

mod administration;
mod batch;
mod direct;
mod prune;
mod queue;
mod quota;
mod row;
mod sink;
mod told;
mod verify;
mod writer;

pub(in crate::guard) use administration::ADMINISTRATION;
pub(crate) use administration::record_approval;
pub use prune::prune;
pub use quota::StoreUsage;
pub use told::fault_meaning;
pub use verify::{Verification, verify};
pub use writer::{AuditError, AuditOptions, AuditWriter, Health, Recordable, Ticket};
