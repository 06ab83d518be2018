//! Every draft is read as what it means in 2020-12, and every local reference finds its place.

use serde_json::{Value, json};
use toolwarden_schema::{
    Callers, ComparisonPolicy, FormatMode, SchemaVerdict, SearchBudget, ValueDomain, compare,
};

use crate::{for_arguments, strictly, verdict_letter};

fn draft(number: &str, mut schema: Value) -> Value {
    let uri = match number {
        "2019-09" => "https://json-schema.org/draft/2019-09/schema".to_owned(),
        number => format!("http://json-schema.org/draft-0{number}/schema#"),
    };
    schema["$schema"] = json!(uri);
    schema
}

#[test]
fn older_drafts_are_lifted() {
    let text = json!({"type": "string"});
    for (old, new) in [
        (
            draft("4", json!({"minimum": 0, "exclusiveMinimum": true})),
            json!({"exclusiveMinimum": 0}),
        ),
        (
            draft("4", json!({"minimum": 0, "exclusiveMinimum": false})),
            json!({"minimum": 0}),
        ),
        (draft("4", json!({"const": 1})), json!({})),
        (
            draft(
                "4",
                json!({"id": "#a", "items": [text], "additionalItems": false}),
            ),
            json!({"prefixItems": [text], "items": false}),
        ),
        (
            draft("6", json!({"exclusiveMaximum": 3, "contains": text})),
            json!({"exclusiveMaximum": 3, "contains": text}),
        ),
        (draft("6", json!({"if": text, "then": false})), json!({})),
        (
            draft("7", json!({"items": [text, {"type": "integer"}]})),
            json!({"prefixItems": [text, {"type": "integer"}]}),
        ),
        (
            draft("7", json!({"items": text, "additionalItems": false})),
            json!({"items": text}),
        ),
        (
            draft(
                "7",
                json!({"dependencies": {"a": ["b"], "c": {"required": ["d"]}}}),
            ),
            json!({"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": {"required": ["d"]}}}),
        ),
        (
            draft(
                "7",
                json!({"$ref": "#/definitions/a", "maxLength": 1, "definitions": {"a": text}}),
            ),
            text.clone(),
        ),
        (
            draft("7", json!({"dependentRequired": {"a": ["b"]}})),
            json!({}),
        ),
        (
            draft(
                "2019-09",
                json!({"$ref": "#/$defs/a", "maxLength": 1, "$defs": {"a": text}}),
            ),
            json!({"type": "string", "maxLength": 1}),
        ),
        (
            draft(
                "2019-09",
                json!({"type": "object", "properties": {"next": {"$recursiveRef": "#"}}}),
            ),
            json!({"type": "object", "properties": {"next": {"$ref": "#"}}}),
        ),
        (
            draft(
                "2019-09",
                json!({"items": [text], "unevaluatedItems": false}),
            ),
            json!({"prefixItems": [text], "items": false}),
        ),
    ] {
        let verdict = strictly(&old, &new);
        assert!(
            matches!(verdict, SchemaVerdict::Equivalent(_)),
            "{old} -> {new}: {verdict:?}"
        );
    }
}

#[test]
fn references_are_resolved_in_the_document() {
    let text = json!({"type": "string"});
    for schema in [
        json!({"$ref": "#/$defs/a", "$defs": {"a": text}}),
        json!({"$ref": "#/$defs/a~1b", "$defs": {"a/b": text}}),
        json!({"$ref": "#/$defs/a%25b", "$defs": {"a%b": text}}),
        json!({"$ref": "#name", "$defs": {"a": {"$anchor": "name", "type": "string"}}}),
        json!({"$id": "https://example.com/root.json", "$ref": "root.json#/$defs/a", "$defs": {"a": text}}),
        json!({"$id": "https://example.com/root.json", "$ref": "other.json", "$defs": {"a": {"$id": "other.json", "type": "string"}}}),
        json!({"$id": "https://example.com/root.json", "$ref": "folder/other.json#inner", "$defs": {"a": {"$id": "folder/other.json", "$defs": {"b": {"$anchor": "inner", "type": "string"}}}}}),
        json!({"$dynamicRef": "#node", "$defs": {"a": {"$dynamicAnchor": "node", "type": "string"}}}),
        draft(
            "7",
            json!({"$ref": "#name", "definitions": {"a": {"$id": "#name", "type": "string"}}}),
        ),
    ] {
        let verdict = strictly(&schema, &text);
        assert!(
            matches!(verdict, SchemaVerdict::Equivalent(_)),
            "{schema}: {verdict:?}"
        );
    }
}

#[test]
fn unevaluated_properties_are_followed_through_composition() {
    let part = |name: &str| json!({"properties": {name: {"type": "string"}}});
    let closed = |names: &[&str]| {
        let properties: serde_json::Map<String, Value> = names
            .iter()
            .map(|name| ((*name).to_owned(), json!({"type": "string"})))
            .collect();
        json!({"type": "object", "properties": properties, "additionalProperties": false})
    };
    let all =
        json!({"type": "object", "allOf": [part("a"), part("b")], "unevaluatedProperties": false});
    assert!(matches!(
        strictly(&all, &closed(&["a", "b"])),
        SchemaVerdict::Equivalent(_)
    ));
    let referred = json!({"type": "object", "$ref": "#/$defs/p", "properties": {"b": {"type": "string"}}, "unevaluatedProperties": false, "$defs": {"p": part("a")}});
    assert!(matches!(
        strictly(&referred, &closed(&["a", "b"])),
        SchemaVerdict::Equivalent(_)
    ));
    let chosen = json!({"type": "object", "oneOf": [
        {"properties": {"k": {"const": "a"}, "x": {"type": "string"}}, "required": ["k"]},
        {"properties": {"k": {"const": "b"}, "y": {"type": "string"}}, "required": ["k"]}], "unevaluatedProperties": false});
    let SchemaVerdict::Breaking(witness) = strictly(
        &json!({"type": "object", "properties": {"k": {"const": "a"}, "z": {}}, "required": ["k"], "additionalProperties": false}),
        &chosen,
    ) else {
        panic!("other keys are rejected");
    };
    assert_eq!(witness.keyword, "unevaluatedProperties");
    assert_eq!(
        verdict_letter(&strictly(&chosen, &json!({"required": ["k"]}))),
        "C"
    );
}

#[test]
fn formats_decide_only_where_they_are_asked_to() {
    let (old, new) = (
        json!({"type": "string"}),
        json!({"type": "string", "format": "email"}),
    );
    assert!(matches!(strictly(&old, &new), SchemaVerdict::Equivalent(_)));
    let asserting = ComparisonPolicy {
        callers: Callers::Open,
        domain: ValueDomain::Values,
        formats: FormatMode::Assert,
    };
    let SchemaVerdict::Breaking(witness) = compare(&old, &new, asserting, SearchBudget::default())
    else {
        panic!("not every text is an address");
    };
    assert_eq!(witness.keyword, "format");
    assert_eq!(
        verdict_letter(&compare(&new, &old, asserting, SearchBudget::default())),
        "C"
    );
    assert_eq!(
        verdict_letter(&compare(&new, &new, asserting, SearchBudget::default())),
        "C"
    );
}

#[test]
fn declared_callers_send_declared_keys() {
    let object = |extra: Value| {
        let mut schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        schema
            .as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        schema
    };
    let with_b = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}});
    // Explicitly open, free-form inside, or not closed: callers may send any of it.
    for (old, new, verdict) in [
        (object(json!({})), with_b.clone(), "C"),
        (
            object(json!({"additionalProperties": true})),
            with_b.clone(),
            "B",
        ),
        (json!({"type": "object"}), with_b.clone(), "C"),
        (json!({}), with_b.clone(), "B"),
        (
            json!({"type": "object", "properties": {"o": {"type": "object"}}}),
            json!({"type": "object", "properties": {"o": with_b}}),
            "B",
        ),
        (
            json!({"type": "object", "allOf": [object(json!({}))]}),
            with_b.clone(),
            "C",
        ),
        (
            json!({"type": "object", "properties": {"o": object(json!({}))}}),
            json!({"type": "object", "properties": {"o": with_b}}),
            "C",
        ),
    ] {
        let told_verdict = for_arguments(&old, &new);
        assert_eq!(
            verdict_letter(&told_verdict),
            verdict,
            "{old} -> {new}: {told_verdict:?}"
        );
    }
}

#[test]
fn dynamic_references_lead_to_the_outermost_anchor() {
    let tree = json!({"$id": "https://example.com/tree", "$dynamicAnchor": "node", "type": "object",
        "properties": {"data": true, "children": {"type": "array", "items": {"$dynamicRef": "#node"}}}});
    let strict = json!({"$id": "https://example.com/strict-tree", "$dynamicAnchor": "node", "$ref": "tree",
        "unevaluatedProperties": false, "$defs": {"tree": tree}});
    let plain = json!({"$ref": "#/$defs/tree", "unevaluatedProperties": false, "$defs": {"tree": {"type": "object",
        "properties": {"data": true, "children": {"type": "array", "items": {"$ref": "#"}}}}}});
    let open = json!({"type": "object", "properties": {"data": true, "children": {"type": "array", "items": {"$ref": "#"}}}});
    assert!(matches!(
        strictly(&strict, &plain),
        SchemaVerdict::Equivalent(_)
    ));
    // By itself the tree is open, at every level.
    assert!(matches!(
        strictly(&tree, &open),
        SchemaVerdict::Equivalent(_)
    ));
    assert!(matches!(
        strictly(&tree, &strict),
        SchemaVerdict::Breaking(_)
    ));
    assert!(matches!(
        strictly(&strict, &tree),
        SchemaVerdict::Compatible { .. }
    ));
    let recursive = json!({"$schema": "https://json-schema.org/draft/2019-09/schema", "$id": "https://example.com/strict",
        "$recursiveAnchor": true, "$ref": "tree", "unevaluatedProperties": false,
        "$defs": {"tree": {"$id": "https://example.com/tree", "$recursiveAnchor": true, "type": "object",
            "properties": {"data": true, "children": {"type": "array", "items": {"$recursiveRef": "#"}}}}}});
    assert!(matches!(
        strictly(&recursive, &plain),
        SchemaVerdict::Equivalent(_)
    ));
}

#[test]
fn published_metaschemas_are_known() {
    for uri in [
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft/2019-09/schema",
        "https://json-schema.org/draft/2020-12/schema",
    ] {
        let schema = json!({"type": "object", "properties": {"schema": {"$ref": uri}}, "additionalProperties": false});
        let wider = json!({"type": "object", "properties": {"schema": {"$ref": uri}, "name": {"type": "string"}},
            "additionalProperties": false});
        let objects = json!({"type": "object", "properties": {"schema": {"type": "object"}}, "additionalProperties": false});
        let anything = json!({"type": "object", "properties": {"schema": true}, "additionalProperties": false});
        let verdicts = [&wider, &objects, &anything].map(|new| strictly(&schema, new));
        assert!(
            matches!(verdicts[0], SchemaVerdict::Compatible { .. }),
            "{uri}: {:?}",
            verdicts[0]
        );
        // A boolean is a schema as well.
        assert!(
            matches!(verdicts[1], SchemaVerdict::Breaking(_)),
            "{uri}: {:?}",
            verdicts[1]
        );
        assert!(
            matches!(verdicts[2], SchemaVerdict::Compatible { .. }),
            "{uri}: {:?}",
            verdicts[2]
        );
    }
}
