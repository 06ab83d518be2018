//! Over real programs and sockets.

mod breaker;
mod counter;
mod failures;
mod hearing;
mod links;
mod programs;
mod sessions;
mod settings;
mod site;
mod turns;
