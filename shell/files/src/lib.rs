//! The files that people write: settings, policies, suites, definitions.

mod error;
mod read;

pub use error::FileError;
pub use read::{as_document, as_text, read_text};
