//! The servers behind the gateway, each with a life of its own.
//!
//! An [`Upstream`] is one configured server. It opens connections when somebody needs them, opens
//! them again when they end, bounds what is under way, and leaves a failing server alone for a while.
//! Nothing is shared between two of them, so that one that hangs never delays another.

mod asking;
mod backoff;
mod breaker;
mod error;
mod face;
mod hearing;
mod held;
mod keeper;
mod life;
mod opening;
mod pool;
mod principals;
mod request;
mod server;
mod status;
mod task;

pub use asking::{OnExpired, UpstreamAsking, UpstreamCalling};
pub use error::{Busy, UpstreamError};
pub use face::main_face;
pub use hearing::{Hearing, LinkKey, UpstreamChange};
pub use held::HeldLink;
pub use server::Upstream;
pub use status::{BreakerStatus, Health, LastError, UpstreamStatus};

#[cfg(test)]
mod tests;
