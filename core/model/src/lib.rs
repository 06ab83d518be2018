//! The words of Toolwarden as types.
//!
//! Everything here is a value: nothing reads a file, a clock or the environment. The other crates
//! speak to each other in these types, and only in these.

pub mod document;
pub mod event_stream;
pub mod json;
pub mod keywords;
pub mod reply;

mod definition;
mod draft;
mod fingerprint;
mod format;
mod hints;
mod security;
mod small_map;
mod suggest;
mod tool;
mod tool_document;

pub use definition::Definition;
pub use draft::Draft;
pub use fingerprint::{Fingerprint, InvalidFingerprint};
pub use format::{Family, Format, UnknownFormat};
pub use hints::{CostEstimate, Domain, Evidence, Hints, HintsEvidence};
pub use security::{DataClassification, PiiHandling, Security};
pub use small_map::SmallMap;
pub use suggest::closest;
pub use tool::{Absent, Extensions, Layout, Tool};
pub use tool_document::{InvalidTool, Problem};
