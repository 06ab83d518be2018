//! Arguments and names that two parsers would read differently.

use serde_json::{Value, json};
use toolwarden_live_guard::LoadedPolicy;

use super::{call, fixture};

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn numbers_beyond_a_double_are_refused_with_or_without_a_schema() {
    let bench = fixture(
        "tools:\n  free: {}\n  typed: {input_schema: {properties: {n: {type: integer}}}}\n",
    );
    let long = format!(r#"{{"n": 1{}}}"#, "0".repeat(400));
    for tool in ["free", "typed"] {
        for (text, place) in [
            (r#"{"n": 1e999}"#, "/n"),
            (r#"{"n": -1E+400}"#, "/n"),
            (r#"{"m": [0, {"k": 1e309}]}"#, "/m/1/k"),
            (long.as_str(), "/n"),
        ] {
            let denial = bench
                .guard
                .decide(&call(tool, "p", parsed(text)))
                .unwrap_err();
            assert_eq!(
                denial.code.as_str(),
                "number_out_of_range",
                "{tool} {place}"
            );
            assert_eq!(denial.faults[0].pointer.as_str(), place);
        }
        for text in [
            r#"{"n": 123456789012345678901234567890}"#,
            r#"{"n": 1e300}"#,
            r#"{"m": 1e-999}"#,
        ] {
            assert!(
                bench.guard.decide(&call(tool, "p", parsed(text))).is_ok(),
                "{tool} {text}"
            );
        }
    }
    assert!(
        bench
            .kinds()
            .contains(&"decision number_out_of_range".to_owned())
    );
}

#[test]
fn keys_that_differ_from_a_declared_one_in_case_are_refused() {
    let bench = fixture(
        "tools:\n  pay:\n    input_schema:\n      properties:\n        amount: {maximum: 100}\n        \
         to: {properties: {iban: {type: string}}}\n",
    );
    for (given, places) in [
        (json!({"amount": 1, "AMOUNT": 9000}), &["/AMOUNT"][..]),
        (json!({"Amount": 9000}), &["/Amount"]),
        (json!({"amount": 1, "to": {"IBAN": "x"}}), &["/to/IBAN"]),
    ] {
        let denial = bench.guard.decide(&call("pay", "p", given)).unwrap_err();
        assert_eq!(denial.code.as_str(), "key_case");
        let found: Vec<&str> = denial.faults.iter().map(|it| it.pointer.as_str()).collect();
        assert_eq!(found, places);
    }
    let fine = json!({"amount": 1, "note": "x", "Note": "y", "to": {"iban": "x", "name": "z"}});
    assert!(bench.guard.decide(&call("pay", "p", fine)).is_ok());
}

#[test]
fn names_with_white_space_around_them_are_refused_and_recorded() {
    let bench = fixture("tools: {pay: {}}");
    for name in [" pay", "pay ", "pay\n", "\u{a0}pay", "\u{0}pay", "\tpay\t"] {
        let denial = bench.guard.decide(&call(name, "p", json!({}))).unwrap_err();
        assert_eq!(denial.code.as_str(), "malformed_name", "{name:?}");
    }
    assert_eq!(bench.kinds(), ["decision malformed_name"; 6]);
    let text = b"tools: {'pay ': {}}";
    let refused = LoadedPolicy::of_text(text, "p.yaml".as_ref(), "".as_ref()).unwrap_err();
    assert!(
        refused.to_string().contains("must not have white space"),
        "{refused}"
    );
}
