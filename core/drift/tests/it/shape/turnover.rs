//! Results that all fail, are all empty, or are all of another type.

use serde_json::{Value, json};
use toolwarden_drift::shape::{Shape, Significance, compare, compare_exactly};
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

/// The same results in every part of a result that can hold them.
fn in_every_part(value: &Value) -> [Value; 4] {
    [
        value.clone(),
        json!({"page": {"found": value}}),
        json!({"content": [], "structuredContent": {"found": value}}),
        text(&json!({"found": value}).to_string()),
    ]
}

#[test]
fn answers_that_turned_into_nothing_are_breaking() {
    let cases = [
        (json!([1, 2]), json!([])),
        (json!([{"a": [1]}]), json!([])),
        (json!([{"a": [1]}]), json!([{"a": []}])),
        (json!({"ok": true}), json!({"ok": false})),
        (json!({"ok": false}), json!({"ok": true})),
        (json!([{"ok": true}]), json!([{"ok": false}])),
        (
            json!({"says": "fine"}),
            json!({"says": "Error: unauthorized"}),
        ),
        (json!({"says": "fine"}), json!({"says": "failed"})),
        (json!({"says": "fine"}), json!({"says": "  "})),
    ];
    for (before, now) in &cases {
        for (before, now) in in_every_part(before).iter().zip(&in_every_part(now)) {
            let found =
                |many, few| class(&vec![before.clone(); many], &vec![now.clone(); few], false);
            assert_eq!(found(60, 30), Some(ChangeClass::Breaking), "{before} {now}");
            assert_eq!(found(9, 9), Some(ChangeClass::Breaking), "{before} {now}");
            assert_eq!(found(3, 3), None, "{before} {now}");
            let few = compare(
                &shape_of(&vec![before.clone(); 3]),
                &shape_of(&vec![now.clone(); 3]),
                &Significance::default(),
            );
            let needed = "too few results to exclude chance: 3 against 3 in the baseline; 9 against 9 suffice";
            assert_eq!(
                few.too_few().map(ToString::to_string).as_deref(),
                Some(needed)
            );
        }
    }
}

#[test]
fn texts_that_turned_into_errors_are_breaking() {
    let fine = [
        text("12 degrees and rain"),
        text("14 degrees, clear"),
        text("9 degrees"),
    ];
    let fine: Vec<Value> = fine.iter().cycle().take(60).cloned().collect();
    for current in [
        "Error: unauthorized",
        "401 Unauthorized",
        "ValueError: no",
        "",
        " \n",
        "null",
    ] {
        let found = class(&fine, &vec![text(current); 30], false);
        assert_eq!(found, Some(ChangeClass::Breaking), "{current}");
    }
    assert_eq!(class(&fine, &fine[..30], false), None);
    // A tool that always spoke like this says nothing new.
    let same = vec![text("Error log of today: none"); 60];
    assert_eq!(class(&same, &same[..30], false), None);
    // A few more errors than before do not break its readers.
    let some = [vec![text("Error: busy"); 10], fine[..30].to_vec()].concat();
    assert_eq!(class(&fine, &some, false), Some(ChangeClass::Behavioural));
}

#[test]
fn a_map_that_is_always_empty_is_breaking() {
    let map = |index: usize| json!({"prices": {["eur", "usd", "gbp", "chf"][index % 4]: 1, ["sek", "nok"][index % 2]: 2}});
    let before: Vec<Value> = (0..120).map(map).collect();
    let now = vec![json!({"prices": {}}); 40];
    assert_eq!(class(&before, &now, false), Some(ChangeClass::Breaking));
    assert_eq!(class(&before, &before[..40], false), None);
}

#[test]
fn lists_that_were_often_empty_may_be_empty() {
    let before = [vec![json!([]); 40], vec![json!([1]); 40]].concat();
    assert_eq!(class(&before, &vec![json!([]); 6], false), None);
    // Shorter is not empty.
    let shorter = class(&vec![json!([1, 2]); 60], &vec![json!([1]); 30], false);
    assert_eq!(shorter, Some(ChangeClass::Behavioural));
}

/// A lock file has no hashes of values, and still counts booleans and errors.
#[test]
fn a_shape_without_values_shows_turned_booleans_and_errors() {
    for (before, now) in [
        (json!({"ok": true}), json!({"ok": false})),
        (json!({"says": "fine"}), json!({"says": "Error: no"})),
    ] {
        let (before, now) = (shape_of(&vec![before; 60]), shape_of(&vec![now; 30]));
        let found = compare(&before.without_values(), &now, &Significance::default());
        let class = Drift::of_results("t", Some(found), Vec::new()).class();
        assert_eq!(class, Some(ChangeClass::Breaking));
    }
}

/// Shapes of the first version have no counts of booleans and errors, which is not the same as none.
#[test]
fn a_shape_of_the_first_version_is_still_compared() {
    let first_version = |shape: &Shape| {
        let text = shape.to_json().to_string();
        let text = text
            .replace(r#""v":2"#, r#""v":1"#)
            .replace(r#""b":{"true":60},"#, "");
        let text = text.replace(r#""e":{"error":60},"#, "");
        let json = serde_json::from_str(&text).unwrap();
        Shape::from_json(&json).unwrap()
    };
    let result = json!({"ok": true, "says": "Error log"});
    let baseline = first_version(&shape_of(&vec![result.clone(); 60]));
    assert!(!baseline.to_json().to_string().contains("true"));
    let found = compare(
        &baseline,
        &shape_of(&vec![result.clone(); 30]),
        &Significance::default(),
    );
    assert_eq!(found.changes, []);
    let mut merged = baseline;
    merged.merge(&shape_of(&[result]));
    assert_eq!(merged.to_json()["v"], 1);
}

#[test]
fn fixtures_are_compared_exactly() {
    let order = |note: &str, total: f64, items: Value| json!({"note": note, "total": total, "items": items, "at": "2026-11-16"});
    let long = "a note that is much too long to be one of a few values of an enumeration";
    let before = [
        order(long, 10.25, json!([1, 2])),
        text("12 degrees and rain"),
    ];
    let changed = [
        vec![
            order(&long.replace("much", "far_"), 10.25, json!([1, 2])),
            before[1].clone(),
        ],
        vec![order(long, 10.75, json!([1, 2])), before[1].clone()],
        vec![order(long, 10.25, json!([1, 2, 2])), before[1].clone()],
        vec![order(long, 10.25, json!([2, 1])), before[1].clone()],
        vec![before[0].clone(), text("13 degrees and rain")],
        vec![before[0].clone()],
        vec![before[1].clone()],
        vec![before[0].clone(), before[0].clone(), before[1].clone()],
        vec![before[0].clone(), before[1].clone(), text("more")],
    ];
    for current in &changed {
        assert!(
            class(&before, current, true) >= Some(ChangeClass::Unknown),
            "{current:?}"
        );
    }
    let mut same = [before[1].clone(), before[0].clone()];
    same[0]["_meta"] = json!({"took": 3});
    assert_eq!(class(&before, &same, true), None);
}

#[test]
fn an_exact_comparison_names_the_place() {
    let found = |before: &[Value], now: &[Value]| -> Vec<String> {
        let drift = compare_exactly(&shape_of(before), &shape_of(now));
        drift.changes.into_iter().map(|it| it.message).collect()
    };
    let long = |word: &str| json!({"note": format!("{word} and {}", "more ".repeat(20))});
    assert_eq!(
        found(&[long("this")], &[long("that")]),
        ["value: `/note`: other content than in the baseline"]
    );
    assert_eq!(
        found(&[json!({"a": 1.25})], &[json!({"a": 1.75})]),
        ["value: `/a`: other content than in the baseline"]
    );
    assert_eq!(
        found(&[text("this")], &[text("that")]),
        ["text: `the whole`: other content than in the baseline"]
    );
    assert_eq!(
        found(&[json!([1, 1])], &[json!([1])]),
        ["value: `the whole`: share of lengths from 1: 1 of 1 now, 0 of 1 in the baseline"]
    );
    assert_eq!(
        found(&[json!([1, 2])], &[json!([2, 1])]),
        ["1 of 1 results differ in their order, or in values that a shape does not tell apart"]
    );
    assert_eq!(
        found(&[json!(1), json!(2)], &[json!(1)]),
        [
            "the baseline has 2 fixtures and this check has 1: 1 of the baseline have no equal now, 0 are new"
        ]
    );
}

#[test]
fn what_cannot_be_compared_exactly_is_not_measured() {
    let not_exact = |before: &Shape, now: &Shape| {
        let found = compare_exactly(before, now);
        assert_eq!(found.changes, []);
        found.too_few().map(ToString::to_string)
    };
    let expected = "the results cannot be compared exactly: one side has no hashes of them; \
                    a store has hashes of up to 32 results, a lock file or an older version has none";
    let (few, many) = (vec![json!({"a": 1}); 32], vec![json!({"a": 1}); 33]);
    assert_eq!(not_exact(&shape_of(&few), &shape_of(&few)), None);
    assert_eq!(
        not_exact(&shape_of(&many), &shape_of(&many)).as_deref(),
        Some(expected)
    );
    let locked = shape_of(&few).without_values();
    assert_eq!(
        not_exact(&locked, &shape_of(&few)).as_deref(),
        Some(expected)
    );
}
