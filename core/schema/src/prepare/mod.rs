//! Normalizes both schemas: draft 2020-12, assertions only, every reference local.

mod close;
mod draft;
mod keywords;
mod lift;
mod resources;

pub(crate) use close::close;
pub(crate) use draft::{Draft, validator_draft};
pub(crate) use keywords::{KeywordKind, ValueForm, keyword_kind, parse_count};
pub(crate) use lift::{PrepareError, lift, lift_with_descriptions};
pub(crate) use resources::{Resources, SchemaLocation};

use serde_json::Value;

use crate::comparison_policy::FormatMode;

/// A schema with every reference pointing into its own `$defs`, whatever its draft and however its parts
/// are named; none where it cannot be read.
#[must_use]
pub fn with_local_references(schema: &Value) -> Option<Value> {
    lift(schema, FormatMode::Annotate).ok()
}
