//! Fingerprints tell which facet changed, and which changes mean nothing.

use serde_json::{Value, json};
use toolwarden_drift::{Facet, FacetFingerprints};

use crate::observed;

fn of(definition: &Value) -> FacetFingerprints {
    FacetFingerprints::of(&observed(definition))
}

/// The facets in which two definitions differ.
fn differing(old: &Value, new: &Value) -> Vec<Facet> {
    let (old, new) = (of(old), of(new));
    let facets = Facet::ALL.into_iter();
    facets
        .filter(|facet| old.facet(*facet) != new.facet(*facet))
        .collect()
}

fn base() -> Value {
    json!({
        "name": "send", "title": "Send", "description": "Send a message",
        "inputSchema": {"type": "object", "properties": {"to": {"anyOf": [{"type": "string"}, {"type": "null"}]}}, "required": ["to"]},
        "outputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": false},
        "_meta": {"a": 1}, "icons": [{"src": "https://example.com/i.png"}], "execution": {"taskSupport": "optional"}
    })
}

#[test]
fn each_facet_has_a_fingerprint_of_its_own() {
    for (key, value, facet) in [
        ("name", json!("post"), Facet::Name),
        ("title", json!("Post"), Facet::Title),
        ("description", json!("Post a message"), Facet::Description),
        ("inputSchema", json!({"type": "object"}), Facet::Input),
        ("outputSchema", json!({}), Facet::Output),
        (
            "annotations",
            json!({"readOnlyHint": true}),
            Facet::Annotations,
        ),
        ("_meta", json!({"a": 2}), Facet::Meta),
        ("icons", json!([]), Facet::Icons),
        (
            "execution",
            json!({"taskSupport": "required"}),
            Facet::Other,
        ),
        ("unheard-of", json!(1), Facet::Other),
    ] {
        let mut changed = base();
        changed[key] = value;
        assert_eq!(differing(&base(), &changed), [facet], "{key}");
        assert_ne!(of(&base()).whole, of(&changed).whole, "{key}");
    }
}

#[test]
fn defaults_of_hints_are_no_change() {
    let mut said = base();
    said["annotations"] = json!({"destructiveHint": true, "openWorldHint": true, "idempotentHint": false, "readOnlyHint": false});
    assert_eq!(differing(&base(), &said), []);
    let mut unsaid = base();
    unsaid.as_object_mut().unwrap().remove("annotations");
    assert_eq!(differing(&base(), &unsaid), []);
    assert_eq!(crate::drift(&base(), &unsaid).changes, []);
}

#[test]
fn what_schemas_mean_has_a_fingerprint_that_spelling_does_not_change() {
    let mut spelled = base();
    spelled["inputSchema"] = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "required": ["to"], "type": "object", "title": "Arguments",
        "properties": {"to": {"$ref": "#/definitions/To"}},
        "definitions": {"To": {"type": ["null", "string"], "description": "whom"}}
    });
    assert_eq!(differing(&base(), &spelled), [Facet::Input]);
    assert_eq!(of(&base()).input, of(&spelled).input);
    let mut narrowed = base();
    narrowed["inputSchema"]["properties"]["to"] = json!({"type": "string"});
    assert_ne!(of(&base()).input, of(&narrowed).input);
    let recursive = |name: &str, leaf: &str| {
        let reference = format!("#/$defs/{name}");
        json!({"name": "t", "inputSchema": {"$ref": reference, "$defs": {name: {"type": "object", "properties": {"v": {"type": leaf}, "next": {"$ref": reference}}}}}})
    };
    assert_eq!(
        of(&recursive("A", "string")).input,
        of(&recursive("B", "string")).input
    );
    assert_ne!(
        of(&recursive("A", "string")).input,
        of(&recursive("A", "integer")).input
    );
    assert!(of(&recursive("A", "string")).input.is_some());
}

#[test]
fn texts_are_fingerprinted_with_their_places() {
    let mut moved = base();
    moved["title"] = json!("Send a message");
    moved["description"] = json!("Send");
    assert_ne!(of(&base()).text, of(&moved).text);
    let mut number = base();
    number["_meta"]["a"] = json!(3);
    assert_eq!(of(&base()).text, of(&number).text);
}
