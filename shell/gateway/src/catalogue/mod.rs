//! What servers list, and what agents call it.

mod client_view;
mod coalesce;
mod identities;
mod keeping;
mod kind;
mod known_tools;
mod list;
mod names;
mod other_lists;
mod shelf;
mod variant;
mod waiting;

pub(crate) use client_view::HANDSHAKE;
pub use client_view::{Client, Looking};
pub(crate) use coalesce::ChangedList;
pub(crate) use identities::malformed;
pub use kind::{Kind, SKILLS};
pub(crate) use known_tools::KnownTools;
pub use list::{Item, List, ListError};
pub use names::{Named, Names, Naming, Offered, collision};
pub use shelf::{Look, Shelf, ToolItem, ToolList};
pub use variant::ClientVariant;
