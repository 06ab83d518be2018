use serde_json::{Value, json};

use super::{KeywordFamily, plain_family, property_family, schema_family};

pub(super) fn references() -> Vec<KeywordFamily> {
    let point = json!({
        "type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]
    });
    let referring = |to: &str, place: &str| {
        json!({
            "type": "object",
            "properties": {"value": {"$ref": to}},
            "required": ["value"],
            place: {"point": point}
        })
    };
    let wanted = json!({"value": {"x": 1}});
    vec![
        schema_family(
            "$ref",
            "a reference to `$defs`",
            referring("#/$defs/point", "$defs"),
            &wanted,
        ),
        schema_family(
            "definitions",
            "a reference to `definitions`",
            referring("#/definitions/point", "definitions"),
            &wanted,
        ),
        schema_family(
            "recursion",
            "a schema that refers to itself",
            json!({
                "type": "object",
                "properties": {"value": {"$ref": "#/$defs/node"}},
                "required": ["value"],
                "$defs": {"node": {
                    "type": "object",
                    "properties": {"next": {"$ref": "#/$defs/node"}, "x": {"type": "integer"}},
                    "required": ["x"]
                }}
            }),
            &json!({"value": {"x": 1, "next": {"x": 2}}}),
        ),
        schema_family(
            "depth",
            "twelve objects inside each other",
            nested(12),
            &json!({"value": {"value": {"value": {}}}}),
        ),
    ]
}

fn nested(levels: usize) -> Value {
    let leaf = json!({"type": "string"});
    (0..levels).fold(
        leaf,
        |inner, _| json!({"type": "object", "properties": {"value": inner}, "required": ["value"]}),
    )
}

pub(super) fn unions() -> Vec<KeywordFamily> {
    let either = json!([{"type": "string"}, {"type": "integer"}]);
    vec![
        property_family("anyOf", "a union", json!({"anyOf": either}), &json!(true)),
        property_family(
            "type-beside-anyOf",
            "a union beside a type",
            json!({"type": "string", "anyOf": [{"minLength": 2}, {"enum": ["x"]}]}),
            &json!("y"),
        ),
        schema_family(
            "anyOf-at-root",
            "a union of whole arguments",
            json!({
                "type": "object",
                "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                "anyOf": [{"required": ["a"]}, {"required": ["b"]}]
            }),
            &json!({}),
        ),
        property_family(
            "oneOf",
            "exactly one of several",
            json!({"oneOf": either}),
            &json!(true),
        ),
        property_family(
            "allOf",
            "all of several",
            json!({"allOf": [{"type": "string"}, {"maxLength": 3}]}),
            &json!("far too long"),
        ),
        property_family(
            "not",
            "a negation",
            json!({"type": "string", "not": {"const": "x"}}),
            &json!("x"),
        ),
        schema_family(
            "if",
            "a condition",
            json!({
                "type": "object",
                "properties": {"kind": {"type": "string"}, "size": {"type": "integer"}},
                "required": ["kind"],
                "if": {"properties": {"kind": {"const": "box"}}},
                "then": {"required": ["size"]}
            }),
            &json!({"kind": "box"}),
        ),
        property_family(
            "type-list",
            "several types",
            json!({"type": ["string", "null"]}),
            &json!(7),
        ),
        property_family(
            "type-list-of-containers",
            "several types, a container among them",
            json!({"type": ["object", "array", "string"]}),
            &json!(7),
        ),
        property_family(
            "nullable",
            "OpenAPI's keyword for null",
            json!({"type": "string", "nullable": true}),
            &json!(7),
        ),
        property_family(
            "untyped",
            "no type at all",
            json!({"description": "Anything."}),
            &json!(7),
        ),
        property_family(
            "boolean-schema",
            "true for a schema",
            json!(true),
            &json!(7),
        ),
    ]
}

pub(super) fn values() -> Vec<KeywordFamily> {
    let string = |id, what, keyword: &str, limit: Value, wanted: &str| {
        property_family(
            id,
            what,
            json!({"type": "string", keyword: limit}),
            &json!(wanted),
        )
    };
    let number = |id, what, keyword: &str, limit: i32, wanted: i32| {
        property_family(
            id,
            what,
            json!({"type": "integer", keyword: limit}),
            &json!(wanted),
        )
    };
    vec![
        property_family("const", "one value", json!({"const": "x"}), &json!("y")),
        string(
            "enum",
            "a choice of strings",
            "enum",
            json!(["a", "b"]),
            "c",
        ),
        property_family(
            "enum-of-numbers",
            "a choice of numbers",
            json!({"type": "integer", "enum": [1, 2]}),
            &json!(3),
        ),
        property_family(
            "enum-of-types",
            "a choice of several types",
            json!({"enum": ["a", 1, null]}),
            &json!(true),
        ),
        string(
            "format",
            "a format",
            "format",
            json!("date-time"),
            "yesterday",
        ),
        string(
            "format-of-openapi",
            "an undefined format",
            "format",
            json!("int128"),
            "x",
        ),
        string(
            "pattern",
            "a pattern",
            "pattern",
            json!("^[a-z]{3}$"),
            "123",
        ),
        string(
            "pattern-look-around",
            "a pattern that looks ahead",
            "pattern",
            json!("^(?=.*[0-9]).+$"),
            "abc1",
        ),
        string("minLength", "a shortest text", "minLength", json!(5), "x"),
        string(
            "maxLength",
            "a longest text",
            "maxLength",
            json!(3),
            "far too long",
        ),
        number("minimum", "a least number", "minimum", 10, 1),
        number("maximum", "a largest number", "maximum", 10, 11),
        number(
            "exclusiveMinimum",
            "an open bound",
            "exclusiveMinimum",
            10,
            10,
        ),
        number("multipleOf", "multiples", "multipleOf", 5, 7),
    ]
}

pub(super) fn objects() -> Vec<KeywordFamily> {
    let object = |id, what, members: Value, wanted: Value| {
        let mut schema = json!({"type": "object"});
        if let (Value::Object(schema), Value::Object(members)) = (&mut schema, members) {
            schema.extend(members);
        }
        property_family(id, what, schema, &wanted)
    };
    let x = json!({"x": {"type": "string"}});
    vec![
        object(
            "additionalProperties",
            "a closed object",
            json!({"properties": x, "additionalProperties": false}),
            json!({"x": "a", "y": "b"}),
        ),
        object(
            "map",
            "an object of any keys",
            json!({"additionalProperties": {"type": "integer"}}),
            json!({"a": "b"}),
        ),
        object(
            "patternProperties",
            "keys of a pattern",
            json!({"patternProperties": {"^n": {"type": "integer"}}}),
            json!({"n1": "b"}),
        ),
        object(
            "propertyNames",
            "how keys are named",
            json!({"propertyNames": {"maxLength": 3}}),
            json!({"far_too_long": 1}),
        ),
        object(
            "minProperties",
            "at least so many keys",
            json!({"minProperties": 1}),
            json!({}),
        ),
        object(
            "dependentRequired",
            "keys that need each other",
            json!({"properties": {"x": {}, "y": {}}, "dependentRequired": {"x": ["y"]}}),
            json!({"x": 1}),
        ),
        object(
            "unevaluatedProperties",
            "keys that no keyword covers",
            json!({"properties": x, "unevaluatedProperties": false}),
            json!({"y": "b"}),
        ),
        object(
            "empty-object",
            "an object without properties",
            json!({"properties": {}}),
            json!("x"),
        ),
        schema_family(
            "no-properties",
            "no arguments at all",
            json!({"type": "object"}),
            &json!({}),
        ),
        schema_family("no-schema", "an empty schema", json!({}), &json!({})),
    ]
}

pub(super) fn lists() -> Vec<KeywordFamily> {
    let array = |id, what, keyword: &str, limit: Value, wanted: Value| {
        let schema = json!({"type": "array", "items": {"type": "integer"}, keyword: limit});
        property_family(id, what, schema, &wanted)
    };
    vec![
        array(
            "minItems",
            "at least so many items",
            "minItems",
            json!(2),
            json!([1]),
        ),
        array(
            "maxItems",
            "at most so many items",
            "maxItems",
            json!(1),
            json!([1, 2]),
        ),
        array(
            "uniqueItems",
            "no item twice",
            "uniqueItems",
            json!(true),
            json!([1, 1]),
        ),
        array(
            "contains",
            "an item of a kind",
            "contains",
            json!({"const": 7}),
            json!([1]),
        ),
        property_family(
            "no-items",
            "a list of anything",
            json!({"type": "array"}),
            &json!("x"),
        ),
        property_family(
            "prefixItems",
            "a tuple",
            json!({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]}),
            &json!(["a", 1]),
        ),
        schema_family(
            "items-list",
            "a tuple as draft 7 has it",
            json!({
                "$schema": "http://json-schema.org/draft-07/schema#",
                "type": "object",
                "properties": {"value": {
                    "type": "array", "items": [{"type": "integer"}, {"type": "string"}]
                }},
                "required": ["value"]
            }),
            &json!({"value": ["a", 1]}),
        ),
    ]
}

pub(super) fn annotations() -> Vec<KeywordFamily> {
    let noted = |id, what, keyword: &str, note: Value| {
        property_family(
            id,
            what,
            json!({"type": "string", keyword: note}),
            &json!("x"),
        )
    };
    vec![
        schema_family(
            "$schema",
            "the draft by name",
            json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "properties": {"value": {"type": "string"}},
                "required": ["value"]
            }),
            &json!({"value": "x"}),
        ),
        noted("default", "a default", "default", json!("x")),
        noted("title", "a title", "title", json!("Value")),
        noted("examples", "examples", "examples", json!(["x", "y"])),
        noted("$comment", "a comment", "$comment", json!("for readers")),
        noted("deprecated", "a deprecation", "deprecated", json!(true)),
        noted(
            "unknown-keyword",
            "an undefined keyword",
            "x-note",
            json!("for readers"),
        ),
    ]
}

pub(super) fn names() -> Vec<KeywordFamily> {
    let parameter = |id, what, name: &str| {
        let schema =
            json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
        schema_family(id, what, schema, &json!({ name: "x" }))
    };
    let tool = |id, what, name| KeywordFamily {
        id,
        what,
        name,
        ..plain_family()
    };
    vec![
        parameter("parameter-dot", "a parameter with a dot", "a.b"),
        parameter("parameter-space", "a parameter with a space", "a b"),
        parameter("parameter-dollar", "a parameter with a dollar", "$a"),
        parameter("parameter-unicode", "a parameter beyond ASCII", "größe"),
        parameter("parameter-long", "a parameter of 65 characters", LONG),
        tool("tool-dot", "a tool with a dot", "probe.tool"),
        tool("tool-hyphen", "a tool with a hyphen", "probe-tool"),
        tool("tool-digit", "a tool that begins with a digit", "1probe"),
        tool("tool-unicode", "a tool beyond ASCII", "größe"),
        tool("tool-long", "a tool of 65 characters", LONG),
    ]
}

/// 65 characters, one more than most providers allow.
const LONG: &str = "a2345678901234567890123456789012345678901234567890123456789012345";
