//! Hostile input never causes a panic, an overflow or an endless run.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolwarden_canon::{
    Dialect, EmitTarget, FormatChoice, RewriteMode, canonicalize, canonicalize_item, conform,
    detect, emit, emit_native, lint, split,
};
use toolwarden_model::json::{Pointer, decode_utf8};
use toolwarden_model::{Format, Tool};

use crate::samples::data;

/// Puts a document through everything canon does.
fn exercise(document: Value) {
    assert!(!detect(&document).scores.is_empty());
    let Ok(read) = canonicalize(document, FormatChoice::Detect) else {
        return;
    };
    for read in read.tools {
        exercise_tool(&read.tool);
    }
}

fn exercise_text(text: &str) {
    let Ok(items) = split(text) else { return };
    for item in &items {
        if let Ok(read) = canonicalize_item(item, FormatChoice::Detect) {
            read.tools.iter().for_each(|read| exercise_tool(&read.tool));
        }
    }
}

fn exercise_tool(tool: &Tool) {
    let written = serde_json::to_string(tool).unwrap();
    let document = toolwarden_model::json::parse(&written).unwrap().value;
    let again = Tool::from_document(document).unwrap();
    assert_eq!(again.fingerprint(), tool.fingerprint());
    assert_eq!(emit_native(tool.clone()).name.original, tool.name);
    for (target, _) in EmitTarget::ALL {
        if let Ok(emission) = emit(tool.clone(), *target) {
            emission.value.to_string();
        }
    }
    for &dialect in Dialect::ALL {
        let findings = lint(tool, dialect);
        assert!(findings.iter().all(|finding| finding.level.as_str() != ""));
        for demand in [RewriteMode::KeepMeaning, RewriteMode::AllowLoss] {
            conform(&mut tool.inputs.clone(), &Pointer::root(), dialect, demand);
        }
    }
}

#[test]
fn every_sample_with_every_part_replaced_by_anything() {
    let replacements = [
        json!(null),
        json!(true),
        json!(0),
        json!("x"),
        json!([]),
        json!({}),
        json!([null]),
        json!({"type": null}),
        json!({"$ref": "#"}),
        json!({"properties": 5, "required": {}, "enum": 1, "anyOf": {}, "items": "x"}),
    ];
    for &format in Format::ALL {
        let text = std::fs::read_to_string(data("formats").join(format!("{format}.json"))).unwrap();
        let sample = toolwarden_model::json::parse(&text).unwrap().value;
        let mut places = Vec::new();
        collect(&sample, &Pointer::root(), &mut places);
        for place in places {
            for replacement in &replacements {
                let mut changed = sample.clone();
                if let Some(value) = changed.pointer_mut(place.as_str()) {
                    *value = replacement.clone();
                }
                exercise(changed);
            }
        }
    }
}

fn collect(value: &Value, at: &Pointer, places: &mut Vec<Pointer>) {
    places.push(at.clone());
    match value {
        Value::Object(members) => members
            .iter()
            .for_each(|(key, value)| collect(value, &at.child(key), places)),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(index, value)| collect(value, &at.index(index), places)),
        _ => {}
    }
}

#[test]
fn known_attacks() {
    let long = "x".repeat(1 << 20);
    exercise_text(
        &json!({"name": long, "description": long, "inputSchema": {"description": long}})
            .to_string(),
    );
    exercise_text(&"[".repeat(10_000));
    exercise_text(&format!(
        "{}{}",
        "{\"a\":".repeat(10_000),
        "}".repeat(10_000)
    ));
    exercise_text(&format!("{}{}", "[".repeat(100), "]".repeat(100)));
    for text in [
        "\"\\ud800\"",
        "{\"name\":\"\\udc00\"}",
        "\u{feff}",
        "null",
        "{}",
        "[]",
        "\"\"",
        "0",
        "{\"a\":1,\"a\":2}",
        "nul",
        "{,}",
    ] {
        exercise_text(text);
    }
    assert!(decode_utf8(b"{\"name\":\"\xff\"}").is_err());

    let mut value = Value::Null;
    for _ in 0..10_000 {
        // Not by the macro: it copies what it is given, level by level.
        value = Value::Object([("properties".to_owned(), value)].into_iter().collect());
    }
    let mut deep = json!({"name": "deep", "inputSchema": {}});
    deep["inputSchema"] = value;
    let refused = canonicalize(deep, FormatChoice::Detect).unwrap_err();
    assert_eq!(refused.to_string(), "nesting deeper than 128 levels");

    let cycle = json!({"name": "c", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A", "title": "t"}},
        "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}, "C": {"$ref": "#"}}}});
    exercise(cycle);
    let mut definitions = serde_json::Map::new();
    for level in 0..60 {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1), "title": "t"});
        definitions.insert(
            format!("d{level}"),
            json!({"type": "object", "properties": {"a": next, "b": next}}),
        );
    }
    exercise(
        json!({"name": "bomb", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "#/$defs/d0", "title": "t"}}, "$defs": definitions}}),
    );
}

fn any_json() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        Just("name"),
        Just("type"),
        Just("function"),
        Just("parameters"),
        Just("inputSchema"),
        Just("input_schema"),
        Just("properties"),
        Just("required"),
        Just("anyOf"),
        Just("allOf"),
        Just("oneOf"),
        Just("$ref"),
        Just("$defs"),
        Just("enum"),
        Just("const"),
        Just("items"),
        Just("tools"),
        Just("functionDeclarations"),
        Just("toolSpec"),
        Just("json"),
        Just("args_schema"),
        Just("description"),
        Just("x-capabilities"),
        Just("nullable"),
        Just("a"),
        Just("additionalProperties"),
        Just("title"),
        Just("default"),
        Just("paths"),
        Just("openapi"),
        Just("~/"),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop_oneof![
            Just("object"),
            Just("string"),
            Just("function"),
            Just("custom"),
            Just("OBJECT"),
            Just("dict"),
            Just("#/$defs/a"),
            Just("#"),
            Just("")
        ]
        .prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            proptest::collection::vec((key.clone(), inner), 0..6).prop_map(
                |members| Value::Object(
                    members
                        .into_iter()
                        .map(|(key, value)| (key.to_owned(), value))
                        .collect()
                )
            ),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_json_at_all(document in any_json()) {
        exercise(document);
    }

    #[test]
    fn canonicalizing_twice_gives_the_same(document in any_json()) {
        let once = canonicalize(document.clone(), FormatChoice::Detect).unwrap();
        let twice = canonicalize(document, FormatChoice::Detect).unwrap();
        prop_assert_eq!(format!("{once:?}"), format!("{twice:?}"));
    }

    /// The fuzz target: the samples with bytes changed, removed and doubled.
    #[test]
    fn mutated_bytes(seed in 0..Format::ALL.len(), mutations in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3_u8), 1..8)) {
        let path = data("formats").join(format!("{}.json", Format::ALL[seed]));
        let mut bytes = std::fs::read(path).unwrap();
        for (index, byte, kind) in mutations {
            if bytes.is_empty() {
                break;
            }
            let at = index.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, bytes[at]),
            }
        }
        if let Ok(text) = decode_utf8(&bytes) {
            exercise_text(text);
        }
    }
}
