//! Over real programs and sockets.

mod breaker;
mod counter;
mod failures;
mod http_server;
mod links;
mod observer;
mod programs;
mod sessions;
mod settings;
mod turns;
