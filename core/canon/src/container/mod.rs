//! Containers that hold tool definitions.

mod definitions;
mod list_facts;
mod openapi;
mod split;

pub use definitions::Container;
pub(crate) use definitions::{ContainedDefinition, find_definitions};
pub use list_facts::{ListFacts, list_facts};
pub(crate) use openapi::standalone_operation;
pub use split::{TextItem, split};
