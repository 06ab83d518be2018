//! Documents that state the same route in other words, or another route.

use serde_json::{Value, json};
use toolwarden_drift::{ChangeClass, Drift};

use crate::drift;

fn compared(old: Value, new: Value) -> Drift {
    let tool = |document: Value| json!({"name": "t", "inputSchema": {"type": "object"}, "extensions/raw": {"document": document}});
    drift(&tool(old), &tool(new))
}

fn is_same_route(found: &Drift) -> bool {
    !found.changes.is_empty() && found.changes.iter().all(|it| it.rule == "same-route")
}

#[test]
fn another_name_of_a_scheme_is_the_same_route() {
    let document = |name: &str| {
        json!({
            "security": [{name: []}],
            "components": {"securitySchemes": {name: {"type": "http", "scheme": "bearer"}}}})
    };
    let found = compared(document("a"), document("b"));
    assert!(is_same_route(&found), "{found:#?}");
}

#[test]
fn a_replaced_scheme_without_a_type_is_another_route() {
    let card = |scheme: Value| json!({"securitySchemes": {"k": scheme}});
    let header = || card(json!({"apiKeySecurityScheme": {"location": "header", "name": "X"}}));
    for other in [
        json!({"apiKeySecurityScheme": {"location": "query", "name": "X"}}),
        json!({"mtlsSecurityScheme": {}}),
    ] {
        let found = compared(header(), card(other));
        assert_eq!(found.class(), Some(ChangeClass::Behavioural), "{found:#?}");
        assert!(
            found.changes.iter().all(|it| it.rule != "same-route"),
            "{found:#?}"
        );
    }
}

#[test]
fn a_scheme_replaced_beside_a_reference_is_another_route() {
    let document = |place: &str| {
        json!({
            "security": [{"key": []}],
            "components": {"securitySchemes": {
                "key": {"type": "apiKey", "in": place, "name": "k"},
                "o": {"$ref": "#/components/x-s/o"}}}})
    };
    let found = compared(document("header"), document("query"));
    assert_eq!(found.class(), Some(ChangeClass::Behavioural), "{found:#?}");
    assert!(
        found.changes.iter().all(|it| it.rule != "same-route"),
        "{found:#?}"
    );
}

#[test]
fn other_components_are_not_a_route_in_other_words() {
    let document = |kind: &str, content: Value| {
        json!({
            "security": [{"key": []}],
            "components": {
                "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "k"}},
                kind: content}})
    };
    for (kind, old, new) in [
        (
            "requestBodies",
            json!({"B": {"content": {}}}),
            json!({"B": {"content": {}, "required": true}}),
        ),
        (
            "pathItems",
            json!({"Y": {"servers": [{"url": "/v1"}]}}),
            json!({"Y": {"servers": [{"url": "/admin"}]}}),
        ),
        (
            "callbacks",
            json!({"C": {"/a": {"post": {"requestBody": {"content": {}}}}}}),
            json!({"C": {"/a": {"post": {"requestBody": {"content": {}, "required": true}}}}}),
        ),
    ] {
        let found = compared(document(kind, old), document(kind, new));
        assert!(
            found.class() >= Some(ChangeClass::Behavioural),
            "{found:#?}"
        );
        assert!(
            found.changes.iter().all(|it| it.rule != "same-route"),
            "{found:#?}"
        );
    }
    let headers = json!({"components": {"headers": {"H": {"required": true}}}});
    let found = compared(json!({}), headers);
    assert_eq!(found.class(), Some(ChangeClass::Behavioural), "{found:#?}");
    assert!(
        found.changes.iter().all(|it| it.rule != "same-route"),
        "{found:#?}"
    );
}
