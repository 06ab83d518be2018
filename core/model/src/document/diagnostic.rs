use thiserror::Error;

use super::InvalidDuration;
use crate::json::{Pointer, Position};

/// A mistake in a document, and its location.
///
/// Each kind of document may have mistakes beyond [`DiagnosticKind`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{pointer}: {kind}")]
pub struct Diagnostic<M = DiagnosticKind> {
    /// The location as a pointer.
    pub pointer: Pointer,
    /// The location in the text.
    pub position: Position,
    /// The mistake.
    pub kind: M,
}

/// A mistake that is possible in any document.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DiagnosticKind {
    /// A key is unknown.
    #[error("unknown key `{key}`{suggestion}")]
    UnknownKey {
        /// The key.
        key: String,
        /// A similar key that the user may have meant.
        suggestion: String,
    },
    /// A key occurs in two spellings with different values.
    #[error("`{one}` and `{other}` are the same key with different values")]
    ConflictingSpellings {
        /// One spelling.
        one: String,
        /// The other.
        other: String,
    },
    /// A key is missing.
    #[error("`{key}` is missing")]
    Missing {
        /// The key.
        key: &'static str,
    },
    /// A value has the wrong type.
    #[error("expected {expected}, found {found}")]
    WrongType {
        /// The expected type.
        expected: &'static str,
        /// The actual type.
        found: String,
    },
    /// A word is not one of the known words.
    #[error("unknown word `{word}`{suggestion}; known are {known}")]
    UnknownWord {
        /// The word.
        word: String,
        /// A similar word that the user may have meant.
        suggestion: String,
        /// The known words.
        known: String,
    },
    /// A reference leads to nothing.
    #[error("there is no {what} `{name}`{suggestion}")]
    UnknownReference {
        /// The kind of thing.
        what: &'static str,
        /// Its name.
        name: String,
        /// A similar name that the user may have meant.
        suggestion: String,
    },
    /// A name is blank.
    #[error("{what} must not be blank")]
    Blank {
        /// What the name belongs to.
        what: &'static str,
    },
    /// A key is written without a value.
    #[error("`{key}` has no value; write one, or leave the key out")]
    MissingValue {
        /// The key.
        key: String,
    },
    /// Two keys exclude each other.
    #[error("`{one}` and `{other}` exclude each other")]
    ConflictingKeys {
        /// One key.
        one: &'static str,
        /// The other.
        other: &'static str,
    },
    /// A duration is invalid.
    #[error(transparent)]
    Duration(#[from] InvalidDuration),
}
