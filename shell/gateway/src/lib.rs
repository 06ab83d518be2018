//! An MCP gateway: it checks every tool against its pin, and authorizes and records every call before it forwards it.

pub mod api;
pub mod identity;
pub mod listener;
pub mod metrics;
mod request_bytes;
pub mod upstream;

pub mod catalog;
pub mod conversation;
pub mod http;
pub mod router;
pub mod runtime;
pub mod traces;

mod agent_info;
mod blocking;
mod gateway;
mod in_flight;
mod pending_inputs;
mod request_context;
mod response_stream;
pub mod stdio;
pub mod uri_template;

pub use agent_info::Agent;
pub use gateway::Gateway;
pub use request_context::{NoHeaders, RequestContext, RequestHeaders};
pub use response_stream::AgentSender;
