//! Changes of the schema of what a text contains.

use serde_json::{Value, json};
use toolwarden_drift::{ChangeClass, Drift};

use crate::drift;

fn text(content: Value) -> Value {
    json!({"type": "string", "contentMediaType": "application/json", "contentSchema": content})
}

fn tool(x: Value, definitions: Value) -> Value {
    json!({"name": "t", "inputSchema": {"type": "object", "properties": {"x": x}, "$defs": definitions}})
}

fn compared(old: Value, new: Value) -> Drift {
    drift(&tool(text(old), json!({})), &tool(text(new), json!({})))
}

fn class(found: &Drift) -> ChangeClass {
    found.class().unwrap_or(ChangeClass::Equivalent)
}

#[test]
fn content_that_is_not_valid_any_more_may_break_a_caller() {
    let found = compared(
        json!({"type": "object", "properties": {"a": {"type": "string"}}}),
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}),
    );
    assert_eq!(class(&found), ChangeClass::Unknown, "{found:#?}");
    assert_eq!(
        found.changes[0].message,
        "required now in `x`: `a`: content that was valid is not valid any more, and the tool may reject it: {}"
    );
    let added = drift(
        &tool(json!({"type": "string"}), json!({})),
        &tool(
            json!({"type": "string", "contentSchema": {"type": "object"}}),
            json!({}),
        ),
    );
    assert_eq!(class(&added), ChangeClass::Unknown, "{added:#?}");
}

#[test]
fn content_of_which_more_is_valid_is_widened() {
    let found = compared(
        json!({"type": "object", "required": ["a"]}),
        json!({"type": "object"}),
    );
    assert_eq!(class(&found), ChangeClass::Widened, "{found:#?}");
    let found = compared(
        json!({"type": ["string", "null"]}),
        json!({"anyOf": [{"type": "null"}, {"type": "string"}]}),
    );
    assert_eq!(class(&found), ChangeClass::Equivalent, "{found:#?}");
}

#[test]
fn text_in_content_is_text() {
    let found = compared(
        json!({"type": "object", "description": "A short note"}),
        json!({"type": "object", "description": "A long note"}),
    );
    assert_eq!(class(&found), ChangeClass::Text, "{found:#?}");
}

#[test]
fn content_behind_a_reference_is_compared() {
    let definitions = json!({
        "A": text(json!({"type": "object"})),
        "B": text(json!({"type": "object", "required": ["secret"]}))});
    let to = |name: &str| {
        tool(
            json!({"$ref": format!("#/$defs/{name}")}),
            definitions.clone(),
        )
    };
    let found = drift(&to("A"), &to("B"));
    assert_eq!(class(&found), ChangeClass::Unknown, "{found:#?}");
    let found = drift(&to("B"), &to("A"));
    assert_eq!(class(&found), ChangeClass::Widened, "{found:#?}");
}

#[test]
fn content_in_content_is_compared() {
    let found = compared(
        text(json!({"type": "object"})),
        text(json!({"type": "object", "required": ["a"]})),
    );
    assert_eq!(class(&found), ChangeClass::Unknown, "{found:#?}");
    let recursive = |required: Value| {
        tool(
            json!({"$ref": "#/$defs/R"}),
            json!({"R": {"type": "string", "contentSchema": {"$ref": "#/$defs/R", "required": required}}}),
        )
    };
    let found = drift(&recursive(json!([])), &recursive(json!(["a"])));
    assert_eq!(class(&found), ChangeClass::Unknown, "{found:#?}");
}

#[test]
fn content_of_results_is_compared_the_other_way_round() {
    let tool = |content: Value| {
        json!({"name": "t", "inputSchema": {"type": "object"},
            "outputSchema": {"type": "object", "properties": {"x": text(content)}}})
    };
    let (loose, strict) = (
        json!({"type": "object"}),
        json!({"type": "object", "required": ["a"]}),
    );
    let found = drift(&tool(strict.clone()), &tool(loose.clone()));
    assert_eq!(class(&found), ChangeClass::Unknown, "{found:#?}");
    let found = drift(&tool(loose), &tool(strict));
    assert_eq!(class(&found), ChangeClass::Behavioural, "{found:#?}");
}

#[test]
fn definitions_that_content_refers_to_are_compared() {
    let side = |x: Value, other: &str| {
        tool(
            text(json!({"$ref": "#/$defs/x"})),
            json!({"x": {"$ref": "#/$defs/y"}, "y": x, "other": {"type": other}}),
        )
    };
    let loose = side(json!({"type": "object"}), "string");
    let strict = side(json!({"type": "object", "required": ["token"]}), "string");
    let found = drift(&loose, &strict);
    assert_eq!(class(&found), ChangeClass::Unknown, "{found:#?}");
    let found = drift(&strict, &loose);
    assert_eq!(class(&found), ChangeClass::Widened, "{found:#?}");
    let found = drift(&loose, &side(json!({"type": "object"}), "number"));
    assert_eq!(class(&found), ChangeClass::Equivalent, "{found:#?}");
    let mut rules = found.changes.iter().map(|it| it.rule);
    assert!(rules.all(|rule| rule != "contentSchema"), "{found:#?}");
}

#[test]
fn a_second_schema_of_the_same_content_is_compared() {
    let definitions = json!({
        "a": text(json!({"type": "object"})),
        "a2": text(json!({"type": "object"})),
        "b": text(json!({"type": "object", "required": ["token"]}))});
    let both = |one: &str, other: &str| {
        let to = |name: &str| json!({"$ref": format!("#/$defs/{name}")});
        tool(json!({"allOf": [to(one), to(other)]}), definitions.clone())
    };
    let found = drift(&both("a", "a2"), &both("a", "b"));
    assert_eq!(class(&found), ChangeClass::Unknown, "{found:#?}");
    let found = drift(&both("a", "b"), &both("a", "a2"));
    assert_eq!(class(&found), ChangeClass::Widened, "{found:#?}");
    let found = drift(&both("a", "b"), &both("b", "a"));
    assert_eq!(class(&found), ChangeClass::Equivalent, "{found:#?}");
}
