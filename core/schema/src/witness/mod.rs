//! Witnesses: values that prove an answer, confirmed by the validator and made as small as possible.

mod cost;
mod shrink;
mod validator;

pub(crate) use cost::is_affordable;
pub(crate) use shrink::shrink;
pub(crate) use validator::CompiledSchema;
pub use validator::{InvalidSchema, Rejection, Validator};
