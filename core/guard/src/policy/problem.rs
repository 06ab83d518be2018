use thiserror::Error;
use toolwarden_model::json::{Pointer, Position};

use super::{InvalidDuration, InvalidPermission, MAX_GROUP};

/// A mistake in a policy, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{pointer}: {problem}")]
pub struct PolicyError {
    /// The place as a pointer.
    pub pointer: Pointer,
    /// The place in the text.
    pub position: Option<Position>,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong in a policy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Problem {
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
    /// A group's name is too long or has too many levels.
    #[error("a group's name has at most {} bytes and {} levels", MAX_GROUP.0, MAX_GROUP.1)]
    GroupName,
    /// Roles take over each other's grants in a circle.
    #[error("role `{role}` takes over its own grants")]
    RoleCircle {
        /// A role of the circle.
        role: String,
    },
    /// Two keys exclude each other.
    #[error("`{one}` and `{other}` exclude each other")]
    Exclusive {
        /// One key.
        one: &'static str,
        /// The other.
        other: &'static str,
    },
    /// A permission is none.
    #[error("{0}")]
    Permission(#[from] InvalidPermission),
    /// A time is none.
    #[error("{0}")]
    Duration(#[from] InvalidDuration),
    /// A condition cannot be evaluated.
    #[error("{0}")]
    Condition(#[from] crate::condition::InvalidCondition),
    /// A time zone is not known.
    #[error("{0}")]
    Zone(#[from] crate::condition::UnknownZone),
    /// A schema is none.
    #[error("invalid schema: {message}")]
    Schema {
        /// The validator's words.
        message: String,
    },
    /// A definition cannot be had.
    #[error("{message}")]
    Definition {
        /// Why.
        message: String,
    },
    /// The format is of another version.
    #[error("this program reads version 1 of the policy format")]
    Version,
}
