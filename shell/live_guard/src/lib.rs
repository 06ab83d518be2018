//! The guard in use: policy files, sessions, rate windows, the log, and callables behind it all.
//!
//! An agent loop behind it:
//!
//! ```
#![doc = include_str!("../examples/agent_loop.rs")]
//! ```
//!
//! A function behind it, by [`Interceptor`]:
//!
//! ```
//! use std::path::Path;
//! use toolwarden_live_guard::{Clock, Interceptor, LiveGuard, LoadedPolicy, AuditLog};
//!
//! let policy = b"tools: {add: {rate_limit: 100, input_schema: {required: [a, b]}}}";
//! let policy = LoadedPolicy::of_text(policy, Path::new("policy"), Path::new("."))?;
//! let guard = LiveGuard::new(policy.guard, AuditLog::recent(), Clock::default())?;
//! let add = |a: i64, b: i64| a.checked_add(b).ok_or("too large");
//! let add = Interceptor::new(guard).wrap("add", "agent-1", add).parameters(["a", "b"]);
//! assert_eq!(add.call((2, 3))?, 5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod audit;
pub mod limiter;

mod active_policy;
mod async_decide;
mod audit_log;
mod availability_cache;
mod call;
mod caller_claims;
mod clock;
mod decide;
mod decision_counters;
mod denial_counts;
mod denial_summary;
mod discover;
mod entry_policy;
mod features;
mod guard_state;
mod interceptor;
mod live_guard;
mod log_entry;
mod metrics;
mod misuse;
mod open_call;
mod permitted_call;
mod policy_file;
mod query;
mod record_body;
mod record_size;
mod remedy;
mod session_groups;
mod session_lifecycle;
mod session_table;
mod single_use_state;
mod used_feature;

pub use async_decide::{PendingDecision, PendingOutcome};
pub use audit_log::{AuditLog, RecentLog};
pub use call::{Call, UNKNOWN_PRINCIPAL};
pub use caller_claims::CallerClaims;
pub use clock::{Clock, ManualClock};
pub use interceptor::{
    Callable, GuardedCallable, InterceptError, Interceptor, PositionalArguments,
};
pub use live_guard::{AlreadyRegistered, LiveGuard, OnDuplicate};
pub use log_entry::{AuditEvent, CallOutcome, EntryId, LogEntry};
pub use metrics::GuardMetrics;
pub use misuse::{MisuseAlert, MisuseRule, MisuseRules};
pub use open_call::{OpenCall, OutputRejected};
pub use permitted_call::{
    CallParams, CallParamsError, MAX_INPUT_ROUNDS, PermitError, PermittedCall, SentCall, with_input,
};
pub use policy_file::{LoadedPolicy, PolicyFileError};
pub use query::Explanation;
pub use session_lifecycle::RequestLog;
pub use session_table::{Session, SessionSummary, Transition};
pub use used_feature::UsedFeature;
