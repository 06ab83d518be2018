//! Detects what changed between two observations of a tool, what each change means, and which hidden or
//! manipulative text a definition contains.
//!
//! Values in, changes out: this crate never reads a clock, a file or the environment.

pub mod drift_json;
pub mod shape;
pub mod text;
pub mod toolwatch;

mod annotations;
mod call_contract;
mod caution;
mod change;
mod change_builder;
mod compare;
mod definition_drift;
mod definition_text;
mod difference;
mod facet;
mod fingerprints;
mod list_drift;
mod moved_text;
mod options;
mod place_text;
mod recorded_call;
mod rename;
mod result_drift;
mod routes;
mod schema;
mod text_changes;

pub use change::{
    CallEffect, Change, ChangeClass, ChangeId, ChangeKind, DefinitionEvidence, Judgement,
    ToolwatchChangeType, ToolwatchSeverity,
};
pub use compare::{compare, compare_in_server};
pub use definition_drift::Drift;
pub use facet::{Facet, FacetLayout, ObservedDefinition};
pub use fingerprints::{FacetFingerprints, SemanticFingerprint};
pub use list_drift::{
    ListDrift, ToolDrift, compare_lists, compare_lists_in_server, shadowing_finding,
};
pub use options::Options;
pub use recorded_call::{InvalidCall, RecordedCall};
pub use rename::Rename;
pub use result_drift::{
    format_change, missing_fixtures, output_schema_violation, toolwatch_hash_mismatch,
};
pub use schema::{LostValue, ReplaySummary, SchemaDrift};
pub use text_changes::changed_texts;
