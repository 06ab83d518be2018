//! The lists of servers, and the names by which agents know their entries.

mod client_variant;
mod feature_lists;
mod known_tools;
mod list_changes;
mod list_eviction;
mod list_kind;
mod list_timeout;
mod server_catalog;
mod server_list;
mod server_view;
mod tool_identity;
mod tool_names;

pub use client_variant::ClientVariant;
pub(crate) use known_tools::KnownTools;
pub(crate) use list_changes::ChangedList;
pub use list_kind::{ListKind, SKILLS};
pub use server_catalog::{ServerCatalog, ServerToolList, ToolItem, ToolLookup};
pub use server_list::{ListError, ListItem, ServerList};
pub(crate) use server_view::HANDSHAKE_VARIANT;
pub use server_view::{CatalogClient, ServerView};
pub(crate) use tool_identity::malformed_name;
pub use tool_names::{NamingRules, OfferedNames, OriginalName, ShownNames, collision_text};
