//! What drift promises, shown on acceptance vectors, real versions and made-up changes.
#![expect(
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "clippy's leave for tests does not reach helpers outside test functions"
)]

mod annotations;
mod changes;
mod content;
mod declared;
mod declared_keys;
mod effects;
mod fingerprints;
mod lists;
mod mutations;
mod places;
mod references;
mod releases;
mod routes;
mod shape;

use std::sync::LazyLock;

use serde_json::Value;
use toolwarden_drift::{Drift, FacetLayout, ObservedDefinition, Options, compare};

fn observed(definition: &Value) -> ObservedDefinition<'_> {
    static LAYOUT: LazyLock<FacetLayout> = LazyLock::new(FacetLayout::mcp);
    ObservedDefinition {
        name: definition["name"].as_str().unwrap_or_default(),
        definition,
        layout: &LAYOUT,
    }
}

fn drift(old: &Value, new: &Value) -> Drift {
    compare(&observed(old), &observed(new), &Options::default(), &[])
}
mod text_places;
mod toolwatch;
mod unread_members;
mod wording;
