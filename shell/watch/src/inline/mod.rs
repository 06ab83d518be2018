//! Watching inside the gateway: it compares lists with their pins before agents see them, and results feed
//! the shape of their tool. None of this runs on the task of a call.
//!
//! One thread owns the store, another reads results, and a few compare definitions; callers wait for an
//! answer over a channel.

mod alert;
mod apply_policy;
mod comparison_pool;
mod cross_server;
mod error;
mod inline_watch;
mod list_check;
mod observed;
mod options;
mod parsed_list;
mod result_check;
mod result_findings;
mod result_worker;
mod store_thread;
mod strip_hidden;

pub use alert::{ResultFinding, WatchAlert, WatchCounters};
pub use apply_policy::is_withheld_on_first_use;
pub use error::WatchError;
pub use inline_watch::{
    ApprovalRequest, InlineWatch, PinnedDefinition, ServerSummary, ToolHistory,
};
pub use observed::{ChangeSummary, ListCheck, ReceivedList, ToolAction, ToolFinding};
pub use options::InlineOptions;
pub use strip_hidden::strip_hidden;
