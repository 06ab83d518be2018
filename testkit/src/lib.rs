//! For tests only: real definitions and acceptance vectors that live beside the repository, and real
//! servers and providers.
//!
//! A clone without them still passes: each test that needs them asks here, and is told in a
//! printed line what it skips.

pub mod conformance;
mod corpus;
mod installed;
pub mod provider;
mod schemas;
mod shared;
mod versions;

pub use corpus::{Sample, definitions, mcp_servers};
pub use installed::{Registry, installed, skipped};
pub use schemas::schemas;
pub use shared::{shared, vectors};
pub use versions::{Release, consecutive_releases};
