//! The files that people write: settings, policies, suites, definitions.

mod error;
mod open;
mod read;

pub use error::FileError;
pub use open::{Opened, open, read_bytes, read_to_string};
pub use read::{as_document, as_text, read_text};
