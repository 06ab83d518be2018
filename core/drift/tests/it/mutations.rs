//! The 23 realistic mutations: each is detected at its place and classified correctly.

use serde_json::Value;
use toolwarden_drift::{ChangeClass, Facet};

use crate::drift;

/// The expected report of each mutation.
const EXPECTED: &[(&str, Facet, &str, ChangeClass)] = &[
    (
        "tool description changed",
        Facet::Description,
        "/description",
        ChangeClass::Trust,
    ),
    (
        "top-level param description poisoned",
        Facet::Input,
        "/inputSchema/properties/to/description",
        ChangeClass::Trust,
    ),
    (
        "nested param description poisoned",
        Facet::Input,
        "/inputSchema/properties/opts/properties/bcc/description",
        ChangeClass::Trust,
    ),
    (
        "array items description poisoned",
        Facet::Input,
        "/inputSchema/properties/tags/items/description",
        ChangeClass::Trust,
    ),
    (
        "nested param added",
        Facet::Input,
        "/inputSchema/properties/opts/properties/exfil",
        ChangeClass::Trust,
    ),
    (
        "pattern removed (allow-list dropped)",
        Facet::Input,
        "/inputSchema/properties/to/pattern",
        ChangeClass::Widened,
    ),
    (
        "maximum raised 10->1e6",
        Facet::Input,
        "/inputSchema/properties/n/maximum",
        ChangeClass::Widened,
    ),
    (
        "default changed 1->1000",
        Facet::Input,
        "/inputSchema/properties/n/default",
        ChangeClass::Behavioural,
    ),
    (
        "integer -> number",
        Facet::Input,
        "/inputSchema/properties/n/type",
        ChangeClass::Widened,
    ),
    (
        "additionalProperties false->true",
        Facet::Input,
        "/inputSchema/additionalProperties",
        ChangeClass::Widened,
    ),
    (
        "anyOf branch added (object)",
        Facet::Input,
        "/inputSchema/properties/u/anyOf",
        ChangeClass::Widened,
    ),
    (
        "param title poisoned",
        Facet::Input,
        "/inputSchema/properties/to/title",
        ChangeClass::Trust,
    ),
    (
        "schema-level description poisoned",
        Facet::Input,
        "/inputSchema/description",
        ChangeClass::Trust,
    ),
    (
        "examples poisoned",
        Facet::Input,
        "/inputSchema/properties/to/examples",
        ChangeClass::Trust,
    ),
    (
        "$defs/$comment poisoned",
        Facet::Input,
        "/inputSchema/$comment",
        ChangeClass::Trust,
    ),
    (
        "destructiveHint true->false",
        Facet::Annotations,
        "/annotations/destructiveHint",
        ChangeClass::Trust,
    ),
    (
        "readOnlyHint false->true",
        Facet::Annotations,
        "/annotations/readOnlyHint",
        ChangeClass::Trust,
    ),
    (
        "annotations.title poisoned",
        Facet::Annotations,
        "/annotations/title",
        ChangeClass::Trust,
    ),
    (
        "enum added to to",
        Facet::Input,
        "/inputSchema/properties/to/enum",
        ChangeClass::Breaking,
    ),
    (
        "required added",
        Facet::Input,
        "/inputSchema/required",
        ChangeClass::Breaking,
    ),
    (
        "outputSchema added",
        Facet::Output,
        "/outputSchema",
        ChangeClass::Structural,
    ),
    (
        "top-level title added",
        Facet::Title,
        "/title",
        ChangeClass::Trust,
    ),
    (
        "_meta added",
        Facet::Meta,
        "/_meta",
        ChangeClass::Behavioural,
    ),
];

#[derive(serde::Deserialize)]
struct Vectors {
    base: Value,
    cases: Vec<Case>,
}

#[derive(serde::Deserialize)]
struct Case {
    name: String,
    definition: Value,
}

#[test]
fn every_mutation_is_noticed_and_classified() {
    let Some(vectors) = toolwarden_testkit::read_vectors("mutations.json") else {
        return;
    };
    let vectors: Vectors = serde_json::from_value(vectors).unwrap();
    assert_eq!(drift(&vectors.base, &vectors.base).changes, []);
    assert_eq!(vectors.cases.len(), EXPECTED.len());
    for (case, (name, facet, pointer, class)) in vectors.cases.iter().zip(EXPECTED) {
        assert_eq!(case.name, *name);
        let drift = drift(&vectors.base, &case.definition);
        let told: Vec<_> = drift
            .changes
            .iter()
            .map(|change| (change.evidence.facet, change.pointer.as_str(), change.class))
            .collect();
        let mut expected = vec![(*facet, *pointer, *class)];
        if *facet == Facet::Output {
            // The promise comes with a text.
            let text = "/outputSchema/properties/x/description";
            expected.insert(0, (*facet, text, ChangeClass::Trust));
        }
        if *name == "enum added to to" {
            // The only value is an address.
            let address = "/inputSchema/properties/to/enum/0";
            expected.push((*facet, address, ChangeClass::Trust));
        }
        assert_eq!(told, expected, "{name}: {drift:#?}");
        if *class == ChangeClass::Breaking {
            assert!(drift.input.is_some(), "{name}");
        }
    }
}
