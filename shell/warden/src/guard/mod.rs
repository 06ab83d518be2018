//! The guard in use: policy files, sessions, rate windows, the log, and callables behind it all.
//!

pub mod audit;
pub mod limiter;

mod clock;
mod conversation;
mod deciding;
mod entry;
mod file;
mod interceptor;
mod live;
mod log;
mod metrics;
mod open_call;
mod sessions;

pub use clock::{Clock, SetClock};
pub use conversation::RequestLog;
pub use entry::{Ending, Entry, EntryId, Event};
pub use file::{LoadedPolicy, PolicyFileError};
pub use interceptor::{ArgumentsProblem, Callable, Intercepted, Interceptor, Positional, Wrapped};
pub use live::{Call, LiveGuard};
pub use log::{Log, RecentLog};
pub use metrics::Metrics;
pub use open_call::{OpenCall, OutputRejected};
pub use sessions::{Session, Transition};
