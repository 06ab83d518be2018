//! JSON Schema as a set: is every value of one schema a value of another?
//!
//! The answer is a proof, a witness, or "unknown" if neither was found. This crate does not know
//! about tools.

mod algebra;
mod compare;
mod comparison_policy;
mod declared;
mod faults;
mod inclusion;
mod obstacle;
mod prepare;
mod prepared_schema;
mod set;
mod solve;
mod text;
mod time_limit;
mod verdict;
mod witness;

pub use compare::{
    CANONICAL_VERSION, CallReplay, SchemaPair, canonical_text, check_equivalence, compare,
};
pub use comparison_policy::{Callers, ComparisonPolicy, FormatMode, SearchBudget, ValueDomain};
pub use faults::{SchemaFault, SchemaFaultRule, find_faults, schemas_outside_keywords};
pub use obstacle::{Obstacle, SchemaSide};
pub use prepare::with_local_references;
pub use time_limit::TimeLimit;
pub use verdict::{
    Engine, Proof, SchemaEquivalence, SchemaVerdict, Unknown, UnknownReason, Witness,
};
pub use witness::{InvalidSchema, Rejection, Validator};
