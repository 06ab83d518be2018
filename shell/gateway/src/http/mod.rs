//! The HTTP endpoints for agents and people.

mod channel_body;
mod event_stream;
mod groups;
mod legacy;
mod mcp;
mod request_body;
mod revocation;
mod router;
mod started_reply;
mod stateless;

pub(crate) use request_body::{RequestBodyError, receive_body};
pub(crate) use router::json;
pub use router::{HttpFrontend, HttpService, router};
