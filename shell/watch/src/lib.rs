//! Watching tools: their definitions and results, compared with pins in a store or a lock file.
//!
//! Times are arguments, so that the caller owns the clock.

mod alert;
mod approval;
mod approve;
mod backup;
mod check_transaction;
pub mod inline;
pub mod json_documents;
mod judge;
mod lock;
mod lock_lines;
mod observation;
mod observed_results;
mod pin;
mod pins;
mod record;
mod result_pooling;
mod schedule;
mod server_name;
mod tool_parts;
mod toolwatch_import;
mod watch_config;

pub use alert::summary_line;
pub use approval::{ApprovedItem, PendingApproval};
pub use approve::{ApprovalSelection, ApproveError, approve, pending_approvals};
pub use backup::{BackupError, BackupLogSummary, BackupOptions, BackupReport, BackupStage, backup};
pub use check_transaction::{CheckSource, CompletedCheck, check, run_check};
pub use judge::{CheckOutcome, ResultSampling, ServerListing, toolwatch_mutation};
pub use lock::{LOCK_SCHEMA, LockError, LockFile, LockedServer, LockedTool};
pub use lock_lines::LockLines;
pub use observation::{
    INSTRUCTIONS, Observation, UnreadableDefinition, align_formats, differ_beyond_common_form,
    is_definition,
};
pub use observed_results::ObservedResults;
pub use pin::{PinReport, PinReportTool, pin};
pub use pins::{Pin, Pins, PinsError};
pub use record::{RaisedAlert, RecordOptions, RecordOutcome};
pub use result_pooling::{ResultPooling, add_recent_results};
pub use schedule::Schedule;
pub use server_name::server_name;
pub use toolwarden_settings::SampleCall;
pub use toolwatch_import::{ImportError, ImportReport, ToolwatchState, import_toolwatch};
pub use watch_config::{
    ServerFileKind, ToolListSource, WatchConfig, WatchConfigError, WatchedServer,
};

/// The server name for tools that come from files and belong to no server.
pub const LOCAL_SERVER: &str = "local";

/// The default scope.
pub const DEFAULT_SCOPE: &str = "default";

/// The default version label, as in the toolwatch document.
pub const UNKNOWN_VERSION: &str = "unknown";
