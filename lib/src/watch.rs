//! Tools compared with their pins, in a store or in a lock file.
//!
//! An [`Observation`] is a tool as a server publishes it now. [`pin`] pins observations, [`check`] compares them with
//! the pins and records what changed, and [`approve`] accepts a change. Times are arguments.
//!
//! ```
//! use toolwarden::Format;
//! use toolwarden::watch::{Approval, Observation, ServerKey, ServerListing, Store, pin};
//!
//! let folder = tempfile::tempdir()?;
//! let store = Store::open(&folder.path().join("toolwarden.db"))?;
//! let shop = ServerKey { name: "shop".into(), scope: "default".into() };
//! let definition = r#"{"name": "refund", "inputSchema": {"type": "object"}}"#;
//! let listing = ServerListing {
//!     observed: vec![Observation::parse("refund", Format::Mcp, definition)?],
//!     is_complete: true,
//!     ..ServerListing::default()
//! };
//! let approval = Approval { by: "ada".into(), at: "2026-11-16T10:00:00Z".parse()?, why: None };
//! let report = pin(&store, &shop, &listing, true, "1", &approval)?;
//! assert_eq!(report.tools.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use toolwarden_store::{Approval, ServerKey, Store, StoreError};
pub use toolwarden_watch::{
    ApprovalSelection, ApproveError, ApprovedItem, BackupError, BackupOptions, BackupReport,
    CheckOutcome, CheckSource, CompletedCheck, DEFAULT_SCOPE, LockError, LockFile, LockedServer,
    LockedTool, Observation, ObservedResults, PendingApproval, Pin, PinReport, PinReportTool, Pins,
    PinsError, RaisedAlert, RecordOptions, RecordOutcome, ResultSampling, ServerListing,
    UnreadableDefinition, approve, backup, check, pending_approvals, pin, run_check,
};
