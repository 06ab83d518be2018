//! Schemas made to exhaust resources: each comparison ends within its budget, without a panic.

use serde_json::{Value, json};
use toolwarden_schema::{ComparisonPolicy, SchemaVerdict, SearchBudget, compare};

use crate::{strictly, verdict_letter};

/// A budget so small that a comparison which exceeds it makes the test visibly hang.
fn small() -> SearchBudget {
    SearchBudget {
        steps: 5_000,
        states: 5_000,
        ..SearchBudget::default()
    }
}

fn ends(old: &Value, new: &Value) -> SchemaVerdict {
    compare(old, new, ComparisonPolicy::STRICT, small())
}

#[test]
fn nesting_is_bounded() {
    let mut deep = json!({"type": "string"});
    for _ in 0..60 {
        deep = json!({"properties": {"a": deep}});
    }
    assert!(matches!(
        ends(&deep, &json!({})),
        SchemaVerdict::Compatible { .. }
    ));
    assert_ne!(verdict_letter(&ends(&json!({}), &deep)), "C");
    for _ in 0..2_000 {
        deep = Value::Array(vec![deep]);
    }
    let SchemaVerdict::Unknown(why) = ends(&json!({"enum": [deep]}), &json!({})) else {
        panic!("too deep to read");
    };
    assert!(why.reason.text().contains("levels"), "{why:?}");
}

#[test]
fn large_enumerations_are_quick_and_exact() {
    let values: Vec<String> = (0..10_000).map(|n| format!("value-{n}")).collect();
    let old = json!({"properties": {"e": {"enum": values}}});
    let new = json!({"properties": {"e": {"enum": &values[1..]}}});
    let SchemaVerdict::Breaking(witness) = ends(&old, &new) else {
        panic!("one value is gone");
    };
    assert_eq!(witness.value, json!({"e": "value-0"}));
    assert_eq!(verdict_letter(&ends(&new, &old)), "C");
}

#[test]
fn circles_of_references_end() {
    let circle = json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}});
    assert_eq!(verdict_letter(&ends(&circle, &circle)), "C");
    // Our rules leave a circle that never steps inside open; the algebra knows that it says nothing.
    assert_eq!(
        verdict_letter(&ends(&json!({"type": "string"}), &circle)),
        "C"
    );
    let paradox = json!({"not": {"$ref": "#"}});
    assert_ne!(
        verdict_letter(&ends(&json!({"type": "string"}), &paradox)),
        "C"
    );
    assert_ne!(
        verdict_letter(&ends(&paradox, &json!({"type": "string"}))),
        "B"
    );
    let unfounded =
        json!({"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]});
    // No finite value satisfies it, so it is within everything.
    assert_eq!(verdict_letter(&ends(&unfounded, &json!(false))), "C");
    let list = json!({"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}, "required": ["next"]});
    let SchemaVerdict::Breaking(witness) = ends(&list, &unfounded) else {
        panic!("a list that ends");
    };
    assert_eq!(witness.value, json!({"next": null}));
}

#[test]
fn reference_bombs_are_shared_not_copied() {
    let mut definitions = serde_json::Map::new();
    definitions.insert("d0".to_owned(), json!({"type": "string"}));
    for level in 1..60 {
        let below = format!("#/$defs/d{}", level - 1);
        definitions.insert(format!("d{level}"), json!({"anyOf": [{"type": "array", "items": {"$ref": below}}, {"properties": {"x": {"$ref": below}, "y": {"$ref": below}}}]}));
    }
    let bomb = json!({"$ref": "#/$defs/d59", "$defs": definitions});
    let mut other = bomb.clone();
    other["$defs"]["d0"] = json!({"type": "integer"});
    assert_eq!(verdict_letter(&ends(&bomb, &bomb)), "C");
    assert_ne!(verdict_letter(&ends(&bomb, &other)), "C");
}

#[test]
fn patterns_that_blow_up_are_left_undecided() {
    let exponential = json!({"pattern": "^(a|b)*a(a|b){24}$"});
    assert_ne!(
        verdict_letter(&ends(
            &exponential,
            &json!({"pattern": "^(a|b)*b(a|b){24}$"})
        )),
        "C"
    );
    let huge = json!({"pattern": "^(\\w{1,1000}){1,1000}$"});
    assert_eq!(verdict_letter(&ends(&huge, &json!({"pattern": "^x"}))), "?");
    let around = json!({"pattern": "^(?!x)a"});
    let SchemaVerdict::Unknown(why) = ends(&json!({"type": "string", "pattern": "^a"}), &around)
    else {
        panic!("look-around is not regular");
    };
    // A value can still be found, and a contradiction too.
    let SchemaVerdict::Breaking(witness) = ends(&around, &json!({"maxLength": 0})) else {
        panic!("a text that looks around");
    };
    assert_eq!(witness.value, json!("a"));
    assert_eq!(
        verdict_letter(&ends(&around, &json!({"minLength": 1}))),
        "C"
    );
    assert_eq!(why.obstacles[0].keyword, "pattern");
    assert_eq!(why.obstacles[0].pointer.to_string(), "/pattern");
    let long = json!({"type": "string", "minLength": 1_000_000_000});
    assert_ne!(
        verdict_letter(&ends(&long, &json!({"type": "string", "maxLength": 5}))),
        "C"
    );
}

#[test]
fn products_of_unions_stay_within_the_budget() {
    let union = |index: usize| {
        json!({"anyOf": [
        {"required": [format!("a{index}")]}, {"required": [format!("b{index}")]}, {"required": [format!("c{index}")]}]})
    };
    let old = json!({"allOf": (0..14).map(union).collect::<Vec<_>>()});
    let new = json!({"allOf": (0..14).map(union).chain([json!({"maxProperties": 13})]).collect::<Vec<_>>()});
    assert_eq!(verdict_letter(&ends(&old, &new)), "B");
    assert_eq!(verdict_letter(&ends(&new, &old)), "C");
    let exclusive =
        json!({"oneOf": (0..200).map(|n| json!({"multipleOf": n + 1})).collect::<Vec<_>>()});
    // Whatever is a multiple of exactly one of them is a multiple of one alone.
    assert_eq!(
        verdict_letter(&ends(&exclusive, &json!({"type": "integer"}))),
        "C"
    );
}

#[test]
fn numbers_are_exact_or_refused() {
    assert_eq!(
        verdict_letter(&strictly(
            &json!({"multipleOf": 3}),
            &json!({"multipleOf": 0.3})
        )),
        "C"
    );
    assert_eq!(
        verdict_letter(&strictly(
            &json!({"multipleOf": 0.3}),
            &json!({"multipleOf": 0.1})
        )),
        "C"
    );
    let old: Value =
        serde_json::from_str(r#"{"type": "integer", "minimum": 9007199254740993}"#).unwrap();
    let new: Value =
        serde_json::from_str(r#"{"type": "integer", "minimum": 9007199254740992}"#).unwrap();
    assert_eq!(verdict_letter(&strictly(&old, &new)), "C");
    assert_eq!(verdict_letter(&strictly(&new, &old)), "B");
    let vast: Value = serde_json::from_str(r#"{"minimum": 1e99999999}"#).unwrap();
    assert_eq!(
        verdict_letter(&strictly(&vast, &json!({"minimum": 0}))),
        "?"
    );
}

#[test]
fn what_is_no_schema_is_named() {
    for (schema, place, said) in [
        (json!({"type": "dict"}), "/type", "seven type names"),
        (
            json!({"properties": {"a": {"required": true}}}),
            "/properties/a/required",
            "a list of names",
        ),
        (
            json!({"properties": {"a": 5}}),
            "/properties/a",
            "not a number",
        ),
        (json!({"allOf": []}), "/allOf", "at least one"),
        (
            json!({"$ref": "https://example.com/other.json"}),
            "/$ref",
            "leads to nothing",
        ),
        (
            json!({"items": {"minLength": -1}}),
            "/items/minLength",
            "whole number",
        ),
    ] {
        let SchemaVerdict::Unknown(why) = strictly(&schema, &json!({"type": "string"})) else {
            panic!("{schema} was read");
        };
        assert!(why.reason.text().contains(said), "{why:?}");
        assert_eq!(why.obstacles[0].pointer.to_string(), place, "{why:?}");
    }
}
