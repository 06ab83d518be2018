//! Published servers behind the gateway, and published clients before it.

mod clients;
mod direct;
mod inspector;
pub(crate) mod program;
mod rmcp;
mod servers;
