//! Both schemas on one footing: draft 2020-12, assertions only, every reference local.

mod close;
mod draft;
mod keywords;
mod lift;
mod resources;

pub(crate) use close::close;
pub(crate) use draft::{Draft, for_validator};
pub(crate) use keywords::{Form, Kind, count, kind};
pub(crate) use lift::{PrepareError, lift};
pub(crate) use resources::{Place, Resources};

use serde_json::Value;

use crate::policy::Formats;

/// A schema with every reference pointing into its own `$defs`, whatever its draft and however its parts
/// are named; none where it cannot be read.
#[must_use]
pub fn with_plain_references(schema: &Value) -> Option<Value> {
    lift(schema, Formats::Annotate).ok()
}
