//! An MCP gateway: every call of every agent is pinned, decided and recorded on its way.

pub mod api;
pub mod demo;
pub mod identity;
mod in_flight;
pub mod listener;
pub mod metrics;
pub mod upstream;

pub mod catalogue;
pub mod conversation;
pub mod http;
pub mod relay;
pub mod runtime;
pub mod traces;

mod agent;
mod blocking;
mod counting;
mod gateway;
mod outlet;
pub mod stdio;
mod uri_template;

pub use agent::Agent;
pub use gateway::Gateway;
pub use outlet::Outlet;
