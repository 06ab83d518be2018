//! The server side, as pure functions: how to check a request and how to write a response.

pub mod encode;
mod received_header;
pub mod request_checks;
pub mod sse_event;
pub mod versions;

pub use received_header::ReceivedHeader;
