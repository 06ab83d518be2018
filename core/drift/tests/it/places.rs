//! What two schemas declare about the same place of a call, wherever the declaration is.

use serde_json::{Value, json};
use toolwarden_drift::{CallEffect, ChangeClass, Drift};

use crate::drift;

fn compared(old: &Value, new: &Value) -> Drift {
    let tool = |input: &Value| json!({"name": "apply", "annotations": {"readOnlyHint": true}, "inputSchema": input});
    drift(&tool(old), &tool(new))
}

fn defaults(found: &Drift) -> Vec<(Value, Value, bool)> {
    let changes = found.changes.iter();
    let effects = changes.filter_map(|it| {
        Some((
            it.evidence.effect.as_ref()?,
            it.evidence.is_unsafe_default(),
        ))
    });
    let defaults = effects.filter_map(|(effect, fails)| match effect {
        CallEffect::Default { calls, .. } => {
            let (before, after) = calls.clone().unwrap_or_default();
            Some((before, after, fails))
        }
        CallEffect::Ignored { .. } => None,
    });
    defaults.collect()
}

fn object(x: Value, definitions: Value) -> Value {
    json!({"type": "object", "properties": {"x": x, "y": {"type": "string"}}, "$defs": definitions})
}

#[test]
fn a_default_behind_a_reference_or_in_a_branch_is_a_default() {
    let yes = json!({"type": "boolean", "default": true});
    let no = json!({"type": "boolean", "default": false});
    let nothing = json!({"type": "null"});
    let reference = json!({"$ref": "#/$defs/A"});
    let cases = [
        (
            object(reference.clone(), json!({"A": yes})),
            object(reference.clone(), json!({"A": no})),
        ),
        (
            object(reference.clone(), json!({"A": yes, "B": no})),
            object(json!({"$ref": "#/$defs/B"}), json!({"A": yes, "B": no})),
        ),
        (
            object(json!({"allOf": [yes]}), json!({})),
            object(json!({"allOf": [no]}), json!({})),
        ),
        (
            object(json!({"allOf": [yes]}), json!({})),
            object(json!({"allOf": [no, {"title": "x"}]}), json!({})),
        ),
        (
            object(json!({"anyOf": [yes, nothing]}), json!({})),
            object(
                json!({"anyOf": [nothing, no, {"type": "null", "title": "x"}]}),
                json!({}),
            ),
        ),
        (
            object(yes.clone(), json!({})),
            object(reference, json!({"A": no})),
        ),
        (
            json!({"type": "object", "allOf": [{"properties": {"x": yes}}]}),
            json!({"type": "object", "properties": {"x": no}}),
        ),
    ];
    for (old, new) in cases {
        let found = compared(&old, &new);
        let expected = (json!({"x": true}), json!({"x": false}), true);
        assert_eq!(defaults(&found), [expected], "{old} {new} {found:#?}");
    }
}

#[test]
fn a_default_that_went_with_its_schema_is_a_changed_default() {
    let old = object(json!({"type": "boolean", "default": true}), json!({}));
    for x in [
        json!(true),
        json!({}),
        json!({"type": ["boolean", "string"]}),
    ] {
        let found = compared(&old, &object(x, json!({})));
        assert_eq!(
            defaults(&found),
            [(json!({"x": true}), json!({}), true)],
            "{found:#?}"
        );
    }
}

#[test]
fn a_choice_behind_a_reference_is_a_switch() {
    let with = |default: &str| {
        let mode = json!({"Mode": {"enum": ["dry", "wet"]}});
        object(json!({"$ref": "#/$defs/Mode", "default": default}), mode)
    };
    let found = compared(&with("dry"), &with("wet"));
    assert_eq!(
        defaults(&found),
        [(json!({"x": "dry"}), json!({"x": "wet"}), true)]
    );
}

#[test]
fn a_default_that_only_moved_is_the_same() {
    let yes = json!({"type": "boolean", "default": true});
    let inline = object(yes.clone(), json!({}));
    let whole = json!({"x": yes, "y": {"type": "string"}});
    for other in [
        object(json!({"$ref": "#/$defs/A"}), json!({"A": yes})),
        object(json!({"allOf": [yes]}), json!({})),
        object(
            json!({"type": "boolean", "default": true, "anyOf": [{"default": false}]}),
            json!({}),
        ),
        json!({"type": "object", "allOf": [{"properties": whole}]}),
    ] {
        for (old, new) in [(&inline, &other), (&other, &inline)] {
            let found = compared(old, new);
            assert_eq!(found.class(), Some(ChangeClass::Equivalent), "{found:#?}");
        }
    }
}

fn ignored(found: &Drift) -> Vec<(Value, String)> {
    let ignored = found
        .changes
        .iter()
        .filter(|it| it.class == ChangeClass::Ignored);
    let calls = ignored.filter_map(|it| match &it.evidence.effect {
        Some(CallEffect::Ignored { call, pointer }) => Some((call.clone(), pointer.to_string())),
        _ => None,
    });
    calls.collect()
}

#[test]
fn an_argument_that_went_with_what_declared_it_is_ignored() {
    let dry = json!({"properties": {"dryRun": {"type": "boolean"}}});
    let base = json!({"type": "object", "properties": {"x": {"type": "string"}}});
    let with = |keyword: &str, value: Value| {
        let mut schema = base.clone();
        schema[keyword] = value;
        schema
    };
    let referring = {
        let mut schema = with("$ref", json!("#/$defs/A"));
        schema["$defs"] = json!({"A": dry});
        schema
    };
    let emptied = {
        let mut schema = with("$ref", json!("#/$defs/A"));
        schema["$defs"] = json!({"A": {}});
        schema
    };
    let cases = [
        (with("allOf", json!([dry])), base.clone()),
        (
            with("allOf", json!([dry, {"title": "b"}])),
            with("allOf", json!([{"title": "b"}])),
        ),
        (
            with("anyOf", json!([dry, {"minProperties": 1}])),
            with("anyOf", json!([{}])),
        ),
        (with("dependentSchemas", json!({"x": dry})), base.clone()),
        (
            json!({"type": "object", "properties": {"x": {"type": "string"}},
                "if": {"required": ["x"]}, "then": dry, "else": {"title": "b"}}),
            base.clone(),
        ),
        (referring.clone(), base.clone()),
        (referring, emptied),
    ];
    for (old, new) in cases {
        let found = compared(&old, &new);
        let calls = ignored(&found);
        assert_eq!(calls.len(), 1, "{old} {new} {found:#?}");
        assert_eq!(calls[0].1, "/dryRun", "{found:#?}");
        assert_eq!(calls[0].0["dryRun"], json!(true), "{found:#?}");
    }
}

#[test]
fn a_nested_argument_is_ignored_too() {
    let nested = |schema: Value| json!({"type": "object", "properties": {"opts": schema}});
    let old = nested(
        json!({"type": "object", "allOf": [{"properties": {"dryRun": {"type": "boolean"}}}],
        "properties": {"x": {}}}),
    );
    let new = nested(json!({"type": "object", "properties": {"x": {}}}));
    let found = compared(&old, &new);
    let expected = (json!({"opts": {"dryRun": true}}), "/opts/dryRun".to_owned());
    assert_eq!(ignored(&found), [expected]);
}

#[test]
fn a_refactoring_is_equivalent() {
    let x = json!({"type": "boolean"});
    let forms = [
        json!({"type": "object", "properties": {"x": x}}),
        json!({"type": "object", "allOf": [{"properties": {"x": x}}]}),
        json!({"type": "object", "$ref": "#/$defs/A", "$defs": {"A": {"properties": {"x": x}}}}),
        json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/X"}}, "$defs": {"X": x}}),
    ];
    for old in &forms {
        for new in &forms {
            let found = compared(old, new);
            assert!(
                found.class().is_none_or(|it| it == ChangeClass::Equivalent),
                "{old} {new} {found:#?}"
            );
        }
    }
}

#[test]
fn a_bound_above_the_size_budget_is_compared_by_arithmetic() {
    let with = |keyword: &str, bound: u64| {
        let kind = if keyword.ends_with("Items") {
            "array"
        } else {
            "string"
        };
        object(json!({"type": kind, keyword: bound}), json!({}))
    };
    let cases = [
        ("maxLength", 5_000_000, 8_000_000, ChangeClass::Breaking),
        ("minLength", 6_000_000, 5_000_000, ChangeClass::Breaking),
        ("maxItems", 500_000, 600_000, ChangeClass::Breaking),
        ("minItems", 600_000, 500_000, ChangeClass::Breaking),
        // A value of that size is not built, and without a witness nothing is called breaking.
        ("maxLength", 50_000_000, 80_000_000, ChangeClass::Unknown),
        ("minLength", 80_000_000, 50_000_000, ChangeClass::Unknown),
        ("maxItems", 5_000_000, 8_000_000, ChangeClass::Unknown),
        ("minItems", 8_000_000, 5_000_000, ChangeClass::Unknown),
    ];
    for (keyword, narrow, wide, class) in cases {
        let (narrow, wide) = (with(keyword, narrow), with(keyword, wide));
        let widened = compared(&narrow, &wide);
        assert_eq!(widened.class(), Some(ChangeClass::Widened), "{keyword}");
        let narrowed = compared(&wide, &narrow);
        assert_eq!(narrowed.class(), Some(class), "{keyword}");
        if class == ChangeClass::Unknown {
            let judgement = narrowed.changes[0].evidence.judgement.as_ref();
            let said = format!("{judgement:?}");
            assert!(said.contains("Budget"), "{keyword}: {said}");
        }
    }
}

#[test]
fn a_schema_with_too_many_subschemas_is_unknown() {
    let schema = |default: bool| {
        let mut properties = serde_json::Map::new();
        for at in 0..21_000 {
            properties.insert(format!("p{at}"), json!(true));
        }
        properties.insert("x".to_owned(), json!({"$ref": "#/$defs/A"}));
        let definitions = json!({"A": {"type": "boolean", "default": default}});
        json!({"type": "object", "properties": properties, "$defs": definitions})
    };
    let found = compared(&schema(true), &schema(false));
    assert_eq!(found.class(), Some(ChangeClass::Unknown));
    let messages: Vec<&str> = found.changes.iter().map(|it| it.message.as_str()).collect();
    assert!(
        messages
            .iter()
            .any(|it| it.contains("more than 20000 subschemas")),
        "{messages:?}"
    );
}
