//! The smallest pair of schemas for every past bug.

use serde_json::{Value, json};
use toolwarden_schema::SchemaVerdict;

use crate::{accepts, strictly, verdict_letter};

/// Pairs that were called compatible, with a value that is lost.
#[test]
fn lost_values_are_found() {
    let text = json!({"type": "string"});
    let cases: &[(Value, Value, Value)] = &[
        // Two demands met by one item.
        (
            json!({"type": "array", "maxItems": 1}),
            json!({"anyOf": [{"prefixItems": [text]}, {"items": text}]}),
            json!([1]),
        ),
        (
            json!({"type": "array", "allOf": [{"contains": text}, {"contains": text, "minContains": 2}], "maxItems": 2}),
            json!(false),
            json!(["a", "a"]),
        ),
        (
            json!({"type": "array", "prefixItems": [{"type": "boolean"}]}),
            json!({"anyOf": [{"prefixItems": [true, text]}, {"prefixItems": [{"type": "boolean"}, text]}]}),
            json!([true, 1]),
        ),
        (
            json!({"allOf": [{"contains": {"type": "boolean"}}, {"not": {"contains": {"type": "boolean"}, "maxContains": 0}}], "maxItems": 1}),
            json!({"not": true}),
            json!([true]),
        ),
        // One key that is wrong for several reasons.
        (
            json!({"type": "object", "maxProperties": 1}),
            json!({"anyOf": [{"propertyNames": {"maxLength": 3}}, {"propertyNames": {"pattern": "^a"}}]}),
            json!({"bbbb": 1}),
        ),
        (
            json!({"type": "object", "maxProperties": 1}),
            json!({"anyOf": [{"propertyNames": {"maxLength": 3}}, {"additionalProperties": false}]}),
            json!({"aaaa": 1}),
        ),
        (
            json!({"type": "object", "maxProperties": 1}),
            json!({"anyOf": [{"propertyNames": {"maxLength": 3}}, {"patternProperties": {"b": false}}]}),
            json!({"bbbb": 1}),
        ),
        (
            json!({"type": "object", "maxProperties": 2}),
            json!({"anyOf": [{"propertyNames": {"maxLength": 3}}, {"propertyNames": {"pattern": "^a"}}, {"propertyNames": {"pattern": "z$"}}]}),
            json!({"bbbb": 1}),
        ),
        (
            json!({"allOf": [{"not": {"propertyNames": {"maxLength": 3}}}], "maxProperties": 1}),
            json!({"additionalProperties": false}),
            json!({"bbbb": "a"}),
        ),
        // The validator works even if a description is not a string.
        (
            json!({"properties": {"a": {"type": "string", "description": ["list"]}}}),
            json!({"properties": {"a": {"type": "integer"}}}),
            json!({"a": ""}),
        ),
    ];
    for (old, new, value) in cases {
        let verdict = strictly(old, new);
        assert_eq!(verdict_letter(&verdict), "B", "{old} -> {new}: {verdict:?}");
        if let (Some(was), Some(is)) = (accepts(old, value), accepts(new, value)) {
            assert_eq!((was, is), (true, false), "{old} -> {new}: {value}");
        }
    }
}

/// Pairs no rule should pretend to know.
#[test]
fn doubtful_readings_are_not_compatible() {
    let cases: &[(Value, Value)] = &[
        // Flags inside a pattern are not ECMA-262.
        (
            json!({"type": "string", "pattern": "(?s)^.$"}),
            json!({"pattern": "^.$"}),
        ),
        // Without `$schema`, forms of two drafts.
        (
            json!({"type": "object"}),
            json!({"dependentRequired": {"a": ["b"]}, "properties": {"z": {"items": [{}]}}}),
        ),
        (
            json!({"type": "string"}),
            json!({"$ref": "#/$defs/a", "maxLength": 1, "$defs": {"a": {"type": "string"}, "b": {"items": [{}]}}}),
        ),
        (
            json!({"const": 3}),
            json!({"const": 4, "not": {"minimum": 1000, "exclusiveMinimum": true}}),
        ),
    ];
    for (old, new) in cases {
        let verdict = strictly(old, new);
        assert_ne!(verdict_letter(&verdict), "C", "{old} -> {new}: {verdict:?}");
    }
    let vast: Value = serde_json::from_str(r#"{"const": 1e900, "type": "integer"}"#).unwrap();
    assert_eq!(verdict_letter(&strictly(&vast, &json!(false))), "?");
    let many: Value = serde_json::from_str(r#"{"type": "array", "allOf": [{"contains": {"type": "string"}, "minContains": 18446744073709551615}, {"contains": {}, "minContains": 2}]}"#).unwrap();
    assert_eq!(verdict_letter(&strictly(&many, &json!(false))), "?");
}

/// Schemas that crashed, hung or grew without bound.
#[test]
fn what_was_too_much_ends() {
    let chain = |link: &dyn Fn(&str) -> Value, leaf: &str, length: usize| {
        let mut definitions = serde_json::Map::new();
        for index in 0..length {
            definitions.insert(
                format!("d{index}"),
                link(&format!("#/$defs/d{}", index + 1)),
            );
        }
        definitions.insert(format!("d{length}"), json!({"type": leaf}));
        json!({"$ref": "#/$defs/d0", "$defs": definitions})
    };
    let links: &[&dyn Fn(&str) -> Value] = &[
        &|next| json!({"type": "object", "properties": {"a": {"$ref": next}}}),
        &|next| json!({"anyOf": [{"$ref": next}, {"type": "null"}]}),
        &|next| json!({"$ref": next}),
        &|next| json!({"not": {"$ref": next}}),
        &|next| json!({"allOf": [{"$ref": next}], "unevaluatedProperties": false}),
    ];
    for link in links {
        assert_ne!(
            verdict_letter(&strictly(
                &chain(link, "string", 4_000),
                &chain(link, "integer", 4_000)
            )),
            "C"
        );
    }
    let tree: &dyn Fn(&str) -> Value = &|next| json!({"type": "object", "properties": {"a": {"$ref": next}, "b": {"$ref": next}}, "required": ["a", "b"]});
    assert_ne!(
        verdict_letter(&strictly(
            &chain(tree, "integer", 20),
            &chain(tree, "string", 20)
        )),
        "C"
    );
    let bomb: &dyn Fn(&str) -> Value = &|next| json!({"allOf": [{"$ref": next}, {"$ref": next}], "properties": {"a": {"$ref": next}, "b": {"$ref": next}}});
    assert_ne!(
        verdict_letter(&strictly(
            &chain(bomb, "string", 30),
            &json!({"type": "string", "maxLength": 1})
        )),
        "C"
    );
    let all: Vec<u32> = (0..=30_000).collect();
    assert_eq!(
        verdict_letter(&strictly(
            &json!({"type": "integer", "minimum": 0, "maximum": 30_000}),
            &json!({"enum": all})
        )),
        "C"
    );
    let distinct = json!({"type": "array", "minItems": 3_000, "uniqueItems": true, "items": {"type": "integer"}});
    assert_ne!(
        verdict_letter(&strictly(&distinct, &json!({"maxItems": 10}))),
        "C"
    );
    let words: Vec<String> = (0..20_000).map(|n| format!("w{n}")).collect();
    assert_eq!(
        verdict_letter(&strictly(
            &json!({"enum": &words[1..]}),
            &json!({"enum": words})
        )),
        "C"
    );
}

/// Changes beside a pattern that looks ahead, as Zod writes it for e-mail addresses.
#[test]
fn patterns_that_look_around_do_not_hide_other_changes() {
    let email = r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$";
    let tool = |count: &str| json!({"type": "object", "properties": {"to": {"type": "string", "pattern": email}, "n": {"type": count}}, "required": ["to"]});
    let SchemaVerdict::Breaking(witness) = strictly(&tool("integer"), &tool("string")) else {
        panic!("the number is rejected now");
    };
    assert_eq!(accepts(&tool("integer"), &witness.value), Some(true));
    assert_eq!(
        verdict_letter(&strictly(&tool("integer"), &tool("number"))),
        "C"
    );
}

/// Unions with a constant as discriminator, of any length that occurs.
#[test]
fn long_unions_are_decided() {
    let union = |branches: usize, value: Value| {
        let branch = |index: usize| json!({"type": "object", "properties": {"k": {"const": format!("x{index}")}, "v": value, "w": {"type": "boolean"}}, "required": ["k"]});
        json!({"type": "object", "properties": {"op": {"oneOf": (0..branches).map(branch).collect::<Vec<_>>()}}})
    };
    for branches in [3, 12, 30, 45, 60] {
        let (old, new) = (
            union(branches, json!({"type": "string"})),
            union(branches + 2, json!({"type": ["string", "null"]})),
        );
        for verdict in [strictly(&old, &new), crate::for_arguments(&old, &new)] {
            assert_eq!(verdict_letter(&verdict), "C", "{branches}: {verdict:?}");
        }
        assert_eq!(verdict_letter(&strictly(&new, &old)), "B", "{branches}");
    }
}

/// Bounds too large for small examples are still bounds.
#[test]
fn large_bounds_are_compared() {
    let array = |max: u64| json!({"type": "array", "items": {"type": "string"}, "maxItems": max});
    let text = |max: u64| json!({"type": "string", "maxLength": max});
    for (small, large) in [
        (array(5_000), array(10_000)),
        (text(500_000), text(1_000_000)),
    ] {
        let SchemaVerdict::Compatible {
            gained: Some(value),
            ..
        } = strictly(&small, &large)
        else {
            panic!("{small} to {large}: not widened");
        };
        assert_eq!(accepts(&small, &value), Some(false));
        assert_eq!(accepts(&large, &value), Some(true));
        assert_eq!(
            verdict_letter(&strictly(&large, &small)),
            "B",
            "{large} to {small}"
        );
    }
}

/// A value too large to write out is reported as over budget.
#[test]
fn bounds_beyond_the_size_of_examples_leave_the_budget() {
    let text = |max: u64| json!({"type": "string", "maxLength": max});
    let SchemaVerdict::Unknown(unknown) = strictly(&text(2_000_000_000), &text(1_000_000_000))
    else {
        panic!("decided");
    };
    assert_eq!(unknown.reason, toolwarden_schema::UnknownReason::Budget);
    assert_eq!(
        verdict_letter(&strictly(&text(1_000_000_000), &text(2_000_000_000))),
        "C"
    );
}

/// Many long texts in one value stay within bounds of memory.
#[test]
fn long_texts_are_not_multiplied() {
    let names: Vec<String> = (0..400).map(|index| format!("p{index}")).collect();
    let with = |min: u64| {
        let properties: serde_json::Map<String, Value> = names
            .iter()
            .map(|name| (name.clone(), json!({"type": "string", "minLength": min})))
            .collect();
        json!({"type": "object", "properties": properties, "required": names})
    };
    assert_eq!(
        verdict_letter(&strictly(&with(3_000_000), &with(3_000_001))),
        "?"
    );
}

/// A constant array or object against the schemas of its parts, both ways.
#[test]
fn constants_are_compared_with_the_schemas_of_their_parts() {
    let tuple = |second: Value| json!({"type": "array", "prefixItems": [{"const": "a"}, second], "minItems": 2, "maxItems": 2});
    let constant = json!({"const": ["a", "b"]});
    let same = tuple(json!({"const": "b"}));
    let more = tuple(json!({"enum": ["b", "c"]}));
    for (old, new, expected) in [
        (&constant, &same, "C"),
        (&same, &constant, "C"),
        (&constant, &more, "C"),
        (&more, &constant, "B"),
        (&more, &json!({"enum": [["a", "b"], ["a", "c"]]}), "C"),
        (&json!({"enum": [["a", "b"], ["a", "c"]]}), &more, "C"),
    ] {
        assert_eq!(
            verdict_letter(&strictly(old, new)),
            expected,
            "{old} to {new}"
        );
    }
    let object = json!({"const": {"k": "a"}});
    let closed = |value: Value| json!({"type": "object", "properties": {"k": value}, "required": ["k"], "additionalProperties": false});
    for (old, new, expected) in [
        (&closed(json!({"const": "a"})), &object, "C"),
        (&closed(json!({"enum": ["a", "b"]})), &object, "B"),
        (&object, &closed(json!({"const": "a"})), "C"),
    ] {
        assert_eq!(
            verdict_letter(&strictly(old, new)),
            expected,
            "{old} to {new}"
        );
    }
}

#[test]
fn numbers_inside_constants_are_compared_exactly() {
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let large = |last: &str| {
        read(&format!(
            r#"{{"const": [100000000000000000000000000{last}]}}"#
        ))
    };
    assert!(matches!(
        strictly(&large("0"), &large("1")),
        SchemaVerdict::Breaking(witness) if witness.value == read("[1000000000000000000000000000]")
    ));
    let one = read(r#"{"enum": [{"a": [9007199254740993]}]}"#);
    let other = read(r#"{"enum": [{"a": [9007199254740992]}]}"#);
    assert_eq!(verdict_letter(&strictly(&one, &other)), "B");
    let same = read(r#"{"enum": [{"a": [9.007199254740993e15]}]}"#);
    assert!(matches!(
        strictly(&one, &same),
        SchemaVerdict::Equivalent(_)
    ));
    // Ruling out a list by a rounded item went on until the stack was full.
    let old = read(r#"{"prefixItems": [{"multipleOf": 9007199254740991}]}"#);
    let new =
        read(r#"{"not": {"enum": [[18446744073709551616.5], [1.000000000000000000000000001]]}}"#);
    assert_eq!(verdict_letter(&strictly(&old, &new)), "C");
}

#[test]
fn a_witness_that_only_rounding_accepts_is_no_witness() {
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let old = read(
        r#"{"prefixItems": [{"const": 3}, {"enum": [1000000000000000000000000000.5, -1]}],
            "contains": {"minimum": 1000000000000000000000001000}}"#,
    );
    let new = read(r#"{"maxItems": 1}"#);
    let SchemaVerdict::Breaking(witness) = strictly(&old, &new) else {
        panic!("a list of three items was accepted");
    };
    let items = witness.value.as_array().unwrap();
    assert!(items.len() > 2, "{items:?}");
    assert_eq!(accepts(&old, &witness.value), Some(true));
}

#[test]
fn a_step_may_be_larger_than_a_binary_fraction() {
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let (old, new) = (
        read(r#"{"multipleOf": 2e310}"#),
        read(r#"{"multipleOf": 1e310}"#),
    );
    assert_eq!(verdict_letter(&strictly(&old, &new)), "C");
}
