//! Shapes do not depend on the order or the grouping of results, and stay within their bounds.

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use serde_json::{Map, Value, json};
use toolwarden_drift::shape::{MAX_BYTES, Shape, ValueKey};

use super::{bytes, key, shape_of};

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-20_000_i64..20_000).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-d]{0,2}".prop_map(Value::from),
        "\\PC{0,60}".prop_map(Value::from),
        Just(json!("2026-11-16T05:01:35Z")),
        Just(json!("3f2504e0-4f89-11d3-9a0c-0305e82c3301")),
    ]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-f]{1,2}",
        "[a-z]{30,70}",
        "[0-9]{3,5}",
        Just("[]".to_owned()),
        Just("*".to_owned()),
        "\\PC{0,4}"
    ]
}

fn tree() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(6, 60, 10, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::vec((name(), inner), 0..12)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn wrapped() -> impl Strategy<Value = Value> {
    (tree(), 0..6_u8).prop_map(|(value, how)| match how {
        0 => json!({"content": [{"type": "text", "text": value.to_string()}], "structuredContent": value}),
        1 => json!({"content": [{"type": "text", "text": "plain"}], "isError": true}),
        2 => json!({"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}]}),
        _ => value,
    })
}

/// Results that fill every budget: long names, depth and formats, or many fields of many values.
fn flood() -> impl Strategy<Value = Value> {
    prop_oneof![deep_flood(), wide_flood()]
}

fn deep_flood() -> impl Strategy<Value = Value> {
    (0..1000_u32, 1..120_u32, 1..40_u32, 0..20_u32).prop_map(|(seed, names, values, depth)| {
        let mut members = Map::new();
        for at in 0..names {
            let number = seed.wrapping_mul(7919).wrapping_add(at * 31) % 900;
            let name = format!("{}_{}", letters(number), "x".repeat(number as usize % 58));
            let list: Vec<Value> = (0..values)
                .map(|value| text((seed + value * at) % 97))
                .collect();
            members.insert(name, Value::from(list));
        }
        let mut value = Value::Object(members);
        for at in 0..depth {
            value = if at % 2 == 0 {
                json!([value])
            } else {
                json!({ letters(at): value, "k": at })
            };
        }
        value
    })
}

fn wide_flood() -> impl Strategy<Value = Value> {
    (0..1000_u32, 1..60_u32, 1..45_u32).prop_map(|(seed, names, values)| {
        let item = |value: u32| {
            let field = |at: u32| {
                (
                    letters((seed + at * 7) % 250),
                    Value::from(letters(seed * at + value)),
                )
            };
            Value::Object((0..names).map(field).collect())
        };
        (0..values).map(item).collect()
    })
}

fn letters(mut number: u32) -> String {
    let mut text = String::new();
    for _ in 0..3 {
        text.push(char::from(b'a' + u8::try_from(number % 26).unwrap_or(0)));
        number /= 26;
    }
    text
}

fn text(number: u32) -> Value {
    match number % 7 {
        0 => json!(letters(number)),
        1 => json!(number),
        2 => json!(f64::from(number) * 1.37e9),
        3 => json!("2026-11-16"),
        4 => json!(format!("{number}.5")),
        5 => json!("a b".repeat(number as usize)),
        _ => json!(-f64::from(number) / 1e5),
    }
}

/// Any way of cutting the results into groups, shuffling and merging gives the same bytes.
fn check(results: &[Value], shuffle: &[usize], groups: &[usize]) -> Result<(), TestCaseError> {
    let whole = shape_of(results);
    let expected = bytes(&whole);
    prop_assert!(expected.len() <= MAX_BYTES, "{}", expected.len());

    let mut order: Vec<usize> = (0..results.len()).collect();
    for (at, other) in shuffle.iter().enumerate() {
        if !order.is_empty() {
            let (one, other) = (at % order.len(), other % order.len());
            order.swap(one, other);
        }
    }
    let mut parts = vec![Shape::new(key().id()); 5];
    for (at, result) in order.iter().enumerate() {
        let part = groups.get(at % groups.len().max(1)).copied().unwrap_or(0) % parts.len();
        parts[part].observe(&results[*result], &key());
    }
    // From the left, from the right, and by way of files.
    let left = parts
        .iter()
        .fold(Shape::new(key().id()), |sum, part| merged(&sum, part));
    prop_assert_eq!(&bytes(&left), &expected);
    let right = parts
        .iter()
        .rev()
        .fold(Shape::new(key().id()), |sum, part| merged(part, &sum));
    prop_assert_eq!(&bytes(&right), &expected);
    let read: Vec<Shape> = parts
        .iter()
        .map(|part| Shape::from_json(&part.to_json()).unwrap())
        .collect();
    let pairs = merged(
        &merged(&read[3], &read[1]),
        &merged(&read[4], &merged(&read[0], &read[2])),
    );
    prop_assert_eq!(&bytes(&pairs), &expected);
    prop_assert_eq!(pairs.is_truncated(), whole.is_truncated());
    prop_assert_eq!(
        &bytes(&Shape::from_json(&whole.to_json()).unwrap()),
        &expected
    );
    let published = parts.iter().fold(Shape::new(key().id()), |sum, part| {
        merged(&sum, &part.without_values())
    });
    prop_assert_eq!(bytes(&published), bytes(&whole.without_values()));
    Ok(())
}

fn merged(one: &Shape, other: &Shape) -> Shape {
    let mut sum = one.clone();
    sum.merge(other);
    sum
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_order_and_grouping_gives_the_same_bytes(
        results in prop::collection::vec(wrapped(), 1..25),
        shuffle in prop::collection::vec(0..1000_usize, 40),
        groups in prop::collection::vec(0..5_usize, 25),
    ) {
        check(&results, &shuffle, &groups)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn floods_give_the_same_bytes_too(
        results in prop::collection::vec(flood(), 1..25),
        shuffle in prop::collection::vec(0..1000_usize, 40),
        groups in prop::collection::vec(0..5_usize, 25),
    ) {
        check(&results, &shuffle, &groups)?;
    }

    /// Merging a shape with itself again and again makes the counts longer, and that too can reach
    /// the bounds.
    #[test]
    fn counts_of_many_digits_give_the_same_bytes(one in flood(), other in flood(), doublings in 1..64_u32) {
        let (mut sum, mut one, mut other) = (shape_of([&one, &other]), shape_of([&one]), shape_of([&other]));
        for _ in 0..doublings {
            sum = merged(&sum, &sum);
            one = merged(&one, &one);
            other = merged(&other, &other);
        }
        prop_assert_eq!(bytes(&merged(&one, &other)), bytes(&sum));
        prop_assert!(bytes(&sum).len() <= MAX_BYTES);
        prop_assert_eq!(bytes(&Shape::from_json(&sum.to_json()).unwrap()), bytes(&sum));
    }
}

#[test]
fn every_budget_is_reached_by_the_floods() {
    assert_eq!(cut_by(deep_flood()), ["details", "structure"]);
    assert_eq!(cut_by(wide_flood()), ["values"]);
}

fn cut_by(flood: impl Strategy<Value = Value>) -> Vec<String> {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let results: Vec<Value> = (0..40)
        .map(|_| flood.new_tree(&mut runner).expect("a result").current())
        .collect();
    let json = shape_of(&results).to_json();
    json.pointer("/cut")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(|cut| cut.keys().cloned())
        .collect()
}

/// An object of members with names of this length.
fn members(count: u32, length: usize) -> Value {
    let member = |at: u32| (letters(at) + &"x".repeat(length - 3), json!(at));
    Value::Object((0..count).map(member).collect())
}

#[test]
fn as_many_members_as_fit_are_kept() {
    let most = shape_of([&members(509, 3)]);
    assert!(!most.is_truncated());
    assert!(shape_of([&members(510, 3)]).is_truncated());
    let (few, many) = (members(300, 3), members(2000, 3));
    assert_eq!(
        bytes(&shape_of([&few, &many])),
        bytes(&shape_of([&many, &few]))
    );
}

/// The tenth result makes the counts longer without adding anything new.
#[test]
fn longer_counts_are_bounded_when_written() {
    let result = members(470, 10);
    let (nine, ten) = (shape_of([&result; 9]), shape_of([&result; 10]));
    assert_eq!((nine.is_truncated(), ten.is_truncated()), (false, true));
    let five = shape_of([&result; 5]);
    assert_eq!(bytes(&ten), bytes(&merged(&five, &five)));
    assert_eq!(Shape::from_json(&ten.to_json()), Ok(ten));
}

#[test]
fn an_empty_shape_changes_nothing() {
    let one = shape_of([&json!({"a": "x"})]);
    assert_eq!(bytes(&merged(&one, &Shape::new(key().id()))), bytes(&one));
    assert_eq!(bytes(&merged(&Shape::new(key().id()), &one)), bytes(&one));
    let stranger = Shape::new(ValueKey::new([1; 16]).id());
    assert_eq!(bytes(&merged(&one, &stranger)), bytes(&one));
    assert_eq!(bytes(&merged(&stranger, &one)), bytes(&one));
    assert!(stranger.is_empty());
    assert_eq!(Shape::from_json(&stranger.to_json()), Ok(stranger));
}

#[test]
fn values_under_different_keys_are_dropped_and_the_rest_is_kept() {
    let result = json!({"a": "x", "b": 7});
    let other_key = ValueKey::new([1; 16]);
    let one = shape_of([&result]);
    let mut other = Shape::new(other_key.id());
    other.observe(&result, &other_key);
    let both = shape_of([&result, &result]).without_values();
    assert_eq!(bytes(&merged(&one, &other)), bytes(&both));
    assert_eq!(bytes(&merged(&other, &one)), bytes(&both));
    assert_eq!(merged(&one, &other).key_id(), None);
    let mut observed = one;
    observed.observe(&result, &other_key);
    assert_eq!(bytes(&observed), bytes(&both));
    let mut again = both;
    again.observe(&result, &key());
    assert_eq!(
        bytes(&again),
        bytes(&shape_of([&result; 3]).without_values())
    );
}
