//! What definitions come wrapped in.

mod openapi;
mod split;
mod unwrap;

pub(crate) use openapi::lone_operation;
pub use split::{Item, split};
pub use unwrap::Container;
pub(crate) use unwrap::{Found, unwrap};
