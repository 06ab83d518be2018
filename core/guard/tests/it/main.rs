//! The public behaviour of the guard.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy's leave for tests does not reach helpers outside test functions"
)]

mod features;
mod gate_formula;
mod groups;
mod policies;

use std::collections::BTreeMap;

use toolwarden_guard::{ConditionInputs, Document, Guard, Policy};

/// The guard of a policy that is known to be valid.
fn guard(policy: &str) -> Guard {
    let document = Document::read(policy).unwrap();
    let read = Policy::read(&document).unwrap();
    let (guard, faults) = Guard::new(read.policy);
    assert_eq!(faults, []);
    guard
}

/// Midnight at the start of 2026, and no load or attributes.
fn calm() -> ConditionInputs {
    ConditionInputs {
        now: "2026-01-01T00:00:00Z".parse().unwrap(),
        zone: jiff::tz::TimeZone::UTC,
        load: None,
        attributes: BTreeMap::new(),
    }
}
