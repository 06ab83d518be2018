//! Agents and servers of different eras.

mod calls;
mod envelopes;
mod news;
mod questions;
