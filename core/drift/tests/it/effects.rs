//! Calls that are still accepted but have a different effect.

use serde_json::{Value, json};
use toolwarden_drift::{CallEffect, Change, ChangeClass, ChangeKind, Options, compare};

use crate::{drift, observed};

fn tool(properties: Value, annotations: Value) -> Value {
    json!({"name": "apply", "description": "Apply a plan", "annotations": annotations,
        "inputSchema": {"type": "object", "properties": properties}})
}

fn only(changes: &[Change]) -> &Change {
    assert_eq!(changes.len(), 1, "{changes:#?}");
    &changes[0]
}

fn ignored_call(change: &Change) -> (&Value, &str) {
    let Some(CallEffect::Ignored { call, pointer }) = &change.evidence.effect else {
        panic!("{change:#?}");
    };
    (call, pointer.as_str())
}

#[test]
fn a_renamed_switch_is_ignored_with_the_call_that_loses_it() {
    let old = tool(json!({"dryRun": {"type": "boolean"}}), json!({}));
    let new = tool(json!({"dry_run": {"type": "boolean"}}), json!({}));
    let renamed = drift(&old, &new);
    let change = only(&renamed.changes);
    assert_eq!(
        (change.kind, change.class),
        (ChangeKind::Renamed, ChangeClass::Ignored)
    );
    assert_eq!(
        change.message,
        "`dryRun` was renamed to `dry_run`: still accepted, and no longer read"
    );
    assert_eq!(ignored_call(change), (&json!({"dryRun": true}), "/dryRun"));
    assert_eq!(
        change.evidence.rename.as_ref().unwrap().adapter.as_deref(),
        Some(r#"{"dry_run": args["dryRun"]}"#)
    );
}

#[test]
fn what_is_dropped_anywhere_in_an_open_schema_is_ignored() {
    let nested = |properties: Value| {
        json!({"name": "t", "inputSchema": {"type": "object", "required": ["list"], "properties": {
            "list": {"type": "array", "minItems": 1, "items": {"type": "object", "properties": properties}}}}})
    };
    let old = nested(json!({"a": {"enum": ["x", "y"], "default": "x"}, "b": {"type": "string"}}));
    let new = nested(json!({"b": {"type": "string"}}));
    let dropped = drift(&old, &new);
    assert_eq!(
        ignored_call(only(&dropped.changes)),
        (&json!({"list": [{"a": "y"}]}), "/list/0/a")
    );
}

#[test]
fn what_is_declared_elsewhere_is_still_read() {
    let old =
        json!({"name": "t", "inputSchema": {"type": "object", "properties": {"a": {}, "b": {}}}});
    for input in [
        json!({"type": "object", "allOf": [{"properties": {"a": {}, "b": {}}}]}),
        json!({"type": "object", "$ref": "#/$defs/A", "$defs": {"A": {"properties": {"a": {}, "b": {}}}}}),
        json!({"type": "object", "properties": {"b": {}}, "additionalProperties": {"description": "any"}}),
    ] {
        let new = json!({"name": "t", "inputSchema": input});
        let moved = drift(&old, &new);
        assert!(
            moved
                .changes
                .iter()
                .all(|it| it.class != ChangeClass::Ignored),
            "{moved:#?}"
        );
    }
}

#[test]
fn a_closed_schema_rejects_instead() {
    let closed = |name: &str| {
        let mut tool = tool(json!({name: {"type": "boolean"}}), json!({}));
        tool["inputSchema"]["additionalProperties"] = json!(false);
        tool
    };
    let renamed = drift(&closed("dryRun"), &closed("dry_run"));
    assert_eq!(renamed.class(), Some(ChangeClass::Breaking));
}

#[test]
fn recorded_calls_that_lose_a_value_are_named() {
    let old = tool(
        json!({"dryRun": {"type": "boolean"}, "plan": {"type": "string"}}),
        json!({}),
    );
    let new = tool(
        json!({"dry_run": {"type": "boolean"}, "plan": {"type": "string"}}),
        json!({}),
    );
    let calls = [
        json!({"plan": "a"}),
        json!({"plan": "b", "dryRun": true}),
        json!({"dryRun": "no boolean"}),
    ];
    let replay = compare(
        &observed(&old),
        &observed(&new),
        &Options::default(),
        &calls,
    );
    let replayed = replay.input.unwrap().replay.unwrap();
    assert_eq!((replayed.accepted, replayed.rejected), (2, 0));
    let lost: Vec<_> = replayed
        .lost
        .iter()
        .map(|it| (it.index, it.pointer.as_str()))
        .collect();
    assert_eq!(lost, [(1, "/dryRun")]);
}

#[test]
fn a_changed_default_shows_both_calls_and_says_whether_it_is_safe() {
    let read_only = json!({"readOnlyHint": true});
    let cases = [
        (
            json!({"type": "boolean"}),
            json!(true),
            json!(false),
            read_only.clone(),
            true,
        ),
        (
            json!({"enum": ["dry", "wet"]}),
            json!("dry"),
            json!("wet"),
            read_only.clone(),
            true,
        ),
        (
            json!({"type": "integer"}),
            json!(1),
            json!(1000),
            json!({}),
            true,
        ),
        (
            json!({"type": "integer"}),
            json!(1),
            json!(1000),
            json!({"readOnlyHint": false}),
            true,
        ),
        (
            json!({"type": "integer"}),
            json!(1),
            json!(1000),
            read_only,
            false,
        ),
    ];
    for (schema, before, after, annotations, expected) in cases {
        let with = |default: &Value| {
            let mut schema = schema.clone();
            schema["default"] = default.clone();
            tool(json!({"n": schema}), annotations.clone())
        };
        let changed = drift(&with(&before), &with(&after));
        let change = only(&changed.changes);
        assert_eq!(
            (change.rule, change.class),
            ("default", ChangeClass::Behavioural)
        );
        let Some(CallEffect::Default { calls, .. }) = &change.evidence.effect else {
            panic!("{change:#?}");
        };
        assert_eq!(calls, &Some((json!({"n": before}), json!({"n": after}))));
        assert_eq!(
            change.evidence.is_unsafe_default(),
            expected,
            "{schema} {annotations}"
        );
    }
}

#[test]
fn a_default_that_is_only_written_down_or_required_is_safe() {
    let with = |schema: Value, required: Value| json!({"name": "t", "inputSchema": {"type": "object", "properties": {"n": schema}, "required": required}});
    let silent = with(json!({"type": "boolean"}), json!([]));
    let written = with(json!({"type": "boolean", "default": false}), json!([]));
    assert!(
        !only(&drift(&silent, &written).changes)
            .evidence
            .is_unsafe_default()
    );
    assert!(
        only(&drift(&written, &silent).changes)
            .evidence
            .is_unsafe_default()
    );
    let required =
        |default: bool| with(json!({"type": "boolean", "default": default}), json!(["n"]));
    assert!(
        !only(&drift(&required(true), &required(false)).changes)
            .evidence
            .is_unsafe_default()
    );
}
