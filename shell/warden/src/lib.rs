//! The application: the only place that puts store, files and core together.
//!
//! Times are arguments, so that whoever calls owns the clock.

mod alert;
mod approve;
mod backup;
mod comparison;
mod config;
pub mod document;
pub mod guard;
mod import;
pub mod inline;
mod judge;
mod lock;
mod lock_lines;
mod naming;
pub mod notify;
mod observation;
mod parts;
mod pin;
mod pins;
mod pool;
mod record;
mod results;
mod schedule;
pub mod settings;

pub use alert::first_words;
pub use approve::{ApproveError, Approved, Selection, Waiting, approve, waiting};
pub use backup::{BackedUp, BackedUpLog, BackupError, BackupOptions, BackupStage, backup};
pub use comparison::ComparisonTime;
pub use config::{ConfigError, Reached, WatchConfig, WatchedCall, WatchedServer};
pub use import::{ImportError, Imported, OldState, import};
pub use judge::{Judged, Listing, Sampling, judge, mutation};
pub use lock::{LOCK_SCHEMA, LockError, LockFile, LockedServer, LockedTool};
pub use lock_lines::LockLines;
pub use naming::server_name;
pub use observation::{
    INSTRUCTIONS, Observation, UnreadableDefinition, is_definition, share_words,
};
pub use pin::{Pinned, PinnedTool, pin};
pub use pins::{Pin, Pins, PinsError};
pub use pool::{Gathering, pool};
pub use record::{RaisedAlert, Recorded, Recording, check, record};
pub use results::Results;
pub use schedule::Schedule;

/// The name of the server of tools that come from files and belong to none.
pub const LOCAL: &str = "local";

/// The scope where nobody names one.
pub const DEFAULT_SCOPE: &str = "default";

/// The version label where nobody gives one, as in the toolwatch document.
pub const UNKNOWN_VERSION: &str = "unknown";
