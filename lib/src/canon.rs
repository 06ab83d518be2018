//! Tool definitions of every wire format: detect, read, convert and lint.
//!
//! [`canonicalize`] reads a document, whatever it is: one definition, a request body, a `tools/list` response, an
//! OpenAPI document. [`emit`] writes a tool for another provider, and lists every difference that this makes.
//!
//! ```
//! use serde_json::json;
//! use toolwarden::canon::{EmitTarget, FormatChoice, canonicalize, emit};
//!
//! let document = json!({"name": "read_file", "input_schema": {"type": "object"}});
//! let read = canonicalize(document, FormatChoice::Detect)?;
//! let tool = read.tools[0].tool.clone();
//! assert_eq!(tool.hints.action, "read");
//!
//! let emitted = emit(tool, EmitTarget::OpenaiChat)?;
//! assert_eq!(emitted.value["function"]["name"], "read_file");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use toolwarden_canon::{
    CanonicalizedDocument, CanonicalizedTool, Container, Detection, Dialect, DialectFinding,
    DialectLevel, Edit, EditKind, Emission, EmitTarget, Emitter, FormatChoice, LossKind,
    NotPortable, ParseError, RewriteMode, Score, TextItem, TooDeep, UnknownDialect, UnknownTarget,
    Warning, canonicalize, canonicalize_item, conform, detect, emit, lint, reply, request, split,
};
pub use toolwarden_model::{
    Definition, Format, FormatFamily, Hints, Security, SharedText, Tool, UnknownFormat,
};

/// The examples of the guide, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/canon.md")]
pub mod documentation {}
