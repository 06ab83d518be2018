//! Annotations that cannot be read.

use serde_json::{Value, json};
use toolwarden_drift::ChangeClass;

use crate::drift;

fn class(before: Option<Value>, after: Value) -> Option<ChangeClass> {
    let mut old = json!({"name": "t", "inputSchema": {"type": "object"}});
    let mut new = old.clone();
    if let Some(before) = before {
        old["annotations"] = before;
    }
    new["annotations"] = after;
    drift(&old, &new).class()
}

#[test]
fn an_unreadable_hint_is_a_matter_of_trust() {
    for unreadable in [
        json!("false"),
        json!("true"),
        json!(0),
        json!(null),
        json!({}),
    ] {
        for before in [
            None,
            Some(json!({})),
            Some(json!({"destructiveHint": true})),
            Some(json!({"readOnlyHint": false})),
        ] {
            let after = json!({"destructiveHint": unreadable});
            assert_eq!(
                class(before, after),
                Some(ChangeClass::Trust),
                "{unreadable}"
            );
        }
    }
    let back = class(Some(json!({"destructiveHint": "false"})), json!({}));
    assert!(back >= Some(ChangeClass::Behavioural), "{back:?}");
}

#[test]
fn annotations_that_are_not_an_object_are_a_matter_of_trust() {
    for unreadable in [json!("readOnly"), json!(["readOnlyHint"]), json!(true)] {
        assert_eq!(
            class(None, unreadable.clone()),
            Some(ChangeClass::Trust),
            "{unreadable}"
        );
        let before = Some(json!({"destructiveHint": true}));
        assert_eq!(class(before, unreadable), Some(ChangeClass::Trust));
    }
    assert_eq!(class(None, json!(null)), None);
}
