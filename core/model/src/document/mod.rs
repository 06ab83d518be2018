//! YAML and JSON texts that people write, as one value with the place of everything in it.
//!
//! [`Document`] reads the text, [`Reader`] takes the value apart and collects every mistake.

mod duration;
mod mistake;
mod reader;
mod scalar;
mod section;
mod yaml;

use thiserror::Error;

use crate::json::{self, Pointer, Position, Positions, Value};
use yaml::Place;

pub use duration::{InvalidDuration, duration};
pub use mistake::{Mistake, MistakeAt};
pub use reader::Reader;
pub use section::{Key, Placed, Section};

/// A YAML or JSON text that was read whole.
#[derive(Clone, Debug)]
pub struct Document {
    /// What the text says, keys in written order, numbers with their written text.
    pub value: Value,
    places: Places,
}

/// Why a text is not a document we read, and where.
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
    /// There is nothing but white space and comments.
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
    /// A mapping asks to be merged into another.
    #[error("merge keys (`<<`) are not supported; repeat the entries or alias the whole mapping")]
    MergeKey,
    /// A tag is not one of the core schema.
    #[error("unknown tag `{tag}`")]
    UnknownTag {
        /// The tag as the parser resolved it.
        tag: String,
    },
    /// A value is not what its tag says.
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
    /// An alias stands inside the very value it names.
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
enum Places {
    Json(Positions),
    Yaml(Place),
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
        // YAML also begins flow mappings with a brace, so text that is not JSON is no error yet.
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
            places: Places::Json(Positions::of(text)),
        })
    }

    /// Where the key or element stands that a pointer leads to, or the nearest one around it.
    #[must_use]
    pub fn position(&self, pointer: &Pointer) -> Position {
        match &self.places {
            Places::Json(positions) => positions.nearest(pointer),
            Places::Yaml(root) => root.nearest(pointer),
        }
    }

    /// The whole of what the text says.
    #[must_use]
    pub const fn root(&self) -> Placed<'_> {
        Placed {
            pointer: Pointer::root(),
            value: &self.value,
        }
    }

    fn read_yaml(text: &str) -> Result<Self, DocumentError> {
        let (value, root) = yaml::read(text)?;
        Ok(Self {
            value,
            places: Places::Yaml(root),
        })
    }
}

#[cfg(test)]
mod tests;
