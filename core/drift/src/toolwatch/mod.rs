//! The hashes and files of the toolwatch program, so that its users can migrate.
//!
//! Toolwarden does not rely on these hashes. They only show whether a definition is the one that
//! toolwatch pinned.

mod files;
mod python;

pub use files::{
    InvalidToolwatchFile, ToolwatchAlert, ToolwatchFileProblem, ToolwatchFingerprint, read_alerts,
    read_baselines,
};
pub use python::{ResponsePattern, schema_hash};
