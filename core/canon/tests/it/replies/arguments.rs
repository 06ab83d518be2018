use serde_json::{Value, json};
use toolwarden_canon::reply::arguments;
use toolwarden_model::reply::ArgumentsClass;
use toolwarden_testkit::read_vectors;

fn check(sent: &Value, class: ArgumentsClass, value: &Value) {
    let sorted = arguments(Some(sent), None);
    let found = sorted.value.map_or(Value::Null, Value::Object);
    assert_eq!((sorted.class, &found), (class, value), "{sent}");
}

#[test]
fn every_form_is_sorted() {
    use ArgumentsClass as Class;
    let none = &Value::Null;
    let one = &json!({"a": 1});
    check(&json!("{\"a\": 1}"), Class::JsonObjectString, one);
    check(&json!(" {\"a\":1}\n"), Class::JsonObjectString, one);
    check(&json!("{}"), Class::JsonObjectString, &json!({}));
    check(&json!("{\"a\":2,\"a\":1}"), Class::JsonObjectString, one);
    check(one, Class::Object, one);
    check(&json!(""), Class::EmptyString, none);
    check(&json!(" \n"), Class::EmptyString, none);
    check(&json!(null), Class::Null, none);
    check(&json!("null"), Class::Null, none);
    check(&json!("None"), Class::Null, none);
    for other in [
        json!([1]),
        json!(5),
        json!(true),
        json!("[1]"),
        json!("5"),
        json!("\"x\""),
    ] {
        check(&other, Class::JsonNonObject, none);
    }
    check(&json!("{'a': 1}"), Class::PythonLiteral, one);
    check(
        &json!("{\"a\": True}"),
        Class::PythonLiteral,
        &json!({"a": true}),
    );
    let twice = json!("{\"a\":1}").to_string();
    check(&json!(twice), Class::DoubleEncoded, one);
    check(&json!(json!(twice).to_string()), Class::DoubleEncoded, one);
    for cut in ["{", "{\"a", "{\"a\": 1", "{\"a\": \"\\u12", "[1"] {
        check(&json!(cut), Class::Truncated, none);
    }
    for wrong in [
        "x",
        "{\"a\": NaN}",
        "{\"a\":1}{\"b\":2}",
        "{\"a\":1,}",
        "{a: 1}",
    ] {
        check(&json!(wrong), Class::Invalid, none);
    }
    let deep = "[".repeat(10_000);
    check(&json!(deep), Class::Invalid, none);
    check(
        &json!("{\"a\": \"x</think>\"}"),
        Class::MarkupPolluted,
        &json!({"a": "x</think>"}),
    );
    check(
        &json!({"<tool_call>": 1}),
        Class::MarkupPolluted,
        &json!({"<tool_call>": 1}),
    );
    check(
        &json!("{\"a\": 1}</tool_call>"),
        Class::MarkupPolluted,
        none,
    );
    assert_eq!(arguments(None, None).class, Class::Absent);
}

#[test]
fn long_numbers_keep_their_digits() {
    let digits = "9".repeat(5000);
    let sorted = arguments(Some(&json!(format!("{{\"a\": {digits}}}"))), None);
    assert_eq!(sorted.value.unwrap()["a"].to_string(), digits);
    let sorted = arguments(Some(&json!(format!("{{'a': {digits}}}"))), None);
    assert_eq!(sorted.value.unwrap()["a"].to_string(), digits);
}

/// Where the original found keys, ours finds the same ones, except that `NaN` is not JSON.
#[test]
fn keys_are_those_of_the_original() {
    let Some(vectors) = read_vectors("probe-normalise.json") else {
        return;
    };
    for vector in vectors["arguments"].as_array().unwrap() {
        let (sent, types) = (&vector[0], vector[2].as_object().unwrap());
        let sorted = arguments(Some(sent), None);
        let keys: Vec<String> = match sorted.class {
            // The original does not look into these.
            ArgumentsClass::DoubleEncoded => continue,
            ArgumentsClass::Invalid => {
                assert_eq!(sent, "{\"a\":NaN}");
                continue;
            }
            _ => sorted.value.unwrap_or_default().keys().cloned().collect(),
        };
        let expected: Vec<String> = types.keys().cloned().collect();
        assert_eq!(keys, expected, "{sent}");
    }
}
