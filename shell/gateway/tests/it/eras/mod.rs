//! Agents and servers of different eras.

mod calls;
mod envelopes;
mod notifications;
mod server_requests;
