use proptest::prelude::*;
use serde_json::json;

use super::*;

fn value(text: &str) -> Value {
    Document::read(text).unwrap().value
}

fn error(text: &str) -> String {
    Document::read(text).unwrap_err().to_string()
}

#[test]
fn plain_scalars_follow_the_core_schema() {
    let cases = [
        ("true", "true"),
        ("False", "false"),
        ("yes", "\"yes\""),
        ("off", "\"off\""),
        ("~", "null"),
        ("Null", "null"),
        ("0", "0"),
        ("-0", "-0"),
        ("+12", "12"),
        ("007", "7"),
        ("0x1F", "31"),
        ("0o17", "15"),
        ("0b1", "\"0b1\""),
        ("-0x1", "\"-0x1\""),
        ("0.10", "0.10"),
        (".5", "0.5"),
        ("1.", "1.0"),
        ("-1.5E+3", "-1.5E+3"),
        ("12345678901234567890123", "12345678901234567890123"),
        ("1_000", "\"1_000\""),
        ("12:30", "\"12:30\""),
        ("2026-11-16", "\"2026-11-16\""),
        ("1e", "\"1e\""),
        (".", "\".\""),
        ("-.nan", "\"-.nan\""),
        ("'1'", "\"1\""),
        ("\"true\"", "\"true\""),
        ("!!str 1", "\"1\""),
        ("!!int \"1\"", "1"),
        ("!!float 1", "1"),
        ("!!null ''", "null"),
    ];
    for (written, expected) in cases {
        let read = value(&format!("a: {written}"));
        assert_eq!(
            read.to_string(),
            format!("{{\"a\":{expected}}}"),
            "{written}"
        );
    }
}

#[test]
fn collections_keys_and_aliases_are_read() {
    let text =
        "8080: &ports [1, *p]\ntrue: 'x'\nempty:\n? long\n: |\n  one\n  two\nagain: *ports\n";
    let text = text.replace("[1, *p]", "[1, &p 2, *p]");
    let expected = json!({
        "8080": [1, 2, 2], "true": "x", "empty": null, "long": "one\ntwo\n", "again": [1, 2, 2],
    });
    assert_eq!(value(&text).to_string(), expected.to_string());
}

#[test]
fn pointers_are_located_at_their_key_or_element() {
    let yaml = "a:\n  - x: é\n    y/z: &b {q: 1}\n  - 2\n\"é\": {c: *b, d: [3]}\n";
    let json = "{\"a\":\n  [{\"x\": \"é\",\n    \"y/z\": {\"q\": 1}}, 2],\n \"é\": {\"d\": [3]}}";
    let at = |text: &str, pointer: &str| {
        let position = Document::read(text)
            .unwrap()
            .position(&Pointer::from(pointer));
        (position.line, position.column)
    };
    assert_eq!(at(yaml, ""), (1, 1));
    assert_eq!(at(yaml, "/a"), (1, 1));
    assert_eq!(at(yaml, "/a/0"), (2, 5));
    assert_eq!(at(yaml, "/a/0/y~1z"), (3, 5));
    assert_eq!(at(yaml, "/a/0/y~1z/q"), (3, 14));
    assert_eq!(at(yaml, "/a/1"), (4, 5));
    assert_eq!(at(yaml, "/a/9/b"), (1, 1));
    assert_eq!(at(yaml, "/é/c/q"), (5, 7));
    assert_eq!(at(yaml, "/é/d/0"), (5, 18));
    assert_eq!(at(json, "/a/0/y~1z/nowhere"), (3, 5));
    assert_eq!(at(json, "/é/d/0"), (4, 14));
}

#[test]
fn what_is_not_one_plain_document_is_refused_with_its_place() {
    let cases = [
        ("", "the document is empty at line 1, column 1"),
        ("# nothing\n\n", "the document is empty at line 1, column 1"),
        ("---\n", "the document is empty at line 2, column 1"),
        (
            "a: 1\n---\nb: 2\n",
            "a second document; keep one document per file at line 2, column 1",
        ),
        (
            "a: 1\nb: 2\na: 3\n",
            "key `a` is given twice at line 3, column 1",
        ),
        (
            "1: x\n'1': y\n",
            "key `1` is given twice at line 2, column 1",
        ),
        (
            "{\"a\": 1,\n \"a\": 2}",
            "key `a` is given twice at line 2, column 2",
        ),
        ("{a: 1, a: 2}", "key `a` is given twice at line 1, column 8"),
        (
            "[a]: 1",
            "a key must be text, a whole number or a boolean; put it in quotes at line 1, column 1",
        ),
        (
            "1.5: 1",
            "a key must be text, a whole number or a boolean; put it in quotes at line 1, column 1",
        ),
        (
            "a: &x b\n*x : 1",
            "a key must be text, a whole number or a boolean; put it in quotes at line 2, column 1",
        ),
        (
            "a: &x {b: 1}\nc:\n  <<: *x\n",
            "merge keys (`<<`) are not supported; repeat the entries or alias the whole mapping \
             at line 3, column 3",
        ),
        ("a: !secret x", "unknown tag `!secret` at line 1, column 4"),
        (
            "a: !!binary x",
            "unknown tag `!!binary` at line 1, column 4",
        ),
        (
            "a: !!int x",
            "the value does not fit its tag `!!int` at line 1, column 4",
        ),
        (
            "a: !!map [1]",
            "the value does not fit its tag `!!map` at line 1, column 4",
        ),
        ("a: -.Inf", "a number must be finite at line 1, column 4"),
        ("a: .nan", "a number must be finite at line 1, column 4"),
        (
            "a: 0xffffffffffffffffffffffffffffffffff",
            "the number is too large at line 1, column 4",
        ),
        (
            "a: &x [*x]",
            "the alias is part of its own anchor at line 1, column 8",
        ),
        (
            "a: *x",
            "while parsing node, found unknown anchor at line 1, column 4",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(error(text), expected, "{text}");
    }
}

#[test]
fn tabs_and_wrong_indentation_are_refused_with_their_place() {
    assert_eq!(
        error("a:\n\tb: 1\n"),
        "tabs disallowed within this context (block indentation) at line 2, column 2"
    );
    assert!(error("a:\n  b: 1\n c: 2\n").contains("at line 3"));
    assert!(error("a: [1, 2\n").contains("at line 2"));
    assert!(error("{\"a\": 1,, \"b\": 2}").contains("at line 1, column 9"));
}

#[test]
fn deep_nesting_is_an_error_and_no_overflow() {
    let deep = 100_000;
    let too_deep = "nesting deeper than 100 levels at line 1, column ";
    for text in [
        "[".repeat(deep),
        "{a: ".repeat(deep),
        "{\"a\":".repeat(deep),
        "- ".repeat(deep),
        format!("{}{}", "[".repeat(deep), "]".repeat(deep)),
    ] {
        assert!(error(&text).starts_with(too_deep), "{}", error(&text));
    }
    // Keys that are lists are refused before they can nest.
    assert!(error(&"? ".repeat(deep)).starts_with("a key must be text"));
    let block: String = (0..150)
        .map(|level| format!("{}a:\n", " ".repeat(level)))
        .collect();
    assert!(error(&block).starts_with("nesting deeper than 100 levels at line 101"));
    let at_the_limit = format!("a: {}{}", "[".repeat(99), "]".repeat(99));
    assert!(Document::read(&at_the_limit).is_ok());
}

#[test]
fn aliases_cannot_blow_up() {
    let mut nodes = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..20 {
        let inner = format!("*a{}", level - 1);
        nodes += &format!("a{level}: &a{level} [{}]\n", vec![inner; 10].join(", "));
    }
    assert!(error(&nodes).starts_with("more than 1000000 values"));

    let bytes = format!(
        "a: &a {}\nb: [{}]\n",
        "x".repeat(100_000),
        "*a, ".repeat(10_000)
    );
    assert!(error(&bytes).starts_with("more than 1000000 values"));

    let mut depth = "a0: &a0 [x]\n".to_owned();
    for level in 1..200 {
        depth += &format!("a{level}: &a{level} [*a{}]\n", level - 1);
    }
    assert!(error(&depth).starts_with("nesting deeper than 100 levels at line 100"));

    let nested = format!("a: {}1{}", "&x [".repeat(60), "]".repeat(60));
    assert!(Document::read(&nested).is_ok());
}

fn any_json() -> impl Strategy<Value = Value> {
    let number = "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,9})?([eE][+-]?[0-9]{1,3})?";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        number.prop_map(|text| Value::Number(json::Number::from_string_unchecked(text))),
        any::<String>().prop_map(Value::String),
        "[-:#&*!|>'\"%@`{}, \\[\\]\n\t<~a-c0-9.]{0,12}".prop_map(Value::String),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn json_read_as_yaml_is_the_same_value(value in any_json()) {
        for text in [value.to_string(), format!("{value:#}")] {
            let document = Document::read_yaml(&text);
            let read = document.map(|document| document.value.to_string());
            prop_assert_eq!(read, Ok(value.to_string()), "{}", text);
        }
    }

    #[test]
    fn no_text_makes_reading_panic(text in any::<String>()) {
        if let Ok(document) = Document::read(&text) {
            prop_assert!(json::depth_within(&document.value));
        }
    }

    #[test]
    fn no_text_of_yaml_marks_makes_reading_panic(
        text in "([-?:,\\[\\]{}#&*!|>'\"%@ \n\t~<.ax0é\u{feff}\u{85}]|---|\\.\\.\\.|!!|<<|\\\\|\r\n|  ){0,60}"
    ) {
        if let Ok(document) = Document::read(&text) {
            prop_assert!(json::depth_within(&document.value));
        }
    }
}
