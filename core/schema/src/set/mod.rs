//! A schema as a conjunction of small facts about one value, shared wherever it is the same.

mod arena;
mod canonical_text;
mod compile;
mod evaluate;
mod ratio;
mod types;
mod unevaluated;

pub(crate) use arena::{Arena, Constant, Fact, Literal, NodeId, Properties};
pub(crate) use compile::{CompileError, compile};
pub(crate) use evaluate::applicable;
pub(crate) use ratio::Ratio;
pub(crate) use types::TypeSet;
