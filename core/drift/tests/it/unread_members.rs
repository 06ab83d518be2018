//! Members that no facet reads and that a model or another reader does.

use serde_json::{Value, json};
use toolwarden_drift::{ChangeClass, Drift};

use crate::drift;

fn tool(extra: Value) -> Value {
    let mut tool = json!({"name": "t", "description": "d", "inputSchema": {"type": "object"}});
    let members = tool.as_object_mut().unwrap();
    members.extend(extra.as_object().unwrap().clone());
    tool
}

fn class(found: &Drift) -> ChangeClass {
    found.class().unwrap_or(ChangeClass::Equivalent)
}

#[test]
fn a_second_schema_is_unknown() {
    for member in ["parameters", "input_schema", "output_schema", "returns"] {
        let with = |schema: Value| tool(json!({member: schema}));
        let old = with(json!({"type": "object"}));
        let found = drift(&old, &with(json!({"type": "object", "required": ["z"]})));
        assert_eq!(class(&found), ChangeClass::Unknown, "{found:#?}");
        assert_eq!(
            found.changes[0].message,
            format!(
                "`{member}` was changed: a schema that `watch` does not compare, and that another reader may use"
            )
        );
        let found = drift(&tool(json!({})), &old);
        assert_eq!(class(&found), ChangeClass::Unknown, "{found:#?}");
        let found = drift(
            &old,
            &with(json!({"type": "object", "description": "A note"})),
        );
        assert_eq!(class(&found), ChangeClass::Text, "{found:#?}");
    }
}

#[test]
fn examples_are_text_whatever_they_hold() {
    for (old, new) in [
        (json!([{"n": 1}]), json!([{"n": 2}])),
        (json!([{"s": "x"}]), json!([{"s": "y"}])),
        (
            json!([{"s": "x", "n": 1}]),
            json!([{"s": "x", "n": 2}, {"n": 3}]),
        ),
        (json!([]), json!([{"dry_run": false}])),
    ] {
        let with = |examples: &Value| tool(json!({"input_examples": examples}));
        let found = drift(&with(&old), &with(&new));
        assert_eq!(class(&found), ChangeClass::Text, "{old} {new} {found:#?}");
        let with = |examples: &Value| {
            tool(
                json!({"inputSchema": {"type": "object", "properties": {"a": {"examples": examples}}}}),
            )
        };
        let found = drift(&with(&old), &with(&new));
        assert_eq!(class(&found), ChangeClass::Text, "{old} {new} {found:#?}");
    }
}

#[test]
fn numbers_beside_the_same_text_are_no_spacing() {
    let with = |list: Value| tool(json!({"inputSchema": {"type": "object", "x-note": list}}));
    let found = drift(&with(json!(["a", 1])), &with(json!(["a", 2])));
    assert_eq!(class(&found), ChangeClass::Behavioural, "{found:#?}");
    let found = drift(&with(json!(["a b", 1])), &with(json!(["a  b", 1])));
    assert_eq!(class(&found), ChangeClass::Info, "{found:#?}");
}

#[test]
fn repeated_values_are_not_another_order() {
    let with = |values: Value, required: Value| {
        tool(json!({"inputSchema": {"type": "object",
            "properties": {"a": {"enum": values}}, "required": required}}))
    };
    let found = drift(
        &with(json!(["x", "y"]), json!(["a"])),
        &with(json!(["x", "y", "x"]), json!(["a", "a"])),
    );
    let messages: Vec<&str> = found.changes.iter().map(|it| it.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "the same values of `a`, more or less often",
            "the same names are required"
        ]
    );
}
