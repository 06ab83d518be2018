//! The hashes and files of the toolwatch program, read so that its users can move over.
//!
//! Nothing of ours rests on these hashes: they tell whether a definition is the one that program
//! pinned.

mod files;
mod python;

pub use files::{FileProblem, InvalidFile, OldAlert, OldFingerprint, read_alerts, read_baselines};
pub use python::{ResponsePattern, schema_hash};
