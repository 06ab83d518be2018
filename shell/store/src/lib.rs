//! Stores baselines, approvals, sightings, alerts, their deliveries and audit records, in one
//! SQLite file by default.
//!
//! The store makes no decisions: it returns what was stored, and it stores each change completely
//! or not at all.

mod alert;
mod audit;
mod audit_query;
mod backup;
mod baseline;
mod create_file;
mod delivery;
mod error;
mod file_id;
mod migrations;
mod open_stores;
mod pins_revision;
mod server;
mod sighting;
mod store;

pub use alert::{Alert, AlertFilter, AlertNovelty, AlertStatus, NewAlert};
pub use audit::{AuditHead, PruneRange, PrunedRecords, RecordAppender, RecordRow};
pub use audit_query::{CountBy, RecordCount, RecordFilter};
pub use backup::CopyProgress;
pub use baseline::{
    Approval, ApprovedChange, Baseline, BaselineOrigin, NewBaseline, StoredDefinition,
    ToolwatchHashes,
};
pub use delivery::{
    Delivery, DeliveryFilter, DeliveryStatus, LastDelivery, PendingDelivery, StoredAttempt,
};
pub use error::StoreError;
pub use file_id::{FileId, sidecar_files};
pub use pins_revision::PinsRevision;
pub use server::{Server, ServerId, ServerKey};
pub use sighting::{NewSighting, Sighting};
pub use store::Store;
