//! Pairs with a known answer, and the labelled containment suite.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolwarden_schema::{
    Callers, ComparisonPolicy, FormatMode, SchemaVerdict, SearchBudget, ValueDomain, compare,
};

use crate::{for_arguments, strictly, verdict_letter};

#[derive(serde::Deserialize)]
struct Item {
    id: String,
    old: Value,
    new: Value,
    truth: String,
    #[serde(default)]
    pragmatic: Option<String>,
    #[serde(default)]
    eq: Option<bool>,
}

#[test]
fn every_pair_is_decided_and_right() {
    let Some(items) = toolwarden_testkit::read_vectors("schema-pairs.json") else {
        return;
    };
    let items: Vec<Item> = serde_json::from_value(items).unwrap();
    assert_eq!(items.len(), 48);
    for item in items {
        let open = strictly(&item.old, &item.new);
        let declared = for_arguments(&item.old, &item.new);
        assert_eq!(verdict_letter(&open), item.truth, "{}: {open:?}", item.id);
        assert_eq!(
            Some(verdict_letter(&declared)),
            item.pragmatic.as_deref(),
            "{}: {declared:?}",
            item.id
        );
        let equivalent = matches!(open, SchemaVerdict::Equivalent(_));
        assert_eq!(Some(equivalent), item.eq, "{}: {open:?}", item.id);
        if let SchemaVerdict::Breaking(witness) = open {
            assert_eq!(
                crate::accepts(&item.old, &witness.value),
                Some(true),
                "{}",
                item.id
            );
            assert_eq!(
                crate::accepts(&item.new, &witness.value),
                Some(false),
                "{}",
                item.id
            );
            assert!(
                witness.schema_pointer.find(&item.new).is_some(),
                "{}: {witness:?}",
                item.id
            );
        }
    }
}

/// Items whose label rests on a reading that is not ours, with the reading.
const CAVEATS: &[(&str, &str)] = &[
    (
        "optional/unicode.json",
        r"`\w` and `\d` are ASCII in ECMA-262; the label reads them as Unicode",
    ),
    (
        "universal/id.json#1",
        "the label was made before `$id` was embedded twice",
    ),
    (
        "unsatisfiable/id.json#1",
        "the label was made before `$id` was embedded twice",
    ),
    (
        "universal/items.json#6",
        "the embedded `$ref` leads to the other copy",
    ),
    (
        "ref.json#13",
        "the embedded `$id` makes `tree` name the whole document",
    ),
    (
        "ref.json#16",
        "the embedded `$id` makes `tree` name the whole document",
    ),
    (
        "ref.json#17",
        "the label was made before the `$ref` inside `enum` was renamed",
    ),
];

#[test]
fn containment_suite_is_never_contradicted() {
    let Some(shared) = toolwarden_testkit::shared_folder() else {
        return;
    };
    let path = shared.join("corpus/schema/containment-draft7.json");
    let items: Vec<Item> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(items.len(), 3_418);
    let policy = ComparisonPolicy {
        callers: Callers::Open,
        domain: ValueDomain::Values,
        formats: FormatMode::Assert,
    };
    let mut unknown = Vec::new();
    let mut excused: BTreeMap<&str, u32> = BTreeMap::new();
    for item in &items {
        let (old, new) = (draft7(&item.old), draft7(&item.new));
        let verdict = compare(&old, &new, policy, SearchBudget::default());
        match verdict_letter(&verdict) {
            "?" => unknown.push(&item.id),
            answer if answer == item.truth => {}
            answer => {
                let caveat = CAVEATS.iter().find(|(place, _)| item.id.contains(place));
                let (place, _) = caveat.unwrap_or_else(|| {
                    panic!(
                        "{}: {answer} instead of {}: {verdict:?}",
                        item.id, item.truth
                    )
                });
                *excused.entry(place).or_default() += 1;
                // The validator sides with us: a witness was checked, and where the old schema is
                // one value, the new one accepts it.
                if answer == "C" {
                    let value = item.old.get("const").expect("one value");
                    let new = jsonschema::draft7::new(&new).unwrap();
                    assert!(new.is_valid(value), "{}", item.id);
                }
            }
        }
    }
    assert_eq!(
        excused.len(),
        CAVEATS.len(),
        "a caveat that excuses nothing: {excused:?}"
    );
    let share = unknown.len() * 1_000 / items.len();
    assert!(
        share < 20,
        "{} of {} undecided: {unknown:?}",
        unknown.len(),
        items.len()
    );
}

fn draft7(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Value::Object(members) = &mut schema {
        members.insert(
            "$schema".to_owned(),
            json!("http://json-schema.org/draft-07/schema#"),
        );
    }
    schema
}
