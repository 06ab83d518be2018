use serde_json::Value;
use toolwarden_model::json::Pointer;

use crate::obstacle::Obstacle;
use crate::witness::Rejection;

/// What a change from one schema to another means.
#[derive(Clone, Debug, PartialEq)]
pub enum SchemaVerdict {
    /// Both accept the same values.
    Equivalent(Proof),
    /// Everything callers may send is still accepted.
    Compatible {
        /// How that is known.
        proof: Proof,
        /// A value that is accepted now and was not before, where one was found.
        gained: Option<Value>,
    },
    /// Something callers may send is rejected now.
    Breaking(Witness),
    /// Neither was established. The safe reading is that it may break.
    Unknown(Unknown),
}

/// Whether two schemas accept the same values.
#[derive(Clone, Debug, PartialEq)]
pub enum SchemaEquivalence {
    /// A proof shows that they do.
    Same,
    /// The second rejects this value, which the first accepts.
    Narrower(Value),
    /// The second accepts this value, which the first rejects.
    Wider(Value),
    /// Neither was established.
    Undecided,
}

/// How inclusion was established.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The method that established it.
    pub engine: Engine,
    /// Conjunctions examined during the search.
    pub steps: u32,
}

/// The method that established an inclusion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Both schemas reduce to the same facts.
    Equality,
    /// The search for a counterexample was exhausted.
    Search,
    /// The set algebra of the `jsonschema` crate.
    Algebra,
}

impl Engine {
    /// The word used in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Equality => "equality",
            Self::Search => "search",
            Self::Algebra => "algebra",
        }
    }
}

/// A value the old schema accepts and the new one rejects. The validator confirmed both.
#[derive(Clone, Debug, PartialEq)]
pub struct Witness {
    /// The value.
    pub value: Value,
    /// The keyword of the new schema that rejects it.
    pub keyword: String,
    /// The place of that keyword in the new schema.
    pub schema_pointer: Pointer,
    /// The part of the value that is rejected.
    pub value_pointer: Pointer,
    /// The validator's message.
    pub message: String,
}

impl Witness {
    pub(crate) fn new(value: Value, rejection: Rejection) -> Self {
        let Rejection {
            keyword,
            schema_pointer,
            value_pointer,
            message,
        } = rejection;
        Self {
            value,
            keyword,
            schema_pointer,
            value_pointer,
            message,
        }
    }
}

/// Why nothing was established.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// The kind of reason.
    pub reason: UnknownReason,
    /// The keywords that prevented an answer.
    pub obstacles: Vec<Obstacle>,
}

/// The kind of reason why nothing was established.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnknownReason {
    /// A schema cannot be read; what is wrong with it.
    Invalid(String),
    /// The comparison would exceed its budget.
    Budget,
    /// The comparison exceeded its time limit.
    Time,
    /// The schemas use something that no rule decides.
    Undecided,
}

impl UnknownReason {
    /// The reason as a sentence without a full stop.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Invalid(message) => message,
            Self::Budget => "the comparison left its budget",
            Self::Time => "the comparison took longer than its time limit",
            Self::Undecided => "no rule decides what the schemas say",
        }
    }
}
