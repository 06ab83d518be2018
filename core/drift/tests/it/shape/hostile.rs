//! Hostile results: arbitrary values, MCP results, floods, and files that are not shapes.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolwarden_drift::shape::{InvalidShape, MAX_BYTES, Shape};

use super::{bytes, key, shape_of};

#[test]
fn any_value_is_a_result() {
    let results = [
        json!(null),
        json!(true),
        json!(7),
        json!(7.5),
        json!("text"),
        json!([]),
        json!({}),
    ];
    let shape = shape_of(&results);
    assert_eq!(shape.results(), 7);
    assert_eq!(
        shape.without_values().to_json(),
        json!({"channels": {"value": {"results": 7, "root": {
            "a": {"0": 1},
            "b": {"true": 1},
            "f": {"word": 1},
            "l": {"4": 1},
            "m": {"2^2": 2},
            "n": 7,
            "t": {"z": 1, "b": 1, "n": 2, "d": 1, "s": 1, "a": 1, "o": 1},
        }}}, "key": null, "results": 7, "v": 2})
    );
}

#[test]
fn mcp_results_are_taken_apart() {
    let results = [
        json!({"content": [{"type": "text", "text": "two\nlines"}, {"type": "image", "data": "AAAA", "mimeType": "image/png"}]}),
        json!({"content": [{"type": "text", "text": "{\"a\":1}"}], "structuredContent": {"a": 1}, "isError": false}),
        json!({"content": [{"type": "text", "text": "no"}], "isError": true}),
        json!({"content": []}),
    ];
    let json = shape_of(&results).without_values().to_json();
    let member = |n: u64| json!({"all": n, "m": {"2^0": n}, "n": n, "t": {"n": n}});
    let object = json!({"results": 1, "root": {"c": {"a": member(1)}, "n": 1, "t": {"o": 1}}});
    let string = |format: &str, length: &str| json!({"all": 1, "f": {format: 1}, "l": {length: 1}, "n": 1, "t": {"s": 1}});
    assert_eq!(
        json["channels"],
        json!({
            "empty": {"results": 1},
            "error": {"results": 1, "root": {"f": {"ascii": 1}, "l": {"2": 1}, "n": 1, "r": {"1": 1}, "t": {"s": 1}}},
            "image": {"results": 1, "root": {"c": {
                "data": string("word", "4"),
                "mimeType": string("word", "8"),
                "type": string("word", "4"),
            }, "n": 1, "t": {"o": 1}}},
            "json": object,
            "structured": object,
            "text": {"results": 1, "root": {"f": {"ascii": 1}, "l": {"8": 1}, "n": 1, "r": {"2": 1}, "t": {"s": 1}}},
        })
    );
}

#[test]
fn data_is_not_kept() {
    let secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
    let result = json!({
        "token": secret,
        "name": "Erika Mustermann",
        "pin": 4711,
        "balance": 31415.92,
        "by_user": {"erika@example.org": {"age": 44}, "3f2504e0-4f89-11d3-9a0c-0305e82c3301": {"age": 45}},
        "by_day": {"2026-11-16": 1},
    });
    let text = bytes(&shape_of([&result]));
    for data in [
        secret, "Erika", "4711", "31415", "example", "3f2504e0", "2026",
    ] {
        assert!(!text.contains(data), "{data} in {text}");
    }
    assert!(
        text.contains(r#""by_user":{"all":1,"c":{"*":{"c":{"age""#),
        "{text}"
    );
}

#[test]
fn items_are_counted_once_per_result() {
    let result = json!({"items": [{"a": 1, "b": 1}, {"a": 2}, {"a": 3}]});
    let json = shape_of([&result]).without_values().to_json();
    let items = &json["channels"]["value"]["root"]["c"]["items"]["c"]["[]"];
    assert_eq!(items["n"], 1);
    assert_eq!(
        items["c"]["a"],
        json!({"all": 1, "m": {"2^0": 1, "2^1": 1}, "n": 1, "t": {"n": 1}})
    );
    assert_eq!(
        items["c"]["b"],
        json!({"m": {"2^0": 1}, "n": 1, "t": {"n": 1}})
    );
}

#[test]
fn depth_is_bounded() {
    let mut arrays = json!(1);
    let mut objects = json!(1);
    for _ in 0..200 {
        arrays = json!([arrays]);
        objects = json!({"a": objects});
    }
    for result in [arrays, objects] {
        let shape = shape_of([&result]);
        assert!(shape.is_truncated());
        assert!(bytes(&shape).len() < 2000);
        assert_eq!(Shape::from_json(&shape.to_json()), Ok(shape));
    }
    assert!(!shape_of([&json!([[[[1]]]])]).is_truncated());
}

#[test]
fn floods_are_bounded() {
    let names: Map<String, Value> = (0..100_000_u32)
        .map(|at| (name(at), json!({"a": at, "b": [name(at)]})))
        .collect();
    let data: Map<String, Value> = (0..100_000_u32)
        .map(|at| (at.to_string(), json!(at)))
        .collect();
    let values: Vec<Value> = (0..100_000_u32).map(|at| json!(name(at))).collect();
    let long = json!({"text": "x".repeat(10_000_000), "n".repeat(10_000): 1});
    for (result, truncated) in [
        (Value::Object(names), true),
        (Value::Object(data), false),
        (json!(values), false),
        (long, false),
    ] {
        let shape = shape_of([&result]);
        assert!(bytes(&shape).len() <= MAX_BYTES, "{}", bytes(&shape).len());
        assert_eq!(shape.is_truncated(), truncated);
        assert_eq!(Shape::from_json(&shape.to_json()), Ok(shape));
    }
}

/// The largest shape that can be made: long names, all types, formats and magnitudes, few values.
#[test]
fn the_fullest_shape_is_within_the_bound() {
    let mut shape = shape_of([]);
    let scalars = [
        json!(null),
        json!(true),
        json!(0.5),
        json!("2026-11-16T05:01:35Z"),
        json!("iVBORw0KGgoAAAANSUhEUgAAAAE="),
        json!([1, 2]),
        json!({}),
    ];
    for round in 0..400_u32 {
        let fields = (0..120_u32).map(|at| {
            let long = format!("{}{}", name(at), "ä".repeat(25));
            let value = match round % 40 {
                step @ 0..=6 => scalars[step as usize].clone(),
                step @ 7..=20 => json!(2_f64.powi(i32::try_from(step).unwrap() * 5 - 80)),
                step => json!("w".repeat(1 << (step % 6)) + &name(step)),
            };
            (long, value)
        });
        shape.observe(&Value::Object(fields.collect()), &key());
    }
    for _ in 0..60 {
        shape.merge(&shape.clone());
    }
    let size = bytes(&shape).len();
    assert!((40_000..=MAX_BYTES).contains(&size), "{size}");
}

fn name(number: u32) -> String {
    number
        .to_string()
        .bytes()
        .map(|digit| char::from(digit - b'0' + b'a'))
        .collect()
}

#[test]
fn what_is_no_shape_is_refused() {
    let good = shape_of([&json!({"a": "x", "b": [1, 2]})]).to_json();
    assert!(Shape::from_json(&good).is_ok());
    let edit = |pointer: &str, value: Value| {
        let mut json = good.clone();
        *json.pointer_mut(pointer).unwrap() = value;
        Shape::from_json(&json).unwrap_err()
    };
    let root = "/channels/value/root";
    assert_eq!(Shape::from_json(&json!({})), Err(InvalidShape::Version));
    assert_eq!(edit("/v", json!(3)), InvalidShape::Version);
    assert_eq!(edit("/key", json!("xyz")), InvalidShape::Member("key"));
    assert_eq!(edit("/results", json!(0)), InvalidShape::Member("results"));
    assert_eq!(edit("/results", json!(-1)), InvalidShape::Member("results"));
    assert_eq!(
        edit("/channels", json!({"sms": {"results": 1}})),
        InvalidShape::Member("channels")
    );
    assert_eq!(
        edit(&format!("{root}/n"), json!(2)),
        InvalidShape::Member("n")
    );
    assert_eq!(
        edit(&format!("{root}/t"), json!({"q": 1})),
        InvalidShape::Member("t")
    );
    assert_eq!(
        edit(&format!("{root}/t"), json!({})),
        InvalidShape::Member("n")
    );
    assert_eq!(
        edit(
            &format!("{root}/c"),
            json!({"12345": {"n": 1, "t": {"n": 1}}})
        ),
        InvalidShape::Member("c")
    );
    assert_eq!(
        edit(&format!("{root}/c/a/v"), json!("AAAAAA=1 AAAAAA=1")),
        InvalidShape::Member("v")
    );
    assert_eq!(
        edit(&format!("{root}/c/a/v"), json!("AAAAAA=01")),
        InvalidShape::Member("v")
    );
    assert_eq!(
        edit(&format!("{root}/c/a/l"), json!({"3": 1})),
        InvalidShape::Member("l")
    );
    assert_eq!(
        edit(
            &format!("{root}/c/a"),
            json!({"n": 1, "t": {"s": 1}, "z": 1})
        ),
        InvalidShape::Unknown("z".to_owned())
    );
    let wide: Map<String, Value> = (0..5000)
        .map(|at| (name(at), json!({"n": 1, "t": {"z": 1}})))
        .collect();
    assert_eq!(
        edit(&format!("{root}/c"), json!(wide)),
        InvalidShape::TooLarge
    );
    let mut deep = json!({"n": 1, "t": {"a": 1}});
    for _ in 0..100 {
        deep = json!({"n": 1, "t": {"a": 1}, "c": {"[]": deep}});
    }
    assert_eq!(edit(root, deep), InvalidShape::Member("cut"));
}

fn garbage() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        (0..4_u64).prop_map(Value::from),
        Just(json!(u64::MAX)),
        Just(json!(-1)),
        Just(json!(0.5)),
        Just(json!("many")),
        Just(json!("AAAAAA=1")),
        Just(json!("1:0000000000000000")),
    ];
    let names = [
        "channels",
        "cut",
        "key",
        "results",
        "v",
        "value",
        "root",
        "n",
        "t",
        "c",
        "all",
        "a",
        "f",
        "l",
        "m",
        "u",
        "s",
        "o",
        "[]",
        "*",
        "structure",
    ];
    leaf.prop_recursive(6, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(names.to_vec()), inner), 0..6).prop_map(
                |members| Value::Object(
                    members
                        .into_iter()
                        .map(|(name, value)| (name.to_owned(), value))
                        .collect()
                )
            ),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// A shape with any part replaced is refused, or is a shape that is written as it was read.
    #[test]
    fn garbage_is_refused_or_read(part in garbage(), at in 0..40_usize) {
        let good = shape_of([&json!({"a": "x", "b": [1, {"c": null}]}), &json!({"a": 0.5})]).to_json();
        let mut pointers = Vec::new();
        collect(&good, String::new(), &mut pointers);
        let mut json = good;
        if let Some(place) = json.pointer_mut(&pointers[at % pointers.len()]) {
            *place = part;
        }
        if let Ok(shape) = Shape::from_json(&json) {
            prop_assert_eq!(Shape::from_json(&shape.to_json()), Ok(shape));
        }
    }
}

fn collect(json: &Value, pointer: String, pointers: &mut Vec<String>) {
    for (name, value) in json.as_object().into_iter().flatten() {
        collect(value, format!("{pointer}/{name}"), pointers);
    }
    pointers.push(pointer);
}
