//! JSON Schemas.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use toolwarden_model::json::{Value, parse};
use toolwarden_schema::{
    ComparisonPolicy, SchemaVerdict, SearchBudget, TimeLimit, Validator, canonical_text, compare,
    find_faults,
};

use crate::parsed;

/// The most time for one comparison.
const COMPARISON_TIME: Duration = Duration::from_millis(50);

fn budget() -> SearchBudget {
    SearchBudget {
        steps: 500,
        states: 500,
        depth: 8,
        branches: NonZeroU32::MIN.saturating_add(31),
        shrinks: 50,
        time: TimeLimit::new(elapsed, COMPARISON_TIME),
    }
}

fn elapsed() -> Duration {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

/// A witness of a breaking change is valid under the old schema and not under the new one. A gained value is the
/// reverse. Every schema is equivalent to itself, if it can be compared at all.
///
/// The input is a JSON array of two schemas.
pub fn schema_comparison(data: &[u8]) {
    let Some(Value::Array(schemas)) = parsed(data).map(|parsed| parsed.value) else {
        return;
    };
    let [one, other] = schemas.as_slice() else {
        return;
    };
    for policy in [ComparisonPolicy::STRICT, ComparisonPolicy::ARGUMENTS] {
        check_verdict(one, other, policy);
        check_verdict(other, one, policy);
        let same = compare(one, one, policy, budget());
        assert!(
            matches!(
                same,
                SchemaVerdict::Equivalent(_) | SchemaVerdict::Unknown(_)
            ),
            "{one} with itself: {same:?}"
        );
    }
}

fn check_verdict(old: &Value, new: &Value, policy: ComparisonPolicy) {
    let verdict = compare(old, new, policy, budget());
    let (Ok(old_rules), Ok(new_rules)) = (Validator::new(old), Validator::new(new)) else {
        assert!(
            matches!(
                verdict,
                SchemaVerdict::Equivalent(_) | SchemaVerdict::Unknown(_)
            ),
            "{old} to {new}, one of which is invalid: {verdict:?}"
        );
        return;
    };
    let accepts = |rules: &Validator, value| rules.rejection(value).is_none();
    match &verdict {
        SchemaVerdict::Breaking(witness) => {
            let value = &witness.value;
            assert!(accepts(&old_rules, value), "{old} to {new}: {witness:?}");
            assert!(!accepts(&new_rules, value), "{old} to {new}: {witness:?}");
        }
        SchemaVerdict::Compatible {
            gained: Some(value),
            ..
        } => {
            assert!(!accepts(&old_rules, value), "{old} to {new}: {value}");
            assert!(accepts(&new_rules, value), "{old} to {new}: {value}");
        }
        SchemaVerdict::Compatible { .. }
        | SchemaVerdict::Equivalent(_)
        | SchemaVerdict::Unknown(_) => {}
    }
}

/// The places of faults are in the schema, and its canonical text is JSON.
pub fn schema_document(data: &[u8]) {
    let Some(parsed) = parsed(data) else {
        return;
    };
    for fault in find_faults(&parsed.value) {
        let found = fault.pointer.find(&parsed.value);
        assert!(found.is_some(), "{fault:?}");
    }
    if let Some(canonical) = canonical_text(&parsed.value) {
        assert!(!canonical.is_empty());
        assert_eq!(canonical_text(&parsed.value), Some(canonical));
    }
    // A validator must reject or accept, not fail.
    if let Ok(rules) = Validator::new(&parsed.value) {
        for value in ["null", "{}", "[]", "1", r#""a""#, r#"{"a":1}"#] {
            let value = parse(value).map(|it| it.value).unwrap_or_default();
            let first = rules.rejection(&value).is_some();
            assert_eq!(rules.rejection(&value).is_some(), first);
        }
    }
}
