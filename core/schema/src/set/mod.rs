//! A schema as a conjunction of small facts about one value, shared wherever it is the same.

mod compile;
mod digest;
mod evaluate;
mod node;
mod number;
mod types;
mod unevaluated;

pub(crate) use compile::{CompileError, compile};
pub(crate) use evaluate::applicable;
pub(crate) use node::{Arena, Constant, Id, Literal, Node, Properties};
pub(crate) use number::Ratio;
pub(crate) use types::TypeSet;
