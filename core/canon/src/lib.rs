//! Reads every wire format of a tool definition, converts it to other formats, and reports exactly
//! what each conversion loses.
//!
//! ```
//! use serde_json::json;
//! use toolwarden_canon::{FormatChoice, canonicalize};
//!
//! let document = json!({"name": "read_file", "description": "Read a file", "input_schema": {"type": "object"}});
//! let read = canonicalize(document, FormatChoice::Detect)?;
//! assert_eq!(read.tools[0].tool.hints.action, "read");
//! # Ok::<(), toolwarden_canon::TooDeep>(())
//! ```

pub mod client_behaviour;
pub mod reply;
pub mod request;

mod canonicalize;
mod container;
mod detect;
mod dialect;
mod edit;
mod emit;
mod format_keys;
mod formats;
mod hints;
mod name_rule;
mod schema;
mod unread;

pub use canonicalize::{
    CanonicalizedDocument, CanonicalizedTool, FormatChoice, TooDeep, Warning, canonicalize,
    canonicalize_item, canonicalize_shared, canonicalize_with_values,
};
pub use container::{BesideTools, Container, ListFacts, TextItem, UnreadPart, list_facts, split};
pub use detect::{Detection, Score, detect};
pub use dialect::{
    Dialect, DialectFacts, DialectFinding, DialectLevel, DialectTable, InvalidTable, RequestLimits,
    RewriteMode, UnknownDialect, conform, conform_to_facts, lint, lint_with_facts,
};
pub use edit::{Edit, EditKind, LossKind};
pub use emit::{
    EditMismatch, Emission, EmitTarget, Emitter, EquivalenceClaim, NameAllocator, NotPortable,
    OriginalSchemas, RenamedTool, SchemaSlot, UnknownTarget, emit, emit_native,
};
pub use formats::{ParseError, definition_pointer, uncarried_members};
pub use hints::sounds_destructive;
pub use name_rule::NameRule;
pub use unread::{SchemaProblem, UnreadSchema, unread_schemas};
