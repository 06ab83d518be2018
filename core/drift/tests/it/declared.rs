//! Whether an argument that was declared is still declared: only what applies to its value counts.

use serde_json::{Value, json};
use toolwarden_drift::{CallEffect, ChangeClass, Drift};

use crate::drift;

fn compared(old: &Value, new: &Value) -> Drift {
    let tool = |input: &Value| json!({"name": "apply", "annotations": {"readOnlyHint": true}, "inputSchema": input});
    drift(&tool(old), &tool(new))
}

/// The calls that lose a value, with the place of the value.
fn ignored(found: &Drift) -> Vec<(Value, String)> {
    let ignored = found
        .changes
        .iter()
        .filter(|it| it.class == ChangeClass::Ignored);
    let calls = ignored.map(|it| match &it.evidence.effect {
        Some(CallEffect::Ignored { call, pointer }) => (call.clone(), pointer.to_string()),
        _ => (Value::Null, it.pointer.to_string()),
    });
    calls.collect()
}

fn with(keyword: &str, value: Value) -> Value {
    json!({"type": "object", "properties": {"x": {"type": "string"}}, keyword: value})
}

fn dry_run() -> Value {
    json!({"properties": {"dryRun": {"type": "boolean"}}})
}

#[test]
fn what_was_declared_inside_a_part_that_became_bare_is_ignored() {
    let item = json!({"type": "object", "properties": {"dryRun": {"type": "boolean"}}});
    let list = |schema: Value| json!({"type": "object", "properties": {"a": schema, "x": {"type": "string"}}});
    let in_list = json!({"a": [{"dryRun": true}]});
    let in_map = json!({"a": {"key": {"dryRun": true}}});
    let cases = [
        (
            json!({"type": "array", "items": item}),
            &in_list,
            "/a/0/dryRun",
            "array",
        ),
        (
            json!({"type": "array", "prefixItems": [item]}),
            &in_list,
            "/a/0/dryRun",
            "array",
        ),
        (
            json!({"type": "array", "items": {"allOf": [{"$ref": "#/properties/a/$defs/I"}]}, "$defs": {"I": item}}),
            &in_list,
            "/a/0/dryRun",
            "array",
        ),
        (
            json!({"type": "object", "additionalProperties": item}),
            &in_map,
            "/a/key/dryRun",
            "object",
        ),
        (item, &json!({"a": {"dryRun": true}}), "/a/dryRun", "object"),
    ];
    for (old, call, place, kind) in cases {
        for bare in [
            json!({"type": kind}),
            json!(true),
            json!({}),
            json!({"title": "A"}),
        ] {
            let found = compared(&list(old.clone()), &list(bare.clone()));
            let expected = [(call.clone(), place.to_owned())];
            assert_eq!(ignored(&found), expected, "{old} {bare} {found:#?}");
        }
        for (key, bare) in [
            ("items", json!(true)),
            ("items", json!({})),
            ("additionalProperties", json!(true)),
        ] {
            if old.get(key).is_none() {
                continue;
            }
            let mut new = old.clone();
            new[key] = bare;
            let found = compared(&list(old.clone()), &list(new.clone()));
            let expected = [(call.clone(), place.to_owned())];
            assert_eq!(ignored(&found), expected, "{old} {new} {found:#?}");
        }
    }
}

#[test]
fn a_key_that_matches_a_pattern_loses_its_members_too() {
    let item = json!({"type": "object", "properties": {"dryRun": {"type": "boolean"}}});
    let old = json!({"type": "object", "patternProperties": {"^env_[a-z]$": item}});
    let new = json!({"type": "object", "patternProperties": {"^env_[a-z]$": {"type": "object"}}});
    let expected = (
        json!({"env_a": {"dryRun": true}}),
        "/env_a/dryRun".to_owned(),
    );
    assert_eq!(ignored(&compared(&old, &new)), [expected]);
}

#[test]
fn a_mention_without_effect_is_no_declaration() {
    let old = json!({"type": "object", "properties": {"x": {"type": "string"}, "dryRun": {"type": "boolean"}}});
    let mut draft7 = with("$schema", json!("http://json-schema.org/draft-07/schema#"));
    draft7["properties"]["x"] = json!({"type": "string"});
    draft7["allOf"] =
        json!([{"$ref": "#/definitions/A", "properties": {"dryRun": {"type": "boolean"}}}]);
    draft7["definitions"] = json!({"A": {"title": "A"}});
    let mut condition = with("if", json!(false));
    condition["then"] = dry_run();
    let mut otherwise = with("if", json!(true));
    otherwise["else"] = dry_run();
    let mut bare_condition = with("if", dry_run());
    bare_condition["then"] = json!({});
    let mut only_objects = with("anyOf", json!([{"type": "object"}, dry_run()]));
    only_objects["title"] = json!("t");
    let news = [
        with("if", dry_run()),
        bare_condition,
        condition,
        otherwise,
        with("then", dry_run()),
        with("anyOf", json!([{}, dry_run()])),
        with("anyOf", json!([true, {"allOf": [dry_run()]}])),
        only_objects,
        with("anyOf", json!([{"minProperties": 0}, dry_run()])),
        with(
            "anyOf",
            json!([{"type": "object"}, {"type": "string", "properties": {"dryRun": true}}]),
        ),
        with(
            "oneOf",
            json!([{"type": "object"}, {"type": "string", "properties": {"dryRun": true}}]),
        ),
        with("dependentSchemas", json!({"other": dry_run()})),
        with("dependentSchemas", json!({"x": dry_run()})),
        with("dependencies", json!({"other": dry_run()})),
        with("patternProperties", json!({".*": true})),
        with("patternProperties", json!({"^": {}})),
        with(
            "patternProperties",
            json!({"": {"type": ["string", "number", "boolean", "null", "array", "object"]}}),
        ),
        with("additionalProperties", json!({"minLength": 0})),
        with("not", json!({"not": dry_run()})),
        with(
            "not",
            json!({"properties": {"dryRun": {"type": "array"}}, "required": ["dryRun"]}),
        ),
        with("$defs", json!({"A": dry_run()})),
        with("contains", dry_run()),
        with(
            "propertyNames",
            json!({"anyOf": [{"const": "dryRun"}, {"type": "string"}]}),
        ),
        draft7,
    ];
    for new in news {
        let found = compared(&old, &new);
        let calls = ignored(&found);
        assert_eq!(calls.len(), 1, "{new} {found:#?}");
        assert_eq!(
            calls[0],
            (json!({"dryRun": true}), "/dryRun".to_owned()),
            "{new}"
        );
    }
}

#[test]
fn a_mention_with_an_effect_is_a_declaration() {
    let old = json!({"type": "object", "properties": {"x": {"type": "string"}, "dryRun": {"type": "boolean"}}});
    let mut always = with("if", json!(true));
    always["then"] = dry_run();
    let mut condition = with("if", json!({"properties": {"dryRun": {"const": true}}}));
    condition["then"] = json!({"required": ["x"]});
    let news = [
        always,
        condition,
        with("allOf", json!([dry_run()])),
        with("anyOf", json!([dry_run()])),
        with(
            "anyOf",
            json!([{"properties": {"dryRun": {"type": "boolean"}, "x": true}, "required": ["x"]}, dry_run()]),
        ),
        with("patternProperties", json!({"Run$": {"type": "boolean"}})),
        with(
            "additionalProperties",
            json!({"description": "more switches"}),
        ),
        json!({"type": "object", "properties": {"x": {"type": "string"}}, "allOf": [{"$ref": "#dry"}],
            "$defs": {"D": {"$anchor": "dry", "properties": {"dryRun": {"type": "boolean"}}}}}),
    ];
    for new in news {
        let found = compared(&old, &new);
        assert_eq!(ignored(&found), [], "{new} {found:#?}");
    }
}

#[test]
fn an_anchor_that_declares_nothing_hides_nothing() {
    let old = json!({"type": "object", "maxProperties": 9, "properties": {"dryRun": {"type": "boolean"}}});
    let new = json!({"type": "object", "maxProperties": 9, "allOf": [{"$ref": "#a"}], "$defs": {"A": {"$anchor": "a", "title": "A"}}});
    let expected = (json!({"dryRun": true}), "/dryRun".to_owned());
    assert_eq!(ignored(&compared(&old, &new)), [expected]);
}

#[test]
fn a_mention_without_effect_that_stays_or_goes_is_not_a_loss() {
    let dead = with("anyOf", json!([{}, dry_run()]));
    let mut other = dead.clone();
    other["properties"]["y"] = json!({"type": "string"});
    assert_eq!(ignored(&compared(&dead, &other)), []);
    let plain = with("title", json!("t"));
    for gone in [
        with("not", json!({"not": dry_run()})),
        with("then", dry_run()),
        with("$defs", json!({"A": dry_run()})),
        with("dependentSchemas", json!({"y": {"not": dry_run()}})),
    ] {
        let found = compared(&gone, &plain);
        assert_eq!(ignored(&found), [], "{gone} {found:#?}");
    }
}

fn unsafe_defaults(found: &Drift) -> usize {
    let changes = found.changes.iter();
    changes.filter(|it| it.evidence.is_unsafe_default()).count()
}

#[test]
fn a_default_that_applies_to_no_argument_is_equivalent() {
    let flag = |default: bool| json!({"type": "boolean", "default": default});
    let conditional = |default: bool| {
        let mut schema = with(
            "if",
            json!({"properties": {"y": flag(default)}, "required": ["y"]}),
        );
        schema["then"] = json!({"required": ["x"]});
        schema
    };
    let pairs = [
        (
            with("$defs", json!({"A": flag(true)})),
            with("$defs", json!({"A": flag(false)})),
        ),
        (conditional(true), conditional(false)),
        (with("not", flag(true)), with("not", flag(false))),
        (with("then", flag(true)), with("then", flag(false))),
    ];
    for (old, new) in pairs {
        let found = compared(&old, &new);
        assert_eq!(
            found.class(),
            Some(ChangeClass::Equivalent),
            "{old} {found:#?}"
        );
        assert_eq!(unsafe_defaults(&found), 0);
    }
}

#[test]
fn reordered_branches_and_moved_references_are_equivalent() {
    let a = json!({"type": "object", "properties": {"kind": {"const": "a"}, "n": {"type": "integer", "default": 1}}, "required": ["kind"]});
    let b = json!({"type": "object", "properties": {"kind": {"const": "b"}, "m": {"type": "boolean", "default": true}}, "required": ["kind"]});
    let argument = |schema: Value| json!({"type": "object", "properties": {"v": schema}});
    let defined = json!({"type": "object", "properties": {"v": {"$ref": "#/$defs/V"}}, "$defs": {"V": {"anyOf": [a, b]}}});
    let forms = [
        argument(json!({"anyOf": [a, b]})),
        argument(json!({"anyOf": [b, a]})),
        defined,
        json!({"type": "object", "properties": {"v": {"anyOf": [{"$ref": "#/$defs/B"}, {"$ref": "#/$defs/A"}]}}, "$defs": {"A": a, "B": b}}),
    ];
    for old in &forms {
        for new in &forms {
            let found = compared(old, new);
            let class = found.class();
            assert!(
                class.is_none_or(|it| it == ChangeClass::Equivalent),
                "{old} {new} {found:#?}"
            );
        }
    }
    let one = json!({"type": "object", "properties": {"v": {"oneOf": [a, b]}}});
    let other = json!({"type": "object", "properties": {"v": {"oneOf": [b, a]}}});
    assert_eq!(
        compared(&one, &other).class(),
        Some(ChangeClass::Equivalent)
    );
}

#[test]
fn a_default_flips_wherever_it_applies() {
    let flag = |default: bool| json!({"type": "boolean", "default": default});
    let forms: [fn(Value) -> Value; 6] = [
        |x| json!({"type": "object", "properties": {"o": {"type": "object", "properties": {"x": x}}}}),
        |x| json!({"type": "object", "properties": {"o": {"type": "array", "items": {"type": "object", "properties": {"x": x}}}}}),
        |x| json!({"type": "object", "properties": {"o": {"type": "array", "prefixItems": [{"type": "object", "properties": {"x": x}}]}}}),
        |x| json!({"type": "object", "properties": {"o": {"type": "object", "additionalProperties": {"type": "object", "properties": {"x": x}}}}}),
        |x| json!({"type": "object", "anyOf": [{"properties": {"x": x}}, {"required": ["y"]}]}),
        |x| json!({"type": "object", "properties": {"x": {"anyOf": [{"$ref": "#/$defs/X"}, {"type": "null"}]}}, "$defs": {"X": x}}),
    ];
    for form in forms {
        let found = compared(&form(flag(true)), &form(flag(false)));
        assert_eq!(
            unsafe_defaults(&found),
            1,
            "{} {found:#?}",
            form(flag(true))
        );
    }
}
