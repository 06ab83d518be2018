//! Decides calls by a policy: who may call which tool, in which state, how often and with which arguments.
//!
//! [`LoadedPolicy`] reads a policy, [`LiveGuard`] decides. An allowed call is an [`OpenCall`], with which the program
//! reports how the call ended; success moves the session to its next state. [`Interceptor`] does all of that around a
//! function. [`AuditLog::recent`] keeps the latest entries in memory; the feature `store` adds a log on disk.
//!
//! ```
//! use std::path::Path;
//! use std::sync::Arc;
//!
//! use serde_json::json;
//! use toolwarden::guard::{AuditLog, Call, Clock, LiveGuard, LoadedPolicy};
//!
//! let policy = b"tools: {search: {}, pay: {available_in_states: [searched]}}";
//! let policy = LoadedPolicy::of_text(policy, Path::new("policy"), Path::new("."))?;
//! let guard = LiveGuard::new(policy.guard, AuditLog::recent(), Clock::default())?;
//! let call = Call { tool: "search", arguments: Arc::new(json!({})), ..Call::default() };
//! let open = guard.decide(&call)?;
//! open.report_success(&json!({"found": 3}))?;
//!
//! let denial = guard.decide(&Call { tool: "pay", ..call }).unwrap_err();
//! assert_eq!(denial.code.as_str(), "filtered_by_state");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use toolwarden_guard::{
    Availability, CallDestination, Decision, Denial, Durability, Feature, FeatureKind, Guard,
    LintFinding, Policy, PolicyError, PolicyWarning, ReasonCode, RequestedGroups, ToolPolicy,
    ValueFault, lint,
};
#[cfg(feature = "store")]
pub use toolwarden_live_guard::audit;
pub use toolwarden_live_guard::{
    AlreadyRegistered, AuditEvent, AuditLog, Call, CallOutcome, CallParams, CallParamsError,
    Callable, CallerClaims, Clock, EntryId, Explanation, GuardMetrics, GuardedCallable,
    InterceptError, Interceptor, LiveGuard, LoadedPolicy, LogEntry, ManualClock, MisuseAlert,
    MisuseRule, MisuseRules, OnDuplicate, OpenCall, OutputRejected, PendingDecision,
    PendingOutcome, PermitError, PermittedCall, PolicyFileError, PositionalArguments, RecentLog,
    SentCall, Session, SessionSummary, Transition, UNKNOWN_PRINCIPAL,
};
pub use toolwarden_model::{GroupName, StateName};
