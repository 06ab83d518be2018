//! What changed between two observations of a tool, what each change means, and what the text of a
//! definition carries besides its meaning.
//!
//! Values in, changes out: nothing here reads a clock, a file or the environment.

pub mod contract;
pub mod document;
pub mod shape;
pub mod text;
pub mod toolwatch;

mod annotations;
mod call;
mod change;
mod compare;
mod difference;
mod fingerprints;
mod layout;
mod list;
mod rename;
mod results;
mod schema;
mod wording;

pub use call::{InvalidCall, RecordedCall};
pub use change::{Change, ChangeId, ChangeType, Class, Effect, Judgement, Kind, Severity};
pub use compare::{Drift, Options, compare, compare_among};
pub use fingerprints::{FacetFingerprints, SemanticFingerprint};
pub use layout::{Facet, Layout, Observed};
pub use list::{ListDrift, ToolDrift, compare_lists, compare_lists_among, shadowing};
pub use rename::Rename;
pub use results::{broken_promise, reformatted, unlike_import};
pub use schema::{LostValue, Replayed, SchemaDrift};
