use std::num::NonZeroU32;

use crate::time_limit::TimeLimit;

/// What callers may send, and what of a schema decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Which values of the old schema count.
    pub callers: Callers,
    /// Which JSON values exist at all.
    pub domain: Domain,
    /// Whether `format` decides about a value.
    pub formats: Formats,
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
pub enum Domain {
    /// Objects only: the arguments of a call.
    Objects,
    /// Any JSON value.
    Values,
}

/// Whether `format` decides about a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Formats {
    /// It informs, as draft 2020-12 has it.
    Annotate,
    /// It decides.
    Assert,
}

impl Policy {
    /// The policy for the arguments of a tool: objects with declared keys.
    pub const ARGUMENTS: Self = Self {
        callers: Callers::Declared,
        domain: Domain::Objects,
        formats: Formats::Annotate,
    };
    /// JSON Schema to the letter.
    pub const STRICT: Self = Self {
        callers: Callers::Open,
        domain: Domain::Values,
        formats: Formats::Annotate,
    };
}

/// How much one comparison may cost. What exceeds it is answered with
/// [`Unknown`](crate::Verdict::Unknown).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
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

impl Default for Budget {
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
