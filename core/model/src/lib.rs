//! The shared types of Toolwarden.
//!
//! Everything here is a value: nothing reads a file, a clock or the environment. The other crates
//! exchange data in these types only.

pub mod document;
pub mod event_stream;
pub mod json;
pub mod keywords;
pub mod reply;

mod change;
mod definition;
mod did_you_mean;
mod draft;
mod fingerprint;
mod format;
mod hints;
mod names;
mod security;
mod severity;
mod shared_text;
mod small_map;
mod tool;
mod tool_document;
mod verdict;

pub use change::{Change, ChangeClass, ChangeEvidence, ChangeId, ChangeKind, summarize_changes};
pub use definition::Definition;
pub use did_you_mean::did_you_mean;
pub use draft::Draft;
pub use fingerprint::{Fingerprint, InvalidFingerprint};
pub use format::{Format, FormatFamily, UnknownFormat};
pub use hints::{CostEstimate, Domain, Evidence, Hints, HintsEvidence};
pub use names::{ExposedName, GroupName, OwnName, ServerName, StateName};
pub use security::{DataClassification, PiiHandling, Security};
pub use severity::Severity;
pub use shared_text::SharedText;
pub use small_map::SmallMap;
pub use tool::{AbsentParts, Extensions, KeyOrder, Tool};
pub use tool_document::{InvalidTool, ToolProblem};
pub use verdict::Verdict;
