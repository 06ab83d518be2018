//! Containers that hold tool definitions.

mod definitions;
mod openapi;
mod split;

pub use definitions::Container;
pub(crate) use definitions::{ContainedDefinition, find_definitions};
pub(crate) use openapi::standalone_operation;
pub use split::{TextItem, split};
