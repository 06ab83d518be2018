//! The guard in use: policy files, sessions, rate windows, the log, and callables behind it all.
//!
//! An agent loop behind it:
//!
//! ```
#![doc = include_str!("../../examples/agent_loop.rs")]
//! ```
//!
//! A function behind it, by [`Interceptor`]:
//!
//! ```
//! use std::path::Path;
//! use toolwarden_warden::guard::{Clock, Interceptor, LiveGuard, LoadedPolicy, Log};
//!
//! let policy = b"tools: {add: {rate_limit: 100, input_schema: {required: [a, b]}}}";
//! let policy = LoadedPolicy::of_text(policy, Path::new("policy"), Path::new("."))?;
//! let guard = LiveGuard::new(policy.guard, Log::recent(), Clock::default())?;
//! let add = |a: i64, b: i64| a.checked_add(b).ok_or("too large");
//! let add = Interceptor::new(guard).wrap("add", "agent-1", add).parameters(["a", "b"]);
//! assert_eq!(add.call((2, 3))?, 5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod audit;
pub mod limiter;

mod approval;
mod body;
mod clock;
mod conversation;
mod deciding;
mod decisions;
mod denial_rate;
mod discover;
mod entry;
mod features;
mod file;
mod interceptor;
mod listings;
mod live;
mod log;
mod looking;
mod metrics;
mod misuse;
mod open_call;
mod record_size;
mod remedy;
mod roles;
mod session_groups;
mod sessions;
mod soon;

pub use clock::{Clock, SetClock};
pub use conversation::RequestLog;
pub use entry::{Ending, Entry, EntryId, Event};
pub use features::UsedFeature;
pub use file::{LoadedPolicy, PolicyFileError};
pub use interceptor::{Callable, Intercepted, Interceptor, Positional, Wrapped};
pub use live::{AlreadyRegistered, Call, LiveGuard, Present, UNKNOWN_PRINCIPAL};
pub use log::{Log, RecentLog};
pub use looking::{Explanation, SessionSummary};
pub use metrics::Metrics;
pub use misuse::{MisuseAlert, MisuseRule, MisuseRules};
pub use open_call::{OpenCall, OutputRejected};
pub use roles::CallerClaims;
pub use sessions::{Session, Transition};
pub use soon::{Deciding, Settling};
