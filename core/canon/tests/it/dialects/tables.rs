//! Dialect tables measured from a provider: how they are read, and which findings follow from them.

use serde_json::{Value, json};
use toolwarden_canon::{DialectTable, RewriteMode, conform_to_facts, lint_with_facts};
use toolwarden_model::json::Pointer;
use toolwarden_model::{Format, Tool};

/// Families with their outcomes.
type Outcomes<'t> = &'t [(&'t str, &'t str)];

fn document(outcomes: Outcomes<'_>) -> Value {
    let family = |(id, outcome): &(&str, &str)| {
        json!({"id": id, "what": "", "outcome": outcome, "called": true, "status": 200,
            "message": null, "schema": {}})
    };
    let families: Vec<Value> = outcomes.iter().map(family).collect();
    json!({"schema": "toolwarden/probe/dialect/v1", "provider": "kimi", "model_id": "k2",
        "wire": "openai-chat", "at": "2026-11-14T23:59:59.000Z", "tool_choice": "auto",
        "plain": family(&("plain", "accepted")), "families": families})
}

fn table(outcomes: Outcomes<'_>) -> DialectTable {
    DialectTable::read(&document(outcomes).to_string()).unwrap()
}

/// A tool whose arguments are described by a schema.
fn tool(schema: &Value) -> Tool {
    let mut tool = Tool::new(Format::OpenaiChat);
    "look".clone_into(&mut tool.name);
    tool.inputs = schema.as_object().unwrap().clone();
    tool
}

/// A schema with one property.
fn holding(value: &Value) -> Value {
    json!({"type": "object", "properties": {"value": value}})
}

fn findings(outcomes: Outcomes<'_>, schema: &Value) -> Vec<String> {
    lint_with_facts(&tool(schema), &table(outcomes).facts)
        .into_iter()
        .map(|it| {
            let fixable = if it.fixable { ", fixable" } else { "" };
            let level = it.level.as_str();
            format!(
                "{}: {} [{}, {level}{fixable}]",
                it.pointer, it.message, it.rule
            )
        })
        .collect()
}

#[test]
fn a_table_says_where_it_comes_from_and_what_it_leaves_open() {
    let read = table(&[
        ("oneOf", "rejected"),
        ("const", "not_measured"),
        ("of-tomorrow", "not_measured"),
    ]);
    assert_eq!(read.name, "kimi/k2");
    assert_eq!(read.facts.verified_on, "2026-11-14");
    assert_eq!(read.facts.source, "probed kimi/k2");
    let rest = DialectTable::families().filter(|id| !["oneOf", "const"].contains(id));
    let open: Vec<&str> = ["const", "of-tomorrow"].into_iter().chain(rest).collect();
    assert_eq!(read.not_measured, open);
}

#[test]
fn a_table_without_a_time_says_so() {
    let mut undated = document(&[("oneOf", "rejected")]);
    undated["at"] = Value::Null;
    let read = DialectTable::read(&undated.to_string()).unwrap();
    assert_eq!(read.facts.verified_on, "on an unknown day");
}

#[test]
fn what_is_no_table_is_refused_with_the_reason() {
    let good = document(&[("oneOf", "rejected")]);
    let with = |pointer: &str, value: Value| {
        let mut changed = good.clone();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        changed.pointer_mut(parent).unwrap()[key] = value;
        changed.to_string()
    };
    let cases = [
        (
            "{\n  \"schema\": tru}".to_owned(),
            "not JSON at line 2, column 16: a word that is not JSON; write true, false, null, or text in double quotes",
        ),
        (
            "[]".to_owned(),
            "the document is `something else`, expected `toolwarden/probe/dialect/v1`",
        ),
        (
            with("/schema", json!("toolwarden/probe/dialect/v2")),
            "the document is `toolwarden/probe/dialect/v2`, expected `toolwarden/probe/dialect/v1`",
        ),
        (
            with("/famlies", json!([])),
            "`famlies` is not a member of the table, did you mean `families`?",
        ),
        (
            with("/families/0/because", json!("")),
            "`because` is not a member of family 1",
        ),
        (
            with("/families", json!({})),
            "`families` of the table must be a list",
        ),
        (
            with("/families", json!([1])),
            "`families` of the table must be a list of objects",
        ),
        (
            with("/families/0/id", json!(1)),
            "`id` of family 1 must be a string",
        ),
        (
            with("/model_id", Value::Null),
            "`model_id` of the table must be a string",
        ),
        (
            with("/at", json!("yesterday")),
            "`at` of the table must be a time in RFC 3339",
        ),
        (
            with("/families/0/outcome", json!("fine")),
            "the outcome `fine` of the family `oneOf` is unknown",
        ),
        (
            with("/families/0/outcome", json!("regected")),
            "the outcome `regected` of the family `oneOf` is unknown, did you mean `rejected`?",
        ),
        (
            document(&[("onOf", "accepted")]).to_string(),
            "the family `onOf` is unknown, did you mean `oneOf`?",
        ),
        (
            document(&[("oneOf", "accepted"), ("oneOf", "rejected")]).to_string(),
            "the family `oneOf` is listed twice",
        ),
        (
            document(&[("oneOf", "not_measured")]).to_string(),
            "no family was measured, so lint cannot find anything",
        ),
    ];
    for (text, message) in cases {
        let error = DialectTable::read(&text).unwrap_err();
        assert_eq!(error.to_string(), message, "{text}");
    }
}

#[test]
fn families_together_say_more_than_each() {
    let at = "/inputs/properties/value";
    let referring = |place: &str| {
        json!({"type": "object", "properties": {"value": {"$ref": format!("#/{place}/a")}},
            place: {"a": {"type": "string"}}})
    };
    let union_at_root = json!({"type": "object", "properties": {"a": {}},
        "anyOf": [{"required": ["a"]}]});
    let beside = holding(&json!({"type": "string", "anyOf": [{"minLength": 2}]}));
    let tuple = json!({"type": "object", "properties": {"value": {"items": [{}]}}});
    let noted = holding(&json!({"type": "string", "x-note": "", "title": "", "pattern": "a"}));
    let cases: &[(&str, Outcomes<'_>, &Value, &[&str])] = &[
        (
            "only `$defs` is refused",
            &[("$ref", "rejected"), ("definitions", "accepted")],
            &referring("$defs"),
            &[
                "/inputs/$defs: `$defs` is not accepted [keyword, rejected]",
                "AT/$ref: references into `$defs` are not accepted [reference, rejected, fixable]",
            ],
        ),
        (
            "`definitions` is not",
            &[("$ref", "rejected"), ("definitions", "accepted")],
            &referring("definitions"),
            &[],
        ),
        (
            "a refused union is said once",
            &[("anyOf", "rejected"), ("type-beside-anyOf", "rejected")],
            &beside,
            &["AT/anyOf: `anyOf` is not accepted [keyword, rejected]"],
        ),
        (
            "a root that was not tried is like what is inside",
            &[("type-beside-anyOf", "rejected")],
            &union_at_root,
            &["/inputs/type: `type` beside `anyOf` is not accepted [type-beside-union, rejected]"],
        ),
        (
            "a root that was tried is not",
            &[
                ("type-beside-anyOf", "rejected"),
                ("anyOf-at-root", "accepted"),
            ],
            &union_at_root,
            &[],
        ),
        (
            "undefined keywords are refused, and so is a keyword refused by itself",
            &[("unknown-keyword", "rejected"), ("pattern", "rejected")],
            &noted,
            &[
                "AT/x-note: `x-note` is not accepted [keyword, rejected, fixable]",
                "AT/pattern: `pattern` is not accepted [keyword, rejected]",
            ],
        ),
        (
            "undefined keywords are ignored, and so is a keyword ignored by itself",
            &[("unknown-keyword", "ignored"), ("title", "ignored")],
            &noted,
            &[
                "AT/x-note: `x-note` is accepted but not honoured [keyword, ignored]",
                "AT/title: `title` is accepted but not honoured [keyword, ignored]",
            ],
        ),
        (
            "a refused draft says nothing of tuples",
            &[("$schema", "rejected"), ("items-list", "rejected")],
            &tuple,
            &[],
        ),
        (
            "formats of JSON Schema are known where one of them is taken",
            &[("format", "accepted"), ("format-of-openapi", "rejected")],
            &holding(&json!({"anyOf": [{"format": "uuid"}, {"format": "int64"}]})),
            &["AT/anyOf/1/format: the format `int64` is not accepted [format, rejected]"],
        ),
    ];
    for (what, outcomes, schema, expected) in cases {
        let expected: Vec<String> = expected.iter().map(|it| it.replace("AT", at)).collect();
        assert_eq!(findings(outcomes, schema), expected, "{what}");
    }
}

#[test]
fn a_fix_leads_only_to_what_the_provider_takes() {
    let one_of = holding(&json!({"oneOf": [{"type": "string"}, {"type": "integer"}]}));
    let any_of = holding(&json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}));
    let list = holding(&json!({"type": ["string", "integer"]}));
    let open_bound = holding(&json!({"type": "integer", "exclusiveMinimum": 1}));
    let closed_bound = holding(&json!({"type": "integer", "minimum": 2}));
    let referring = |definition: &Value| {
        json!({"type": "object", "properties": {"value": {"$ref": "#/$defs/a"}},
            "$defs": {"a": definition}})
    };
    let recursive = referring(&json!({"type": "array", "items": {"$ref": "#/$defs/a"}}));
    let only_old_place = &[("$ref", "rejected"), ("definitions", "accepted")];
    let cases: &[(Outcomes<'_>, &Value, &Value)] = &[
        (
            only_old_place,
            &referring(&json!({"type": "string"})),
            &holding(&json!({"type": "string"})),
        ),
        (only_old_place, &recursive, &recursive),
        (&[("oneOf", "rejected")], &one_of, &any_of),
        (&[("oneOf", "ignored")], &one_of, &one_of),
        (
            &[("oneOf", "rejected"), ("anyOf", "rejected")],
            &one_of,
            &one_of,
        ),
        (&[("type-list", "rejected")], &list, &any_of),
        (
            &[("type-list", "rejected"), ("anyOf", "rejected")],
            &list,
            &list,
        ),
        (&[("type-list", "ignored")], &list, &list),
        (
            &[("exclusiveMinimum", "rejected")],
            &open_bound,
            &closed_bound,
        ),
        (
            &[("exclusiveMinimum", "rejected"), ("minimum", "rejected")],
            &open_bound,
            &open_bound,
        ),
    ];
    for (outcomes, schema, expected) in cases {
        let mut inputs = schema.as_object().unwrap().clone();
        let facts = table(outcomes).facts;
        conform_to_facts(
            &mut inputs,
            &Pointer::root(),
            &facts,
            RewriteMode::KeepMeaning,
        );
        assert_eq!(Value::Object(inputs), **expected, "{outcomes:?}");
    }
}
