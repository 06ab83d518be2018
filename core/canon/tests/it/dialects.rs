//! What each dialect objects to, what a rewrite that keeps the meaning makes of it, and a check
//! against a real validator that it does keep the meaning.

mod tables;

use std::collections::BTreeSet;

use jsonschema::Validator;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use toolwarden_canon::{Dialect, FormatChoice, RewriteMode, canonicalize, conform, lint};
use toolwarden_model::json::{Object, Pointer, parse};
use toolwarden_testkit::corpus_definitions;

use crate::samples::{data, golden};

#[test]
fn every_dialect_has_cases_and_their_findings_and_fixes_are_as_expected() {
    for &dialect in Dialect::ALL {
        let text = std::fs::read_to_string(data("dialects").join(format!("{dialect}.json")))
            .unwrap_or_default();
        assert!(
            !text.is_empty(),
            "tests/data/dialects/{dialect}.json is missing"
        );
        let tools = canonicalize(parse(&text).unwrap().value, FormatChoice::Detect)
            .unwrap()
            .tools;
        let reports: Vec<Value> = tools
            .into_iter()
            .map(|read| {
                let mut tool = read.tool;
                let findings: Vec<String> = lint(&tool, dialect)
                    .iter()
                    .map(|finding| {
                        let fixable = if finding.fixable { ", fixable" } else { "" };
                        let (pointer, level) = (&finding.pointer, finding.level.as_str());
                        format!("{pointer}: {} [{}, {level}{fixable}]", finding.message, finding.rule)
                    })
                    .collect();
                let edits = conform(&mut tool.inputs, &Pointer::of(["inputs"]), dialect, RewriteMode::KeepMeaning);
                let left: Vec<String> = lint(&tool, dialect).iter().map(|finding| finding.pointer.to_string()).collect();
                json!({"name": tool.name, "findings": findings, "fixed": if edits.is_empty() { Value::Null } else { json!(tool.inputs) }, "left": left})
            })
            .collect();
        golden(
            &data("dialects").join(format!("expected/{dialect}.json")),
            &json!(reports),
        );
    }
}

#[test]
fn every_rule_is_shown_by_a_case() {
    let rules = [
        "boolean-schema",
        "description",
        "empty-object",
        "enum",
        "examples",
        "format",
        "inputs",
        "keyword",
        "min-items",
        "name",
        "open-object",
        "optional-property",
        "parameter-name",
        "pattern",
        "reference",
        "root-type",
        "root-union",
        "size",
        "tuple",
        "type-beside-union",
        "type-list",
        "untyped",
    ];
    let mut shown = BTreeSet::new();
    for dialect in Dialect::ALL {
        let text =
            std::fs::read_to_string(data("dialects").join(format!("{dialect}.json"))).unwrap();
        for read in canonicalize(parse(&text).unwrap().value, FormatChoice::Detect)
            .unwrap()
            .tools
        {
            shown.extend(
                lint(&read.tool, *dialect)
                    .into_iter()
                    .map(|finding| finding.rule),
            );
        }
    }
    assert_eq!(shown, BTreeSet::from(rules));
}

/// Validators before and after a rewrite, where both schemas are ones the validator takes.
///
/// Both judge by the same draft: a rewrite may drop `$schema`, which informs about it.
fn validators(before: &Object, after: &Object) -> Option<(Validator, Validator)> {
    let draft_7 = before
        .get("$schema")
        .and_then(Value::as_str)
        .is_some_and(|uri| uri.contains("draft-07"));
    let draft = if draft_7 {
        jsonschema::Draft::Draft7
    } else {
        jsonschema::Draft::Draft202012
    };
    let compile = |schema: &Object| {
        let mut schema = schema.clone();
        schema.shift_remove("$schema");
        jsonschema::options()
            .with_draft(draft)
            .build(&Value::Object(schema))
            .ok()
    };
    Some((compile(before)?, compile(after)?))
}

/// Values near a schema: some valid, some just not.
fn near(schema: &Value, root: &Value, depth: u32) -> BoxedStrategy<Value> {
    let noise = prop_oneof![
        Just(Value::Null),
        Just(json!(true)),
        Just(json!(0)),
        Just(json!(-1)),
        Just(json!(2.5)),
        Just(json!("")),
        Just(json!("abc")),
        Just(json!([])),
        Just(json!({})),
    ];
    let Some(members) = schema.as_object().filter(|_| depth < 6) else {
        return noise.boxed();
    };
    let mut options: Vec<BoxedStrategy<Value>> = vec![noise.boxed()];
    if let Some(target) = members
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|reference| root.pointer(reference.strip_prefix('#')?))
    {
        options.push(near(target, root, depth + 1));
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        for branch in members
            .get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            options.push(near(branch, root, depth + 1));
        }
    }
    options.extend(
        members
            .get("enum")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .cloned()
            .map(|value| Just(value).boxed()),
    );
    options.extend(
        members
            .get("const")
            .cloned()
            .map(|value| Just(value).boxed()),
    );
    for bound in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"] {
        if let Some(limit) = members.get(bound).and_then(Value::as_i64) {
            options.push(
                (limit.saturating_sub(1)..=limit.saturating_add(1))
                    .prop_map(Value::from)
                    .boxed(),
            );
        }
    }
    if let Some(items) = members.get("items") {
        options.push(
            proptest::collection::vec(near(items, root, depth + 1), 0..3)
                .prop_map(Value::Array)
                .boxed(),
        );
    }
    if let Some(Value::Object(properties)) = members.get("properties") {
        let fields: Vec<(String, BoxedStrategy<Value>)> = properties
            .iter()
            .take(8)
            .map(|(name, schema)| (name.clone(), near(schema, root, depth + 1)))
            .collect();
        let object =
            fields
                .into_iter()
                .fold(Just(Object::new()).boxed(), |object, (name, value)| {
                    (object, proptest::option::weighted(0.8, value))
                        .prop_map(move |(mut object, value)| {
                            object.extend(value.map(|value| (name.clone(), value)));
                            object
                        })
                        .boxed()
                });
        options.push(object.clone().prop_map(Value::Object).boxed());
        options.push(object.prop_map(Value::Object).boxed());
    }
    proptest::strategy::Union::new(options).boxed()
}

/// Checks that a rewrite accepts and rejects the same values; returns how many were tried.
fn keeps_meaning(
    before: &Object,
    dialect: Dialect,
    samples: usize,
    runner: &mut TestRunner,
) -> usize {
    let mut after = before.clone();
    let edits = conform(
        &mut after,
        &Pointer::root(),
        dialect,
        RewriteMode::KeepMeaning,
    );
    if edits.is_empty() {
        return 0;
    }
    let Some((old, new)) = validators(before, &after) else {
        return 0;
    };
    let root = Value::Object(before.clone());
    let strategy = near(&root, &root, 0);
    for _ in 0..samples {
        // Arguments are objects: a rewrite may say so where the schema does not.
        let value = strategy.new_tree(runner).unwrap().current();
        if value.is_object() {
            let (was, is) = (old.is_valid(&value), new.is_valid(&value));
            assert_eq!(
                was,
                is,
                "{dialect}: {value}\nbefore {root}\nafter {}",
                Value::Object(after)
            );
        }
    }
    samples
}

#[test]
fn fixes_keep_the_meaning_of_every_case() {
    let mut runner = TestRunner::deterministic();
    for dialect in Dialect::ALL {
        for of in Dialect::ALL {
            let text =
                std::fs::read_to_string(data("dialects").join(format!("{of}.json"))).unwrap();
            for read in canonicalize(parse(&text).unwrap().value, FormatChoice::Detect)
                .unwrap()
                .tools
            {
                keeps_meaning(&read.tool.inputs, *dialect, 300, &mut runner);
            }
        }
    }
}

#[test]
fn fixes_keep_the_meaning_of_real_schemas() {
    let Some(samples) = corpus_definitions() else {
        return;
    };
    let mut runner = TestRunner::deterministic();
    let mut tried = 0;
    let mut seen = BTreeSet::new();
    for sample in samples.iter().step_by(7) {
        for read in canonicalize(parse(&sample.text).unwrap().value, FormatChoice::Detect)
            .unwrap()
            .tools
        {
            if !seen.insert(Value::Object(read.tool.inputs.clone()).to_string()) {
                continue;
            }
            for dialect in [
                Dialect::OpenaiStrict,
                Dialect::AnthropicStrict,
                Dialect::Gemini,
                Dialect::Kimi,
                Dialect::DeepseekStrict,
            ] {
                tried += keeps_meaning(&read.tool.inputs, dialect, 10, &mut runner);
            }
        }
    }
    println!("{tried} values judged the same before and after a fix");
    assert!(tried > 5_000, "{tried}");
}
