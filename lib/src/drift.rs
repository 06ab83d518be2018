//! What changed between two definitions of a tool, and what each change means.
//!
//! [`compare`] compares two definitions, [`compare_lists`] two lists of tools. Every [`Change`] has a [`ChangeClass`]
//! and, where a schema accepts less than before, a value that shows it. [`text::scan`] finds hidden text and
//! instructions to the model in one definition. [`schema`] compares two JSON Schemas by themselves.
//!
//! ```
//! use serde_json::json;
//! use toolwarden::drift::{ChangeClass, FacetLayout, Judgement, ObservedDefinition, Options, compare};
//!
//! let old = json!({"name": "pay", "inputSchema": {"type": "object", "properties": {"to": {"type": "string"}}}});
//! let mut new = old.clone();
//! new["inputSchema"]["required"] = json!(["to"]);
//! let layout = FacetLayout::mcp();
//! let side = |definition| ObservedDefinition { name: "pay", definition, layout: &layout };
//! let drift = compare(&side(&old), &side(&new), &Options::default(), &[]);
//! let Some(Judgement::Breaking(witness)) = drift.input.map(|it| it.declared) else { panic!() };
//! assert_eq!(witness.value, json!({}));
//! ```

pub use toolwarden_drift::{
    CallEffect, Change, ChangeClass, ChangeId, ChangeKind, DefinitionEvidence, Drift, Facet,
    FacetFingerprints, FacetLayout, Judgement, ListDrift, LostValue, ObservedDefinition, Options,
    Rename, ReplaySummary, SchemaDrift, SemanticFingerprint, ToolDrift, changed_texts, compare,
    compare_lists, drift_json, shape, text,
};
pub use toolwarden_model::{ChangeEvidence, Severity, summarize_changes};

/// JSON Schemas as sets: is every value of one schema a value of another?
pub mod schema {
    pub use toolwarden_schema::{
        Callers, ComparisonPolicy, FormatMode, InvalidSchema, Proof, SchemaEquivalence, SchemaPair,
        SchemaVerdict, SearchBudget, TimeLimit, Unknown, UnknownReason, Validator, Witness,
        check_equivalence, compare,
    };
}
