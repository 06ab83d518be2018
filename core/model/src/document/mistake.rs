use thiserror::Error;

use super::InvalidDuration;
use crate::json::{Pointer, Position};

/// A mistake in a document, and where it stands.
///
/// What may be wrong beyond [`Mistake`] depends on what the document is.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{pointer}: {mistake}")]
pub struct MistakeAt<M = Mistake> {
    /// The place as a pointer.
    pub pointer: Pointer,
    /// The place in the text.
    pub position: Position,
    /// What is wrong there.
    pub mistake: M,
}

/// What may be wrong in any document.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Mistake {
    /// A key is not known.
    #[error("unknown key `{key}`{suggestion}")]
    UnknownKey {
        /// The key.
        key: String,
        /// What may have been meant.
        suggestion: String,
    },
    /// One key is written in two ways that differ.
    #[error("`{one}` and `{other}` are the same key and say different things")]
    TwoSpellings {
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
    /// A value is not what it has to be.
    #[error("expected {expected}, found {found}")]
    Type {
        /// What it has to be.
        expected: &'static str,
        /// What it is.
        found: String,
    },
    /// A word is not one of those that are known.
    #[error("unknown word `{word}`{suggestion}; known are {known}")]
    Word {
        /// The word.
        word: String,
        /// What may have been meant.
        suggestion: String,
        /// The known ones.
        known: String,
    },
    /// Something refers to what is not there.
    #[error("there is no {what} `{name}`{suggestion}")]
    Nothing {
        /// What kind of thing.
        what: &'static str,
        /// Its name.
        name: String,
        /// What may have been meant.
        suggestion: String,
    },
    /// A name is blank.
    #[error("{what} must not be blank")]
    Blank {
        /// What has no name.
        what: &'static str,
    },
    /// A key is written without a value.
    #[error("`{key}` has no value; write one, or leave the key out")]
    NoValue {
        /// The key.
        key: String,
    },
    /// Two keys exclude each other.
    #[error("`{one}` and `{other}` exclude each other")]
    Exclusive {
        /// One key.
        one: &'static str,
        /// The other.
        other: &'static str,
    },
    /// A time is none.
    #[error(transparent)]
    Duration(#[from] InvalidDuration),
}
