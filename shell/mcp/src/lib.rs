//! Raw JSON-RPC for MCP: a client that keeps every key of what servers send, and the parts of a
//! server.
//!
//! Results are returned as the text the server wrote: key order, number text and members that
//! no SDK knows survive byte for byte. Both protocol eras are spoken (the `initialize`
//! handshake up to 2025-11-25 and the stateless requests of 2026-07-28), over stdio and over
//! HTTP. [`Client`] asks for itself; [`Link`] asks for others and passes on what the server sends
//! by itself. The crate decides nothing about tools and prints nothing.

mod endpoint;
mod environment;
mod error;
mod limits;

mod batch;
pub mod codes;
mod members;
mod message;
pub mod protocol;

mod face;
mod param_headers;
pub mod serve;

mod audience;
mod correlate;
mod ending;
mod flood;
pub mod orphans;
pub mod reaper;
mod secrets;
mod transport;

mod negotiate;
mod server;
mod wire;

mod client;
mod link;
mod listing;

pub use audience::{Audience, FromServer};
pub use client::Client;
pub use endpoint::{Command, Endpoint, InvalidEndpoint, Url};
pub use environment::Inherit;
pub use error::{Counted, Evidence, McpError, ProtocolFault};
pub use face::Face;
pub use limits::Limits;
pub use link::{Link, LinkAsking};
pub use listing::Listing;
pub use members::Members;
pub use message::{InvalidMessage, Message, RpcError};
pub use param_headers::ParamHeaders;
pub use protocol::{Era, EraPreference};
pub use secrets::{
    Secrets, masked, remember_secrets, secret_arguments, secret_parts, suggests_secret,
};
pub use server::ServerDescription;
