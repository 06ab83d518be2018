//! A raw JSON-RPC client for MCP servers that keeps every key of what they send.
//!
//! Results are returned as the text the server wrote: key order, number text and members that
//! no SDK knows survive byte for byte. Both protocol eras are spoken (the `initialize`
//! handshake up to 2025-11-25 and the stateless requests of 2026-07-28), over stdio and over
//! HTTP. The crate decides nothing about tools and prints nothing.

mod endpoint;
mod error;
mod limits;

mod message;
mod protocol;

mod correlate;
mod transport;

mod negotiate;
mod wire;

mod client;
mod listing;
mod param_headers;
mod server;

pub use client::Client;
pub use endpoint::{Command, Endpoint, InvalidEndpoint, Url};
pub use error::{Counted, Evidence, McpError, ProtocolFault};
pub use limits::Limits;
pub use listing::Listing;
pub use message::{InvalidMessage, Message, RpcError};
pub use protocol::Era;
pub use server::ServerDescription;
