//! Mistakes in a schema: each with its place and what to write instead.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolwarden_schema::{SchemaFaultRule, find_faults};
use toolwarden_testkit::corpus_definitions;

/// The mistakes as lines: rule, place, message, fix.
fn lines(schema: &Value) -> Vec<String> {
    let line = |it: toolwarden_schema::SchemaFault| {
        let rule = it.rule.as_str();
        format!("{rule} {}: {}; {}", it.pointer, it.message, it.fix)
    };
    find_faults(schema).into_iter().map(line).collect()
}

fn check(schema: &Value, expected: &[&str]) {
    assert_eq!(lines(schema), expected, "{schema}");
}

/// A property with the given schema.
fn property(schema: &Value) -> Value {
    json!({"type": "object", "properties": {"a": schema}})
}

#[test]
fn types_are_the_seven() {
    check(
        &property(&json!({"type": "strng"})),
        &[
            "invalid-keyword /properties/a/type: `type` is `strng`, which is not a type; did you mean `string`? (types: string, number, integer, boolean, array, object, null)",
        ],
    );
    check(
        &property(&json!({"type": ["str", "null"]})),
        &[
            "invalid-keyword /properties/a/type: `type` is `str`, which is not a type; write `string`",
        ],
    );
    check(
        &property(&json!({"type": "any"})),
        &[
            "invalid-keyword /properties/a/type: `type` is `any`, which is not a type; remove `type`: without it every type is valid",
        ],
    );
    check(
        &property(&json!("string")),
        &[
            "not-a-schema /properties/a: a schema must be an object or a boolean, not a string; write {\"type\": \"string\"}",
        ],
    );
}

#[test]
fn keywords_have_the_form_the_metaschema_asks_for() {
    check(
        &property(&json!({"type": "number", "minimum": "3"})),
        &[
            "invalid-keyword /properties/a/minimum: `minimum` must be a number, not a string \"3\"; write 3 without quotes",
        ],
    );
    check(
        &property(&json!({"enum": null})),
        &["invalid-keyword /properties/a/enum: `enum` must be a list, not null; remove `enum`"],
    );
    check(
        &property(&json!({"type": "string", "required": true})),
        &[
            "invalid-keyword /properties/a/required: `required` must be a list of names, not true; list the property's name in `required` of the object around it",
        ],
    );
    check(
        &property(&json!({"description": ["a", "b"]})),
        &[
            "invalid-keyword /properties/a/description: `description` must be a string, not an array; write a string, or remove `description`",
        ],
    );
    check(
        &property(&json!({"type": "integer", "minimum": 1, "exclusiveMinimum": true})),
        &[
            "invalid-keyword /properties/a/exclusiveMinimum: `exclusiveMinimum` must be a number, not true; put the bound itself into `exclusiveMinimum`, or name draft 4 in `$schema`",
        ],
    );
    check(
        &json!({"type": "object", "properties": []}),
        &[
            "invalid-keyword /properties: `properties` must be an object from names to schemas, not an array; write {\"name\": {\"type\": \"string\"}}, or remove `properties`",
        ],
    );
    check(
        &property(&json!({"anyOf": []})),
        &[
            "invalid-keyword /properties/a/anyOf: `anyOf` is an empty list; list at least one schema, or remove `anyOf`",
        ],
    );
}

#[test]
fn what_a_draft_allows_is_no_mistake_in_it() {
    let tuple = json!({"type": "array", "items": [{"type": "string"}]});
    let expected = "invalid-keyword /items: `items` is a list, which draft 2020-12 does not have; write `prefixItems` (and `items` instead of `additionalItems`), or name draft-07 in `$schema`";
    check(&tuple, &[expected]);
    let declared = |uri: &str| {
        let mut schema = tuple.clone();
        schema["$schema"] = json!(uri);
        schema
    };
    check(
        &declared("https://json-schema.org/draft/2020-12/schema"),
        &[expected],
    );
    check(&declared("http://json-schema.org/draft-07/schema#"), &[]);
    check(
        &json!({"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 1, "exclusiveMinimum": true}),
        &[],
    );
}

#[test]
fn patterns_are_regular_expressions_of_ecma_262() {
    check(
        &property(&json!({"pattern": "("})),
        &[
            "invalid-pattern /properties/a/pattern: `(` is not a regular expression of ECMA-262; unclosed group at character 1",
        ],
    );
    check(
        &property(&json!({"pattern": "(?P<year>\\d+)"})),
        &[
            "invalid-pattern /properties/a/pattern: `(?P<year>\\d+)` is not a regular expression of ECMA-262; write (?<name>…) instead of (?P<name>…)",
        ],
    );
    check(
        &property(&json!({"pattern": "^(?=.*[a-z])(?!x)\\p{L}+\\/$"})),
        &[],
    );
    check(
        &json!({"patternProperties": {"[": {}}}),
        &[
            "invalid-pattern /patternProperties/[: `[` is not a regular expression of ECMA-262; unclosed character class at character 1",
        ],
    );
}

#[test]
fn references_lead_to_a_schema() {
    let with = |reference: &str| json!({"properties": {"a": {"$ref": reference}}, "$defs": {"Filter": {"type": "string"}}});
    check(&with("#/$defs/Filter"), &[]);
    check(
        &with("#/$defs/Filtr"),
        &[
            "dangling-reference /properties/a/$ref: the reference `#/$defs/Filtr` leads to nothing; did you mean `#/$defs/Filter`?",
        ],
    );
    check(
        &with("https://example.com/x.json"),
        &[
            "dangling-reference /properties/a/$ref: the reference `https://example.com/x.json` leads out of the document, and nothing is fetched; copy the schema into `$defs` and refer to `#/$defs/NAME`",
        ],
    );
    check(
        &json!({"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/a"}}}),
        &[
            "dangling-reference /properties/a/$ref: the reference `#/$defs/a` leads back to itself; let one of the schemas say something besides the reference",
            "dangling-reference /$defs/a/$ref: the reference `#/$defs/a` leads back to itself; let one of the schemas say something besides the reference",
        ],
    );
}

#[test]
fn required_names_what_is_declared() {
    check(
        &json!({"type": "object", "properties": {"path": {}}, "required": ["paht"]}),
        &[
            "undeclared-required /required/0: `required` names `paht`, which nothing declares; did you mean `path`?",
        ],
    );
    check(
        &json!({"type": "object", "required": ["x"]}),
        &[
            "undeclared-required /required/0: `required` names `x`, which nothing declares; declare it in `properties`, or remove it from `required`",
        ],
    );
    // Declared by the schema around, by a branch, through a reference, by a pattern or a map.
    for fine in [
        json!({"properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
        json!({"required": ["a"], "allOf": [{"$ref": "#/$defs/A"}], "$defs": {"A": {"properties": {"a": {}}}}}),
        json!({"properties": {"b": {}}, "allOf": [{"$ref": "#/$defs/A"}], "$defs": {"A": {"required": ["b"]}}}),
        json!({"patternProperties": {"^a": {}}, "required": ["a"]}),
        json!({"additionalProperties": {"type": "string"}, "required": ["a"]}),
        json!({"properties": {"a": {}}, "not": {"required": ["legacy"]}}),
        json!({"properties": {"then": {"properties": {"a": {}}, "required": ["a"]}}}),
    ] {
        check(&fine, &[]);
    }
}

#[test]
fn schemas_that_only_references_lead_to_are_read() {
    check(
        &json!({"type": "object",
            "properties": {"a": {"$ref": "#/components/schemas/A"}},
            "components": {"schemas": {
                "A": {"type": "object", "properties": {"b": {"$ref": "#/components/schemas/B"}, "c": {"$ref": "#/components/schemas/A/properties/b"}}, "required": ["d"]},
                "B": {"type": "strng"},
                "unused": {"type": "strng"}}}}),
        &[
            "invalid-keyword /components/schemas/B/type: `type` is `strng`, which is not a type; did you mean `string`? (types: string, number, integer, boolean, array, object, null)",
            "undeclared-required /components/schemas/A/required/0: `required` names `d`, which nothing declares; declare it in `properties`, or remove it from `required`",
        ],
    );
}

#[test]
fn schemas_without_a_finite_value_are_found() {
    let endless = |place: &str| {
        vec![format!(
            "endless-schema {place}: every value of this schema must contain another value of it, without end; make the property that refers back optional, or let it be null"
        )]
    };
    let node = |next: Value| {
        json!({"type": "object", "properties": {"n": {"$ref": "#/$defs/node"}},
            "$defs": {"node": {"type": "object", "properties": {"next": next}, "required": ["next"]}}})
    };
    for next in [
        json!({"$ref": "#/$defs/node"}),
        json!({"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/node"}}),
        json!({"anyOf": [{"$ref": "#/$defs/node"}, {"allOf": [{"$ref": "#/$defs/node"}]}]}),
        json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/node"}}, "required": ["x"]}),
    ] {
        assert_eq!(lines(&node(next.clone())), endless("/$defs/node"), "{next}");
    }
    for next in [
        json!({"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}),
        json!({"type": "array", "items": {"$ref": "#/$defs/node"}}),
        json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/node"}}}),
        json!({"properties": {"x": {"$ref": "#/$defs/node"}}, "required": ["x"]}),
        json!({"type": ["object", "null"], "properties": {"x": {"$ref": "#/$defs/node"}}, "required": ["x"]}),
    ] {
        check(&node(next), &[]);
    }
    let root =
        json!({"type": "object", "properties": {"again": {"$ref": "#"}}, "required": ["again"]});
    assert_eq!(lines(&root), endless("/"));
    // A schema that needs one without a finite value is not itself at fault.
    let outer = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}},
        "$defs": {
            "a": {"type": "object", "properties": {"b": {"$ref": "#/$defs/b"}}, "required": ["b"]},
            "b": {"type": "object", "properties": {"b": {"$ref": "#/$defs/b"}}, "required": ["b"]}}});
    assert_eq!(lines(&outer), endless("/$defs/b"));
}

#[test]
fn faults_inside_schemas_that_are_referenced_twice_are_listed_once() {
    for order in [["A/properties/b", "A"], ["A", "A/properties/b"]] {
        let references = order.map(|it| json!({"$ref": format!("#/components/schemas/{it}")}));
        check(
            &json!({"type": "object", "allOf": references, "components": {"schemas": {
                "A": {"type": "object", "properties": {"b": {"type": "strng"}}}}}}),
            &[
                "invalid-keyword /components/schemas/A/properties/b/type: `type` is `strng`, which is not a type; did you mean `string`? (types: string, number, integer, boolean, array, object, null)",
            ],
        );
    }
}

#[test]
fn long_rings_of_endless_schemas_end_soon() {
    let ring = (0..3000).map(|n| {
        let next = json!({"$ref": format!("#/$defs/d{}", (n + 1) % 3000)});
        let schema = json!({"type": "object", "properties": {"n": next}, "required": ["n"]});
        (format!("d{n}"), schema)
    });
    let ring: serde_json::Map<String, Value> = ring.collect();
    let start = std::time::Instant::now();
    let faults = find_faults(&json!({"$ref": "#/$defs/d0", "$defs": ring}));
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
    assert!(!faults.is_empty());
    assert!(faults.iter().all(|it| it.rule == SchemaFaultRule::Endless));
}

#[test]
fn keywords_of_no_draft_are_named_where_they_resemble_one() {
    check(
        &property(&json!({"type": "string", "patern": "^a"})),
        &[
            "unknown-keyword /properties/a/patern: `patern` is not a keyword of JSON Schema and constrains nothing; did you mean `pattern`?",
        ],
    );
    check(
        &property(&json!({"type": "string", "example": "a", "nullable": true, "x-order": 1})),
        &[],
    );
    assert!(!SchemaFaultRule::UnknownKeyword.is_error());
}

#[test]
fn published_schemas_have_few_mistakes() {
    let Some(samples) = corpus_definitions() else {
        return;
    };
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut schemas = 0;
    for sample in &samples {
        let Ok(definition) = serde_json::from_str::<Value>(&sample.text) else {
            continue;
        };
        let Some(schema) = definition.get("inputSchema").filter(|it| it.is_object()) else {
            continue;
        };
        schemas += 1;
        for fault in find_faults(schema) {
            let count = counts.entry(fault.rule.as_str()).or_default();
            *count += 1;
            if *count <= 25 {
                println!(
                    "{} {} {}: {}; {}",
                    fault.rule.as_str(),
                    sample.origin,
                    fault.pointer,
                    fault.message,
                    fault.fix
                );
            }
        }
    }
    println!("{schemas} schemas: {counts:?}");
    assert!(schemas > 10_000, "{schemas}");
}
