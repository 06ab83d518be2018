//! Every wire shape of a tool definition: what it is, what it means, how to say it in another
//! shape, and exactly what is lost on the way.
//!
//! ```
//! use serde_json::json;
//! use toolwarden_canon::{Source, canonicalize};
//!
//! let document = json!({"name": "read_file", "description": "Read a file", "input_schema": {"type": "object"}});
//! let read = canonicalize(document, Source::Detect)?;
//! assert_eq!(read.tools[0].tool.hints.action, "read");
//! # Ok::<(), toolwarden_canon::TooDeep>(())
//! ```

pub mod reply;
pub mod request;

mod canonicalize;
mod container;
mod detect;
mod dialect;
mod emit;
mod formats;
mod hints;
mod keys;
mod schema;

pub use canonicalize::{
    Canonicalized, CanonicalizedTool, Source, TooDeep, Warning, canonicalize, canonicalize_item,
};
pub use container::{Container, Item, split};
pub use detect::{Detection, Score, detect};
pub use dialect::{
    Demand, Dialect, DialectTable, Facts, Finding, InvalidTable, Level, RequestLimits,
    UnknownDialect, conform, conform_by, lint, lint_by,
};
pub use emit::{
    Claim, Edit, Emission, Emitter, Kind, NameRule, Names, NotPortable, Originals, RenamedTool,
    SchemaSlot, Severity, Target, Unaccounted, UnknownTarget, emit, native,
};
pub use formats::{ParseError, definition_pointer};
pub use hints::sounds_destructive;

/// The examples of the documentation, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/canon.md")]
pub mod documentation {}
