//! A value that proves something, checked by the validator and made as small as it can be.

mod cost;
mod shrink;
mod validator;

pub(crate) use cost::is_affordable;
pub(crate) use shrink::shrink;
pub(crate) use validator::Schema;
pub use validator::{InvalidSchema, Rejection, Validator};
