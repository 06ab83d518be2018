//! A raw JSON-RPC client for MCP that keeps every key a server sends, and the building blocks of a
//! server.
//!
//! Results are returned as the text the server wrote: key order, number text and members that no
//! SDK knows survive byte for byte. The crate speaks both protocol eras (the `initialize` handshake
//! up to 2025-11-25 and the stateless requests of 2026-07-28), over stdio and over HTTP. [`McpClient`]
//! makes requests on its own behalf. [`ServerConnection`] makes requests on behalf of agents and passes on the
//! notifications and requests that the server sends. The crate makes no decisions about tools and
//! prints nothing.

mod connection_limits;
mod endpoint;
mod endpoint_secrets;
mod environment;
mod error;

mod batch;
pub mod error_codes;
pub mod protocol;
mod rpc_message;

mod client_info;
mod param_headers;
pub mod serve;

pub mod adopted_processes;
mod close_signal;
mod mcp_request;
mod message_handler;
mod message_rate;
pub mod orphan_reaper;
mod pending_requests;
mod transport;

mod negotiation;
mod rpc_channel;
mod server_description;

mod client;
mod connection;
mod tool_list;

pub use client::McpClient;
pub use client_info::ClientInfo;
pub use connection::ServerConnection;
pub use connection_limits::ConnectionLimits;
pub use endpoint::{Command, Endpoint, InvalidEndpoint, ServerUrl};
pub use environment::EnvInheritance;
pub use error::{LimitedItem, McpError, ProtocolFault, ServerDiagnostics};
pub use mcp_request::McpRequest;
pub use message_handler::{MessageHandler, ServerMessage};
pub use param_headers::ParamHeaders;
pub use protocol::{Era, EraPreference};
pub use rpc_message::{InvalidMessage, RpcError, RpcMessage};
pub use server_description::ServerDescription;
pub use tool_list::ToolList;
pub use toolwarden_model::json::RawObject;
pub use toolwarden_secrets::{
    Secrets, is_secret_name, mask_secrets, register_secrets, secret_arguments, secret_url_parts,
};
