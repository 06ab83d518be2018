//! The endpoints agents and people speak to.

mod body;
mod front;
mod groups;
mod legacy;
mod mcp;
mod receive;
mod revocation;
mod stateless;
mod stream;

pub(crate) use front::json;
pub use front::{Endpoints, Front, router};
pub(crate) use receive::{Unreceived, receive};
