//! Tests the promises of the comparison on labelled, published, generated and hostile schemas.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "clippy's leave for tests does not reach helpers outside test functions"
)]

mod corpus;
mod drafts;
mod faults;
mod hostile;
mod mutations;
mod random;
mod regressions;
mod time;
mod vectors;

use serde_json::Value;
use toolwarden_schema::{ComparisonPolicy, SchemaVerdict, SearchBudget, compare};

/// `C` for everything still accepted, `B` for a witness, `?` for neither.
fn verdict_letter(verdict: &SchemaVerdict) -> &'static str {
    match verdict {
        SchemaVerdict::Equivalent(_) | SchemaVerdict::Compatible { .. } => "C",
        SchemaVerdict::Breaking(_) => "B",
        SchemaVerdict::Unknown(_) => "?",
    }
}

fn strictly(old: &Value, new: &Value) -> SchemaVerdict {
    compare(old, new, ComparisonPolicy::STRICT, SearchBudget::default())
}

fn for_arguments(old: &Value, new: &Value) -> SchemaVerdict {
    compare(
        old,
        new,
        ComparisonPolicy::ARGUMENTS,
        SearchBudget::default(),
    )
}

/// Whether the validator accepts a value; nothing where it cannot read the schema.
fn accepts(schema: &Value, value: &Value) -> Option<bool> {
    let validator = jsonschema::options()
        .offline()
        .should_validate_formats(false)
        .build(schema)
        .ok()?;
    Some(validator.is_valid(value))
}
