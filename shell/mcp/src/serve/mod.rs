//! The side of a server, as pure functions: what to check in a request and how to write an answer.

pub mod answer;
pub mod events;
pub mod handshake;
pub mod ladder;
mod sent;

pub use sent::Sent;
