//! JSON Schema as a set: is every value of one schema a value of another?
//!
//! The answer is a proof, a witness, or the admission that neither was found. Nothing here knows
//! of tools.

mod algebra;
mod compare;
mod document;
mod faults;
mod obstacle;
mod policy;
mod prepare;
mod question;
mod set;
mod solve;
mod text;
mod time_limit;
mod verdict;
mod witness;

pub use compare::{CANONICAL_VERSION, Pair, Replay, canonical_text, compare, sameness};
pub use faults::{Fault, FaultRule, faults};
pub use obstacle::{Obstacle, Side};
pub use policy::{Budget, Callers, Domain, Formats, Policy};
pub use prepare::with_plain_references;
pub use time_limit::TimeLimit;
pub use verdict::{Engine, Proof, Reason, Sameness, Unknown, Verdict, Witness};
pub use witness::{InvalidSchema, Rejection, Validator};
