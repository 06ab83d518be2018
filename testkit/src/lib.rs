//! For tests only: real definitions and acceptance vectors that live beside the repository, and
//! real servers and providers.
//!
//! The tests pass in a clone without them: each test that needs them asks this crate, which prints
//! a line that says what is skipped.

pub mod conformance;
mod corpus;
mod packages;
pub mod provider;
mod releases;
mod schemas;
mod shared;

pub use corpus::{CorpusDefinition, corpus_definitions, mcp_servers};
pub use packages::{Registry, installed, report_skip};
pub use releases::{Release, consecutive_releases};
pub use schemas::schemas;
pub use shared::{read_vectors, shared_folder};
