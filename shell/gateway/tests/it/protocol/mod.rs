//! The messages between agents, the gateway and servers.

mod http;
mod legacy;
mod programs;
mod raw;
mod resume;
mod streams;
