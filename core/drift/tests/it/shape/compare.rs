//! Checks the full output of a comparison.

use serde_json::{Value, json};
use toolwarden_drift::shape::{
    Certainty, Shape, ShapeDrift, ShapeLimit, ShapeSide, Significance, ValueKey, compare,
    compare_exactly,
};

use super::{key, shape_of};

fn repeated(result: &Value, times: usize) -> Vec<Value> {
    vec![result.clone(); times]
}

fn drift(baseline: &[Value], window: &[Value]) -> ShapeDrift {
    compare(
        &shape_of(baseline),
        &shape_of(window),
        &Significance::default(),
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
fn each_kind_of_change_is_reported_once() {
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
fn few_results_are_not_measured() {
    let cases = [
        (json!({"a": 1}), json!({"a": "x"})),
        (json!({"a": 1}), json!({"a": null})),
        (json!({"a": {"b": 1}}), json!({"a": null})),
        (json!({"a": null}), json!({"a": {"b": 1}})),
        (json!({"a": 1, "b": 2}), json!({"a": 1})),
        (json!({"a": 1}), json!({"a": 1})),
    ];
    for (before, now) in &cases {
        for (many, few) in [(1, 1), (5, 5), (6, 6), (30, 1)] {
            let found = drift(&repeated(before, many), &repeated(now, few));
            let context = format!("{many} of {before} against {few} of {now}");
            // A type that 30 results did not have is news by rule.
            if many == 30 && *now == json!({"a": "x"}) {
                assert!(found.too_few().is_none(), "{context}");
                continue;
            }
            assert_eq!(changes(&found), [""; 0], "{context}");
            assert!(found.too_few().is_some(), "{context}");
        }
    }
    let found = drift(&[json!({"a": 1})], &[json!({"a": 2})]);
    assert_eq!(
        found.too_few().map(ToString::to_string).as_deref(),
        Some("too few results to exclude chance: 1 against 1 in the baseline; 9 against 9 suffice")
    );
    // Exactly the required number of results suffices.
    let found = drift(
        &repeated(&json!({"a": 1}), 9),
        &repeated(&json!({"a": "x"}), 9),
    );
    assert_eq!(
        changes(&found),
        ["value: `/a`: new type string: 9 of 9 now, 0 of 9 in the baseline"]
    );
}

#[test]
fn other_members_altogether_are_drift_at_any_count() {
    let order = json!({"id": 7, "status": "open", "owner": {"login": "ada", "mail": "a"}});
    let error = json!({"error": "backend gone"});
    for (many, few) in [(1, 1), (5, 5), (120, 1)] {
        let found = drift(&repeated(&order, many), &repeated(&error, few));
        assert_eq!(
            changes(&found),
            [format!(
                "! value: `the whole`: every member was replaced: {few} of {few} now, 0 of {many} in the baseline (gone: `id`, `owner`, `status`; new: `error`)"
            )]
        );
    }
    // In the text of an MCP result too, and in lists.
    let text = |value: &Value| json!({"content": [{"type": "text", "text": value.to_string()}]});
    let found = drift(&[text(&order)], &[text(&error)]);
    assert!(changes(&found)[0].starts_with("! json: `the whole`: every member was replaced"));
    let found = drift(&[json!([order, order])], &[json!([error])]);
    assert!(changes(&found)[0].starts_with("! value: `/[]`: every member was replaced"));

    // In a nested object, three results must show that it is not a map.
    let inside = |owner: Value| json!({"id": 7, "owner": owner});
    let (before, now) = (
        inside(json!({"login": "ada"})),
        inside(json!({"name": "ada"})),
    );
    assert_eq!(
        changes(&drift(&repeated(&before, 2), std::slice::from_ref(&now))),
        [""; 0]
    );
    let found = drift(&repeated(&before, 3), &[now]);
    assert!(changes(&found)[0].starts_with("! value: `/owner`: every member was replaced"));
    // A map has other members every time.
    let maps = [json!({"eur": 1}), json!({"usd": 2})];
    assert_eq!(changes(&drift(&maps, &[json!({"gbp": 3})])), [""; 0]);
    // Errors take many forms, and an object may be empty.
    let failed =
        |value: &Value| json!({"isError": true, "content": [], "structuredContent": value});
    assert_eq!(
        changes(&drift(&[failed(&order)], &[failed(&error)])),
        [""; 0]
    );
    assert_eq!(changes(&drift(&[order], &[json!({})])), [""; 0]);
}

#[test]
fn a_null_is_a_missing_value_and_no_type() {
    check(
        &json!({"a": null}),
        &json!({"a": {"b": 1}}),
        &["value: `/a`: type null no longer seen: 0 of 40 now, 120 of 120 in the baseline"],
    );
    check(
        &json!({"a": {"b": 1}}),
        &json!({"a": null}),
        &["! value: `/a`: new type null: 40 of 40 now, 0 of 120 in the baseline"],
    );
    // Both come in the baseline: neither is news.
    let either = [
        repeated(&json!({"a": null}), 60),
        repeated(&json!({"a": {"b": 1}}), 60),
    ]
    .concat();
    let found = drift(&either, &repeated(&json!({"a": {"b": 1}}), 5));
    assert_eq!(changes(&found), [""; 0]);
    // Nulls do not hide another type.
    let nulls = [
        repeated(&json!({"a": null}), 100),
        repeated(&json!({"a": 1}), 40),
    ]
    .concat();
    let found = drift(&nulls, &repeated(&json!({"a": "x"}), 40));
    assert_eq!(
        changes(&found),
        ["! value: `/a`: new type string: 40 of 40 now, 0 of 40 in the baseline"]
    );
}

#[test]
fn a_date_that_is_written_otherwise_is_seen() {
    let layouts = [
        ("2026-11-16T05:01:35Z", "date-time"),
        ("2026-11-16T05:01:35.123Z", "date-time-fraction"),
        ("2026-11-16T05:01:35+02:00", "date-time-offset"),
        ("2026-11-16T05:01:35", "date-time-local"),
        ("2026-11-16 05:01:35", "date-time-space"),
        ("2026-11-16", "date"),
        ("11/16/2026", "date-slash"),
        ("16.11.2026", "date-dot"),
        ("16-11-2026", "date-dash"),
        ("Nov 16, 2026", "date-named"),
        ("1794805295", "integer"),
    ];
    for (before, _) in layouts {
        for (now, format) in layouts.iter().filter(|(now, _)| *now != before) {
            let found = drift(
                &repeated(&json!({"at": before}), 10),
                &repeated(&json!({"at": now}), 10),
            );
            assert_eq!(
                changes(&found),
                [format!(
                    "value: `/at`: new format {format}: 10 of 10 now, 0 of 10 in the baseline"
                )],
                "{before} {now}"
            );
        }
    }
}

#[test]
fn fixtures_are_compared_exactly() {
    let exactly = |before: &[Value], now: &[Value]| {
        let found = compare_exactly(&shape_of(before), &shape_of(now));
        assert!(found.too_few().is_none());
        changes(&found)
    };
    let order = json!({"id": 7, "status": "open", "at": "2026-11-16", "note": null});
    let same = json!({"id": 9, "status": "open", "at": "2026-11-17", "note": null});
    assert_eq!(
        exactly(std::slice::from_ref(&order), std::slice::from_ref(&same)),
        [
            "! value: `/at`: other content than in the baseline",
            "! value: `/id`: new value: 1 of 1 now, 0 of 1 in the baseline",
        ]
    );
    let one = |name: &str, value: Value| {
        let mut order = order.clone();
        order[name] = value;
        order
    };
    for (now, expected) in [
        (order.clone(), vec![]),
        (
            one("id", json!("7")),
            vec!["! value: `/id`: new type string"],
        ),
        (
            one("status", json!("OPEN")),
            vec!["! value: `/status`: new value"],
        ),
        (
            one("at", json!("16.11.2026")),
            vec!["! value: `/at`: new format date-dot"],
        ),
        (
            one("note", json!({"text": "x"})),
            vec!["! value: `/note`: type null no longer seen"],
        ),
        (one("tax", json!(1)), vec!["! value: `/tax`: new member"]),
        (
            json!({"status": "open", "at": "2026-11-16", "note": null}),
            vec!["! value: `/id`: share of results with this member"],
        ),
        (
            json!({"error": "x"}),
            vec!["! value: `the whole`: every member was replaced"],
        ),
    ] {
        let found = exactly(std::slice::from_ref(&order), std::slice::from_ref(&now));
        let starts = found.len() == expected.len()
            && found
                .iter()
                .zip(&expected)
                .all(|(found, start)| found.starts_with(start));
        assert!(starts, "{now}: {found:?}");
    }
    // Two calls with different answers: as many of each as before.
    let other = json!({"id": 7, "status": "open"});
    let both = [order.clone(), other.clone()];
    assert_eq!(exactly(&both, &both), [""; 0]);
    assert!(!exactly(&both, &[order.clone(), order.clone()]).is_empty());
    // A call that is missing is a difference too.
    for one in [order, other] {
        assert_eq!(
            exactly(&both, &[one]),
            [
                "! the baseline has 2 fixtures and this check has 1: 1 of the baseline have no equal now, 0 are new"
            ]
        );
    }
}

#[test]
fn limits_say_what_cannot_be_measured() {
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
        "the baseline has no results, so nothing can be compared"
    );

    let mut deep = json!(1);
    for _ in 0..20 {
        deep = json!([deep]);
    }
    let found = drift(&[json!(1)], &[deep]);
    assert_eq!(found.limits[2], ShapeLimit::Truncated(ShapeSide::Window));
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
        let found = compare(&baseline, &window, &Significance::default());
        assert_eq!(
            changes(&found),
            ["value: `/b`: type null no longer seen: 0 of 40 now, 120 of 120 in the baseline"]
        );
        assert_eq!(found.limits[2..], [ShapeLimit::NoValues]);
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
    assert!(
        found
            .limits
            .contains(&ShapeLimit::Truncated(ShapeSide::Window))
    );
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
            &Significance {
                look,
                ..Significance::default()
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
