//! Containers that hold tool definitions.

mod definitions;
mod list_facts;
mod openapi;
mod split;

pub use definitions::Container;
pub(crate) use definitions::{ContainedDefinition, find_definitions};
pub use list_facts::{BesideTools, ListFacts, list_facts};
pub use openapi::UnreadPart;
pub(crate) use openapi::{lists_unread_parts, standalone_operation, unread_parts};
pub use split::{TextItem, split};
