//! A small MCP server whose tool drifts on command.
//!
//! It is a shop: tools search, refund and report orders. It speaks both eras over HTTP and over standard streams,
//! sends questions to its client, reports progress, and writes JSON in ways that no SDK would preserve. The demo
//! runs it, and so do the tests of the gateway, which also make it hang, die and forget its sessions.

mod client_questions;
mod deferred_work;
mod definitions;
mod dispatch;
mod events;
mod header_arguments;
mod http;
mod initialize;
mod messages;
mod orders;
mod request;
mod server;
mod shop;
mod stateless;
mod stdio;
mod tool_pages;
mod traffic;

#[cfg(test)]
mod tests;

pub use definitions::{drifted_tools, tools};
pub use server::DemoServer;
pub use shop::{SessionMode, Shop, ShopOptions, SupportedEras};
pub use stdio::serve_stdio;
pub use traffic::DemoTraffic;
