//! A small MCP server whose tool drifts on command.
//!
//! It is a shop: orders are searched, refunded and reported. It speaks both eras over HTTP and over
//! standard streams, asks its client back, tells progress, and writes what no SDK would keep. The
//! demo runs it, and so do the tests of the gateway, which also let it hang, die and forget its
//! sessions.

mod answer;
mod asking;
mod definitions;
mod events;
mod http;
mod marks;
mod offer;
mod opening;
mod orders;
mod page;
mod seen;
mod server;
mod shop;
mod stateless;
mod stdio;
mod work;

#[cfg(test)]
mod tests;

pub use definitions::{drifted_tools, tools};
pub use seen::Seen;
pub use server::DemoServer;
pub use shop::{Eras, Sessions, Shop, ShopOptions};
pub use stdio::serve_stdio;
