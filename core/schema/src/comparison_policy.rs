use std::num::NonZeroU32;

use crate::time_limit::TimeLimit;

/// What callers may send, and which keywords of a schema are assertions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComparisonPolicy {
    /// Which values of the old schema count.
    pub callers: Callers,
    /// Which JSON values exist at all.
    pub domain: ValueDomain,
    /// Whether `format` decides about a value.
    pub formats: FormatMode,
}

/// Which values of the old schema count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callers {
    /// Only keys the old schema declares are sent.
    Declared,
    /// Everything the old schema accepts may be sent.
    Open,
}

/// Which values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueDomain {
    /// Objects only: the arguments of a call.
    Objects,
    /// Any JSON value.
    Values,
}

/// Whether `format` decides about a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatMode {
    /// `format` is an annotation, as in draft 2020-12.
    Annotate,
    /// `format` is an assertion.
    Assert,
}

impl ComparisonPolicy {
    /// The policy for the arguments of a tool: objects with declared keys.
    pub const ARGUMENTS: Self = Self {
        callers: Callers::Declared,
        domain: ValueDomain::Objects,
        formats: FormatMode::Annotate,
    };
    /// Exactly the semantics of JSON Schema.
    pub const STRICT: Self = Self {
        callers: Callers::Open,
        domain: ValueDomain::Values,
        formats: FormatMode::Annotate,
    };
}

/// How much one comparison may cost. A comparison that exceeds it is answered with
/// [`Unknown`](crate::SchemaVerdict::Unknown).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchBudget {
    /// Conjunctions examined by the search.
    pub steps: u32,
    /// Automaton states visited by one question about patterns.
    pub states: u32,
    /// Levels of nesting of a value.
    pub depth: u32,
    /// Branches an algebraic comparison may multiply out to.
    pub branches: NonZeroU32,
    /// Values checked while a witness is shrunk.
    pub shrinks: u32,
    /// How long it may take.
    pub time: TimeLimit,
}

impl Default for SearchBudget {
    fn default() -> Self {
        Self {
            steps: 50_000,
            states: 50_000,
            depth: 48,
            branches: NonZeroU32::MIN.saturating_add(2_047),
            shrinks: 500,
            time: TimeLimit::NONE,
        }
    }
}
