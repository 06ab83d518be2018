//! What a comparison says, in full.

use serde_json::{Value, json};
use toolwarden_drift::shape::{
    Certainty, Confidence, Limit, Shape, ShapeDrift, Side, ValueKey, compare,
};

use super::{key, shape_of};

fn repeated(result: &Value, times: usize) -> Vec<Value> {
    vec![result.clone(); times]
}

fn drift(baseline: &[Value], window: &[Value]) -> ShapeDrift {
    compare(
        &shape_of(baseline),
        &shape_of(window),
        &Confidence::default(),
    )
}

/// The messages of changes, with `!` before the certain ones.
fn changes(drift: &ShapeDrift) -> Vec<String> {
    let mark = |certainty| {
        if certainty == Certainty::Certain {
            "! "
        } else {
            ""
        }
    };
    drift
        .changes
        .iter()
        .map(|change| format!("{}{}", mark(change.certainty), change.message))
        .collect()
}

fn notes(drift: &ShapeDrift) -> Vec<&str> {
    drift
        .notes
        .iter()
        .map(|note| note.message.as_str())
        .collect()
}

fn check(baseline: &Value, window: &Value, expected: &[&str]) {
    let found = drift(&repeated(baseline, 120), &repeated(window, 40));
    assert_eq!(changes(&found), expected, "{baseline} {window}");
}

#[test]
fn each_kind_of_change_is_told_once() {
    check(
        &json!({"a": 1}),
        &json!({"a": 2}),
        &["value: `/a`: new value: 40 of 40 now, 0 of 120 in the baseline"],
    );
    check(
        &json!({"a": 10_000}),
        &json!({"a": 90_000}),
        &["value: `/a`: share of numbers from 2^16: 40 of 40 now, 0 of 120 in the baseline"],
    );
    check(
        &json!({"a": 1}),
        &json!({"a": "x"}),
        &["! value: `/a`: new type string: 40 of 40 now, 0 of 120 in the baseline"],
    );
    check(
        &json!({"a": 1}),
        &json!({"a": null}),
        &["! value: `/a`: new type null: 40 of 40 now, 0 of 120 in the baseline"],
    );
    check(
        &json!({"a": {"b": 1}}),
        &json!({}),
        &[
            "! value: `/a`: lacking where it was always there: 40 of 40 now, 0 of 120 in the baseline",
        ],
    );
    check(
        &json!({}),
        &json!({"a": {"b": {"c": 1}}}),
        &["value: `/a`: new member: 40 of 40 now, 0 of 120 in the baseline"],
    );
    check(
        &json!({"a": "2026-11-16"}),
        &json!({"a": "16.11.26"}),
        &["value: `/a`: new format word: 40 of 40 now, 0 of 120 in the baseline"],
    );
    check(
        &json!({"a": [1]}),
        &json!({"a": [1, 1, 1]}),
        &["value: `/a`: share of lengths from 2: 40 of 40 now, 0 of 120 in the baseline"],
    );
    check(
        &json!([{"a": 1}]),
        &json!([{"a": 1}, {}]),
        &[
            "value: `the whole`: share of lengths from 2: 40 of 40 now, 0 of 120 in the baseline",
            "! value: `/[]/a`: lacking where it was always there: 40 of 40 now, 0 of 120 in the baseline",
        ],
    );
    check(
        &json!({"a/b": 1}),
        &json!({"a/b": "x"}),
        &["! value: `/a~1b`: new type string: 40 of 40 now, 0 of 120 in the baseline"],
    );
    check(
        &json!({"a": 1, "b": [true, "x"]}),
        &json!({"a": 1, "b": [true, "x"]}),
        &[],
    );
}

#[test]
fn integers_are_numbers() {
    check(&json!({"a": 22}), &json!({"a": 22.0}), &[]);
    let window = [
        repeated(&json!({"a": 22}), 39),
        repeated(&json!({"a": 22.5}), 1),
    ]
    .concat();
    assert_eq!(
        changes(&drift(&repeated(&json!({"a": 22}), 120), &window)),
        [""; 0]
    );
    check(
        &json!({"a": 22}),
        &json!({"a": 22.5}),
        &["value: `/a`: share of numbers with a fraction: 40 of 40 now, 0 of 120 in the baseline"],
    );
}

#[test]
fn a_certain_change_says_how_likely_chance_is() {
    let window = [
        repeated(&json!({"a": 1}), 49),
        repeated(&json!({"a": "x"}), 1),
    ]
    .concat();
    let found = drift(&repeated(&json!({"a": 1}), 100), &window);
    assert_eq!(
        changes(&found),
        ["! value: `/a`: new type string: 1 of 50 now, 0 of 100 in the baseline"]
    );
    assert!((found.changes[0].chance() - 1.0 / 3.0).abs() < 1e-9);
}

#[test]
fn errors_do_not_hide_what_else_changed() {
    let good = json!({"content": [{"type": "text", "text": "fine"}]});
    let bad = json!({"content": [{"type": "text", "text": "broken"}], "isError": true});
    let window = [repeated(&good, 20), repeated(&bad, 20)].concat();
    assert_eq!(
        changes(&drift(&repeated(&good, 120), &window)),
        ["error: `the whole`: share of errors: 20 of 40 now, 0 of 120 in the baseline"]
    );
}

#[test]
fn channels_come_and_go() {
    let text = json!({"content": [{"type": "text", "text": "fine"}]});
    let both =
        json!({"content": [{"type": "text", "text": "{\"a\":1}"}], "structuredContent": {"a": 1}});
    check(
        &text,
        &both,
        &[
            "structured: `the whole`: share of results with this part: 40 of 40 now, 0 of 120 in the baseline",
            "text: `the whole`: share of results with this part: 0 of 40 now, 120 of 120 in the baseline",
        ],
    );
    // The text repeats `structuredContent`, the report does not.
    let other = json!({"content": [{"type": "text", "text": "{\"a\":\"x\"}"}], "structuredContent": {"a": "x"}});
    check(
        &both,
        &other,
        &["! structured: `/a`: new type string: 40 of 40 now, 0 of 120 in the baseline"],
    );
}

#[test]
fn too_little_evidence_is_a_note() {
    let baseline = repeated(&json!({"a": "x"}), 5);
    let window = [
        json!({"a": "x"}),
        json!({"a": "x"}),
        json!({"a": 1, "b": 2}),
    ];
    let found = drift(&baseline, &window);
    assert_eq!(changes(&found), [""; 0]);
    assert_eq!(
        notes(&found),
        [
            "value: `/a`: new type number: 1 of 3 now, 0 of 5 in the baseline",
            "value: `/a`: new value: 1 of 3 now, 0 of 5 in the baseline",
            "value: `/b`: new member: 1 of 3 now, 0 of 5 in the baseline",
        ]
    );
}

#[test]
fn limits_say_what_cannot_be_told() {
    let found = drift(&repeated(&json!(1), 40), &repeated(&json!(1), 10));
    let limits: Vec<String> = found.limits.iter().map(ToString::to_string).collect();
    assert_eq!(
        limits,
        [
            "what 40 results of the baseline did not show may still be in up to 7.2 % of them",
            "what 10 results of the window did not show may still be in up to 25.9 % of them",
        ]
    );
    let nothing = drift(&[], &repeated(&json!(1), 10));
    assert!(nothing.is_empty());
    assert_eq!(
        nothing.limits[0].to_string(),
        "the baseline has no results, so nothing can be told"
    );

    let mut deep = json!(1);
    for _ in 0..20 {
        deep = json!([deep]);
    }
    let found = drift(&[json!(1)], &[deep]);
    assert_eq!(found.limits[2..], [Limit::Truncated(Side::Window)]);
}

#[test]
fn values_under_different_keys_are_not_compared() {
    let other_key = ValueKey::new([1; 16]);
    let mut window = Shape::new(other_key.id());
    for _ in 0..40 {
        window.observe(&json!({"a": "abce", "b": 1}), &other_key);
    }
    let baseline = shape_of(&repeated(&json!({"a": "abcd", "b": null}), 120));
    for baseline in [baseline.clone(), baseline.without_values()] {
        let found = compare(&baseline, &window, &Confidence::default());
        assert_eq!(
            changes(&found),
            ["! value: `/b`: new type number: 40 of 40 now, 0 of 120 in the baseline"]
        );
        assert_eq!(found.limits[2..], [Limit::NoValues]);
    }
}

#[test]
fn a_path_the_other_shape_had_no_room_for_is_not_missing() {
    let names = |from: u32, to: u32| -> Value {
        (from..to)
            .map(|at| {
                (
                    format!("name{}", "x".repeat(at as usize % 50)) + &letters(at),
                    json!(1),
                )
            })
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    let (few, many) = (names(0, 100), names(0, 2000));
    let found = drift(
        &repeated(&few, 120),
        &[repeated(&few, 60), repeated(&many, 1)].concat(),
    );
    assert_eq!(changes(&found), [""; 0]);
    assert!(found.limits.contains(&Limit::Truncated(Side::Window)));
}

fn letters(number: u32) -> String {
    number
        .to_string()
        .bytes()
        .map(|digit| char::from(digit - b'0' + b'a'))
        .collect()
}

#[test]
fn later_looks_ask_for_more() {
    let baseline = shape_of(&repeated(&json!({}), 20));
    let window = shape_of(&[repeated(&json!({"a": 1}), 12), repeated(&json!({}), 8)].concat());
    let look = |look| {
        compare(
            &baseline,
            &window,
            &Confidence {
                look,
                ..Confidence::default()
            },
        )
        .changes
        .len()
    };
    assert_eq!((look(1), look(1000)), (1, 0));
    let mut with_key = baseline.clone();
    with_key.observe(&json!({}), &key());
    assert_eq!(with_key.results(), 21);
}
