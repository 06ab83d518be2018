//! Results that all fail, are all empty, or are all of another type.

use serde_json::{Value, json};
use toolwarden_drift::shape::{Significance, compare, compare_exactly};
use toolwarden_drift::{ChangeClass, Drift};

use super::shape_of;

fn class(baseline: &[Value], window: &[Value], exact: bool) -> Option<ChangeClass> {
    let (baseline, window) = (shape_of(baseline), shape_of(window));
    let compared = if exact {
        compare_exactly(&baseline, &window)
    } else {
        compare(&baseline, &window, &Significance::default())
    };
    Drift::of_results("t", Some(compared), Vec::new()).class()
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn error() -> Value {
    json!({"content": [{"type": "text", "text": "no"}], "isError": true})
}

#[test]
fn results_that_all_fail_are_breaking_at_any_count() {
    for (before, now) in [(1, 1), (1, 5), (5, 1), (5, 5), (120, 40)] {
        for exact in [false, true] {
            let found = class(&vec![text("a"); before], &vec![error(); now], exact);
            assert_eq!(found, Some(ChangeClass::Breaking), "{before} {now} {exact}");
        }
    }
    let some = [vec![text("a"); 4], vec![error()]].concat();
    assert_eq!(
        class(&vec![text("a"); 5], &some, true),
        Some(ChangeClass::Breaking)
    );
    // One failure among few results may be chance, and so may a tool that failed before.
    assert_eq!(class(&vec![text("a"); 5], &some, false), None);
    assert_eq!(class(&some, &[error()], false), None);
}

#[test]
fn results_that_are_all_empty_or_null_are_breaking() {
    let empty = json!({"content": []});
    let structured = |value: Value| json!({"content": [], "structuredContent": value});
    let cases = [
        (text("a"), empty),
        (structured(json!({"a": 1})), structured(Value::Null)),
        (json!({"a": 1}), Value::Null),
        (json!({"a": 1}), json!("gone")),
        (json!([{"a": 1}]), json!({"a": 1})),
    ];
    for (before, now) in cases {
        let (few, many) = (3, 40);
        for count in [few, many] {
            let found = class(
                &vec![before.clone(); count],
                &vec![now.clone(); count],
                false,
            );
            assert_eq!(found, Some(ChangeClass::Breaking), "{before} {now} {count}");
        }
        let found = class(
            std::slice::from_ref(&before),
            std::slice::from_ref(&now),
            true,
        );
        assert_eq!(found, Some(ChangeClass::Breaking), "{before} {now}");
        // One against one may be chance.
        assert_eq!(class(&[before], &[now], false), None);
    }
}
