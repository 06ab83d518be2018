//! The servers behind the gateway, each with its own connections and status.
//!
//! An [`Upstream`] is one configured server. It opens connections on demand, reopens them when they end, limits
//! the requests in flight, and stops sending requests to a failing server for a while. Two upstreams share
//! nothing, so a server that hangs never delays another.

mod backoff;
mod breaker;
mod client_info;
mod connect;
mod error;
mod lifecycle;
mod link_route;
mod observer;
mod open_link;
mod pool;
mod principal_limits;
mod reconnect;
mod send;
mod server;
mod status;
mod task;

pub use client_info::gateway_client_info;
pub use error::{BusyReason, UpstreamError};
pub use link_route::LinkRoute;
pub use observer::{LinkKey, UpstreamChange, UpstreamObserver};
pub use open_link::OpenLink;
pub(crate) use send::RpcResult;
pub use server::Upstream;
pub use status::{BreakerStatus, LastUpstreamError, UpstreamHealth, UpstreamStatus};

#[cfg(test)]
mod tests;
