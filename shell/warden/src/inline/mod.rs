//! Watching inside the gateway: lists are held to their pins before anybody sees them, results feed the
//! shape of their tool, and nothing of it happens on the task of a call.
//!
//! One thread owns the store, another reads results, a few compare definitions; callers wait for an answer
//! over a channel.

mod check;
mod comparisons;
mod desk;
mod error;
mod findings;
mod flush;
mod hidden;
mod list;
mod neighbours;
mod notice;
mod options;
mod seen;
mod treat;
mod watch;
mod worker;

pub use error::WatchError;
pub use hidden::strip_hidden;
pub use notice::{Figures, RaisedNotice, ResultFinding};
pub use options::InlineOptions;
pub use seen::{ChangeSummary, Checked, SeenList, ToolFinding, Treatment};
pub use treat::is_suspicious_at_first_sight;
pub use watch::{Approving, History, InlineWatch, PinnedDefinition, ServerSummary};
