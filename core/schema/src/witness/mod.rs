//! A value that proves something, checked by the validator and made as small as it can be.

mod shrink;
mod validator;

pub(crate) use shrink::shrink;
pub(crate) use validator::{Rejection, Schema};
