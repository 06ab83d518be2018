//! Keys that a pattern or a map declared, and that nothing declares any more.

use serde_json::{Value, json};
use toolwarden_drift::{CallEffect, Change, ChangeClass, Options, compare};

use crate::{drift, observed};

fn tool(extra: Value) -> Value {
    let mut schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let members = schema.as_object_mut().unwrap();
    members.extend(extra.as_object().unwrap().clone());
    json!({"name": "t", "description": "d", "inputSchema": schema})
}

fn ignored(changes: &[Change]) -> Vec<(&str, Value, String)> {
    let ignored = changes.iter().filter(|it| it.class == ChangeClass::Ignored);
    let calls = ignored.map(|it| match &it.evidence.effect {
        Some(CallEffect::Ignored { call, pointer }) => {
            (it.message.as_str(), call.clone(), pointer.to_string())
        }
        other => panic!("{other:?}"),
    });
    calls.collect()
}

#[test]
fn keys_whose_declaration_is_gone_are_ignored() {
    let new = tool(json!({}));
    for (keyword, schema, call, place) in [
        (
            "patternProperties",
            json!({"^x-": {"type": "string"}}),
            json!({"x-aa": "a"}),
            "/x-aa",
        ),
        (
            "additionalProperties",
            json!({"type": "string"}),
            json!({"key": "a"}),
            "/key",
        ),
        (
            "unevaluatedProperties",
            json!({"type": "string"}),
            json!({"key": "a"}),
            "/key",
        ),
        (
            "additionalProperties",
            json!({"description": "A header to send"}),
            json!({"key": ""}),
            "/key",
        ),
    ] {
        let found = drift(&tool(json!({keyword: schema})), &new);
        let message = format!(
            "`{keyword}` of the schema was removed: keys that it declared are still accepted, and no longer read"
        );
        assert_eq!(
            ignored(&found.changes),
            [(message.as_str(), call, place.to_owned())],
            "{found:#?}"
        );
    }
}

#[test]
fn keys_of_a_nested_object_or_behind_a_reference_are_ignored_too() {
    let nested = |extra: Value| {
        let inner = tool(extra)["inputSchema"].clone();
        json!({"name": "t", "inputSchema": {"type": "object",
            "properties": {"list": {"type": "array", "items": {"$ref": "#/$defs/I"}}},
            "$defs": {"I": inner}}})
    };
    let old = nested(json!({"patternProperties": {"^x-": {"type": "integer"}}}));
    let found = drift(&old, &nested(json!({})));
    let calls: Vec<(Value, String)> = ignored(&found.changes)
        .into_iter()
        .map(|(_, call, place)| (call, place))
        .collect();
    assert_eq!(
        calls,
        [(json!({"list": [{"x-aa": 1}]}), "/list/0/x-aa".to_owned())],
        "{found:#?}"
    );
}

#[test]
fn a_pattern_that_matches_other_keys_ignores_the_former_ones() {
    let with = |pattern: &str| tool(json!({"patternProperties": {pattern: {"type": "string"}}}));
    let found = drift(&with("^x-"), &with("^y-"));
    let calls: Vec<Value> = ignored(&found.changes)
        .into_iter()
        .map(|(_, call, _)| call)
        .collect();
    assert_eq!(calls, [json!({"x-aa": "a"})], "{found:#?}");
}

#[test]
fn keys_that_are_still_declared_are_not_ignored() {
    for (old, new) in [
        // What declared nothing is not lost.
        (json!({"additionalProperties": {}}), json!({})),
        (json!({"additionalProperties": true}), json!({})),
        (json!({"patternProperties": {"^x-": {}}}), json!({})),
        // Another declaration of the same keys.
        (
            json!({"additionalProperties": {"type": "string"}}),
            json!({"unevaluatedProperties": {"type": "string"}}),
        ),
        (
            json!({"additionalProperties": {"type": "string"}}),
            json!({"patternProperties": {"": {"type": "string"}}}),
        ),
        (
            json!({"patternProperties": {"^x-": {"type": "string"}}}),
            json!({"patternProperties": {"^x": {"type": "string"}}}),
        ),
        (
            json!({"patternProperties": {"^x-": {"type": "string"}}}),
            json!({"allOf": [{"patternProperties": {"^x-": {"type": "string"}}}]}),
        ),
        // The author says that further keys are welcome.
        (
            json!({"additionalProperties": {"type": "string"}}),
            json!({"additionalProperties": true}),
        ),
    ] {
        let found = drift(&tool(old.clone()), &tool(new.clone()));
        assert_eq!(ignored(&found.changes), [], "{old} {new}");
    }
    // A map of texts that becomes a map of anything.
    let map = |map: Value| tool(json!({"properties": {"map": map}}));
    let found = drift(
        &map(json!({"type": "object", "additionalProperties": {"type": "string"}})),
        &map(json!({"type": "object"})),
    );
    assert_eq!(found.class(), Some(ChangeClass::Widened), "{found:#?}");
}

#[test]
fn recorded_calls_with_such_keys_are_named() {
    let old = tool(json!({"patternProperties": {"^x-": {"type": "string"}}}));
    let new = tool(json!({}));
    let calls = [json!({"a": "b"}), json!({"x-tenant": "acme"})];
    let found = compare(
        &observed(&old),
        &observed(&new),
        &Options::default(),
        &calls,
    );
    let lost = found.input.unwrap().replay.unwrap().lost;
    let lost: Vec<(usize, &str)> = lost
        .iter()
        .map(|it| (it.index, it.pointer.as_str()))
        .collect();
    assert_eq!(lost, [(1, "/x-tenant")]);
}

#[test]
fn a_schema_that_accepted_everything_before_does_not_lose_its_promise() {
    let old = json!({"name": "t", "inputSchema": {"type": "object", "properties": {"a": {}}}});
    let new = json!({"name": "t", "inputSchema": {"type": "object"}});
    let found = drift(&old, &new);
    let calls: Vec<Value> = ignored(&found.changes)
        .into_iter()
        .map(|(_, call, _)| call)
        .collect();
    assert_eq!(calls, [json!({"a": ""})], "{found:#?}");
    assert_eq!(found.class(), Some(ChangeClass::Ignored));
}
