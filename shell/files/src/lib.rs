//! Reads the files that people write: settings, policies, suites, definitions.

mod error;
mod open;
mod read;

pub use error::FileError;
pub use open::{InputFile, open, read_bytes, read_to_string};
pub use read::{decode_text, parse_document, read_text};
