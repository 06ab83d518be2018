//! Detects hidden characters, names that imitate others, and words that address the model instead of
//! describing the tool.
//!
//! Every finding is decided by rules alone, without a network or a model, in time linear in the text. A
//! finding is a reason to review; its severity depends on whether it is new, which [`new_findings`]
//! determines.

mod added_text;
mod annotations;
mod bidi;
mod character;
mod confusable;
mod cross_tool;
mod definition_parts;
mod finding;
mod finding_collector;
mod hidden;
mod injection;
mod invisible;
mod name_words;
mod scan;
mod script;
mod terminal;
mod walk;
mod word_diff;

#[cfg(test)]
mod tests;

pub(crate) use added_text::{
    AdditionContext, added_addresses, address, find_additions, is_ambiguous_host, is_secret_or_path,
};
pub use character::{is_unprintable, printable};
pub use cross_tool::{ServerTool, name_pointer, scan_across_tools};
pub(crate) use finding::is_suspicious;
pub use finding::{Detector, TextFinding, Weight, new_findings};
pub use invisible::find_invisible;
pub use scan::scan;
pub use word_diff::{WordRun, diff_words};
