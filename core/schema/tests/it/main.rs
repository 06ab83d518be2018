//! What the comparison promises, held to labelled, published, generated and hostile schemas.

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
use toolwarden_schema::{Budget, Policy, Verdict, compare};

/// `C` for everything still accepted, `B` for a witness, `?` for neither.
fn told(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Equivalent(_) | Verdict::Compatible { .. } => "C",
        Verdict::Breaking(_) => "B",
        Verdict::Unknown(_) => "?",
    }
}

fn strictly(old: &Value, new: &Value) -> Verdict {
    compare(old, new, Policy::STRICT, Budget::default())
}

fn for_arguments(old: &Value, new: &Value) -> Verdict {
    compare(old, new, Policy::ARGUMENTS, Budget::default())
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
