//! What the text of a definition carries besides its meaning: hidden characters, names that look
//! like others, and words that speak to the model instead of describing the tool.
//!
//! Every finding is decided by rules alone, without a network or a model, in time linear in the
//! text. A finding is a reason to look; how grave it is depends on whether it is new, which
//! [`fresh`] tells.

mod annotations;
mod bidi;
mod character;
mod confusable;
mod finding;
mod hidden;
mod injection;
mod introduced;
mod names;
mod notes;
mod place;
mod scan;
mod script;
mod terminal;
mod together;
mod unseen;
mod walk;
mod words;

#[cfg(test)]
mod tests;

pub use character::{is_unprintable, printable};
pub(crate) use finding::is_suspicious;
pub use finding::{Detector, Finding, Weight, fresh};
pub(crate) use introduced::{Known, addresses, introduced};
pub use scan::scan;
pub use together::{Named, name_pointer, scan_together};
pub use unseen::unseen;
pub use words::{Run, changed_words};
