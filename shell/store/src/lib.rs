//! Keeps baselines, approvals, sightings, alerts, their deliveries and audit records, in one SQLite file by default.
//!
//! The store never decides: it hands out what was kept and keeps what it is given, whole or not at
//! all.

mod alert;
mod audit;
mod audit_query;
mod backup;
mod baseline;
mod create;
mod delivery;
mod error;
mod in_use;
mod migrations;
mod revision;
mod server;
mod sighting;
mod store;

pub use alert::{Alert, AlertFilter, AlertStatus, NewAlert, Raised};
pub use audit::{Appender, AuditHead, Cut, RecordRow, Removal};
pub use audit_query::{CountBy, RecordCount, RecordFilter};
pub use backup::CopyProgress;
pub use baseline::{Approval, ApprovedChange, Baseline, Kept, NewBaseline, OldHashes, Origin};
pub use delivery::{Delivery, DeliveryFilter, DeliveryStatus, LastDelivery, PendingDelivery, Try};
pub use error::StoreError;
pub use revision::PinsRevision;
pub use server::{Server, ServerId, ServerKey};
pub use sighting::{NewSighting, Sighting};
pub use store::{Place, Store, companions};
