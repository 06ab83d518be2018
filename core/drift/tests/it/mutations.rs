//! The 23 realistic mutations: each is noticed, at its place, and rightly classified.

use serde_json::Value;
use toolwarden_drift::{Class, Facet};

use crate::drift;

/// What a reader should be told of each mutation.
const EXPECTED: &[(&str, Facet, &str, Class)] = &[
    (
        "tool description changed",
        Facet::Description,
        "/description",
        Class::Trust,
    ),
    (
        "top-level param description poisoned",
        Facet::Input,
        "/inputSchema/properties/to/description",
        Class::Trust,
    ),
    (
        "nested param description poisoned",
        Facet::Input,
        "/inputSchema/properties/opts/properties/bcc/description",
        Class::Trust,
    ),
    (
        "array items description poisoned",
        Facet::Input,
        "/inputSchema/properties/tags/items/description",
        Class::Trust,
    ),
    (
        "nested param added",
        Facet::Input,
        "/inputSchema/properties/opts/properties/exfil",
        Class::Widened,
    ),
    (
        "pattern removed (allow-list dropped)",
        Facet::Input,
        "/inputSchema/properties/to/pattern",
        Class::Widened,
    ),
    (
        "maximum raised 10->1e6",
        Facet::Input,
        "/inputSchema/properties/n/maximum",
        Class::Widened,
    ),
    (
        "default changed 1->1000",
        Facet::Input,
        "/inputSchema/properties/n/default",
        Class::Behavioural,
    ),
    (
        "integer -> number",
        Facet::Input,
        "/inputSchema/properties/n/type",
        Class::Widened,
    ),
    (
        "additionalProperties false->true",
        Facet::Input,
        "/inputSchema/additionalProperties",
        Class::Widened,
    ),
    (
        "anyOf branch added (object)",
        Facet::Input,
        "/inputSchema/properties/u/anyOf",
        Class::Widened,
    ),
    (
        "param title poisoned",
        Facet::Input,
        "/inputSchema/properties/to/title",
        Class::Trust,
    ),
    (
        "schema-level description poisoned",
        Facet::Input,
        "/inputSchema/description",
        Class::Trust,
    ),
    (
        "examples poisoned",
        Facet::Input,
        "/inputSchema/properties/to/examples",
        Class::Trust,
    ),
    (
        "$defs/$comment poisoned",
        Facet::Input,
        "/inputSchema/$comment",
        Class::Trust,
    ),
    (
        "destructiveHint true->false",
        Facet::Annotations,
        "/annotations/destructiveHint",
        Class::Trust,
    ),
    (
        "readOnlyHint false->true",
        Facet::Annotations,
        "/annotations/readOnlyHint",
        Class::Trust,
    ),
    (
        "annotations.title poisoned",
        Facet::Annotations,
        "/annotations/title",
        Class::Trust,
    ),
    (
        "enum added to to",
        Facet::Input,
        "/inputSchema/properties/to/enum",
        Class::Breaking,
    ),
    (
        "required added",
        Facet::Input,
        "/inputSchema/required",
        Class::Breaking,
    ),
    (
        "outputSchema added",
        Facet::Output,
        "/outputSchema",
        Class::Structural,
    ),
    (
        "top-level title added",
        Facet::Title,
        "/title",
        Class::Trust,
    ),
    ("_meta added", Facet::Meta, "/_meta", Class::Behavioural),
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
    let Some(vectors) = toolwarden_testkit::vectors("mutations.json") else {
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
            .map(|change| (change.facet, change.pointer.as_str(), change.class))
            .collect();
        let mut expected = vec![(*facet, *pointer, *class)];
        if *facet == Facet::Output {
            // The promise comes with a text.
            let text = "/outputSchema/properties/x/description";
            expected.insert(0, (*facet, text, Class::Trust));
        }
        assert_eq!(told, expected, "{name}: {drift:#?}");
        if *class == Class::Breaking {
            assert!(drift.input.is_some(), "{name}");
        }
    }
}
