//! What servers list, and what agents call it.

mod kind;
mod list;
mod names;
mod shelf;

pub use kind::Kind;
pub use list::{Item, List, ListError};
pub use names::{Named, Names, Naming, Offered, collision};
pub use shelf::{Look, Looking, Shelf, ToolItem, ToolList};
