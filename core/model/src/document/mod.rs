//! YAML and JSON texts that users write, parsed into one value with the location of everything in
//! it.
//!
//! [`Document`] parses the text; [`DocumentReader`] reads the value and collects every mistake.

mod diagnostic;
mod duration;
mod reader;
mod scalar;
mod section;
mod yaml;

use thiserror::Error;

use crate::json::{self, Pointer, Position, Positions, Value};
use yaml::PositionTree;

pub use diagnostic::{Diagnostic, DiagnosticKind};
pub use duration::{InvalidDuration, parse_duration};
pub use reader::DocumentReader;
pub use section::{KeySpec, LocatedValue, Section};

/// A parsed YAML or JSON text.
#[derive(Clone, Debug)]
pub struct Document {
    /// The value, keys in written order, numbers with their written text.
    pub value: Value,
    positions: PositionIndex,
}

/// Why a text cannot be read as a document, and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{kind} at line {}, column {}", position.line, position.column)]
pub struct DocumentError {
    /// Where reading stopped.
    pub position: Position,
    /// What is wrong there.
    pub kind: DocumentErrorKind,
}

/// What is wrong with the text of a document.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DocumentErrorKind {
    /// The text contains only white space and comments.
    #[error("the document is empty")]
    Empty,
    /// A second document begins.
    #[error("a second document; keep one document per file")]
    SeveralDocuments,
    /// A key is written twice in one mapping.
    #[error("key `{key}` is given twice")]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// A key is a list, a mapping, an alias, a fraction or nothing.
    #[error("a key must be text, a whole number or a boolean; put it in quotes")]
    KeyNotText,
    /// A mapping uses a merge key.
    #[error("merge keys (`<<`) are not supported; repeat the entries or alias the whole mapping")]
    MergeKey,
    /// A tag is not one of the core schema.
    #[error("unknown tag `{tag}`")]
    UnknownTag {
        /// The tag as the parser resolved it.
        tag: String,
    },
    /// A value does not match its tag.
    #[error("the value does not fit its tag `{tag}`")]
    TagMismatch {
        /// The tag as the parser resolved it.
        tag: String,
    },
    /// A number is infinite or not a number.
    #[error("a number must be finite")]
    NotFinite,
    /// A hexadecimal or octal number has more than 128 bits.
    #[error("the number is too large")]
    NumberTooLarge,
    /// An alias is inside the value that it names.
    #[error("the alias is part of its own anchor")]
    AliasInsideAnchor,
    /// Lists and mappings are nested too deeply, aliases included.
    #[error("nesting deeper than {} levels", yaml::MAX_DEPTH)]
    TooDeep,
    /// The document is too large, aliases included.
    #[error(
        "more than {} values or {} bytes, aliases included",
        yaml::MAX_NODES,
        yaml::MAX_BYTES
    )]
    TooLarge,
    /// Any other syntax error, in the parser's words.
    #[error("{message}")]
    Syntax {
        /// The parser's words, without its position.
        message: String,
    },
}

#[derive(Clone, Debug)]
enum PositionIndex {
    Json(Positions),
    Yaml(PositionTree),
}

impl Document {
    /// Reads a JSON object as JSON and everything else as YAML 1.2.
    ///
    /// # Errors
    /// Says where and why the text is not one document of plain values.
    pub fn read(text: &str) -> Result<Self, DocumentError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if !text.trim_start().starts_with('{') {
            return Self::read_yaml(text);
        }
        // YAML flow mappings also begin with a brace, so text that is not JSON may still be valid.
        let Ok(parsed) = json::parse(text) else {
            return Self::read_yaml(text);
        };
        if let Some(duplicate) = parsed.duplicates.first() {
            let key = duplicate.pointer.segments().last().unwrap_or_default();
            return Err(DocumentError {
                position: duplicate.position,
                kind: DocumentErrorKind::DuplicateKey { key },
            });
        }
        Ok(Self {
            value: parsed.value,
            positions: PositionIndex::Json(Positions::of(text)),
        })
    }

    /// The position of the key or element that a pointer leads to, or of its nearest existing
    /// ancestor.
    #[must_use]
    pub fn position(&self, pointer: &Pointer) -> Position {
        match &self.positions {
            PositionIndex::Json(positions) => positions.nearest(pointer),
            PositionIndex::Yaml(root) => root.nearest(pointer),
        }
    }

    /// The root value.
    #[must_use]
    pub const fn root(&self) -> LocatedValue<'_> {
        LocatedValue {
            pointer: Pointer::root(),
            value: &self.value,
        }
    }

    fn read_yaml(text: &str) -> Result<Self, DocumentError> {
        let (value, root) = yaml::read(text)?;
        Ok(Self {
            value,
            positions: PositionIndex::Yaml(root),
        })
    }
}

#[cfg(test)]
mod tests;
