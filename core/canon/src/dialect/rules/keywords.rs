use serde_json::{Value, json};
use toolwarden_model::json::{Object, Pointer};

use super::objects::items_of_any_kind;
use crate::dialect::facts::{Enums, Facts, Taken};
use crate::dialect::lint::Level;
use crate::dialect::node::{Node, Step, Violation};

/// Keywords that inform and constrain nothing.
const INFORMING: &[&str] = &[
    "$schema",
    "$id",
    "$comment",
    "$anchor",
    "$vocabulary",
    "title",
    "description",
    "default",
    "examples",
    "example",
    "deprecated",
    "readOnly",
    "writeOnly",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
];

/// Keywords that have a rule of their own.
const ELSEWHERE: &[&str] = &["allOf", "oneOf", "$ref"];

/// Keywords of JSON Schema; any other informs at most.
const CONSTRAINING: &[&str] = &[
    "type",
    "enum",
    "const",
    "multipleOf",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "maxContains",
    "minContains",
    "maxProperties",
    "minProperties",
    "required",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "properties",
    "patternProperties",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "anyOf",
    "not",
    "if",
    "then",
    "else",
    "format",
];

/// Words of OpenAPI and of where definitions stand, which are no constraints.
const FURTHER: &[&str] = &["nullable", "$defs", "definitions"];

/// Every keyword that somebody defines.
pub(in crate::dialect) fn defined() -> impl Iterator<Item = &'static str> {
    [INFORMING, CONSTRAINING, ELSEWHERE, FURTHER]
        .into_iter()
        .flatten()
        .copied()
}

/// Keywords the dialect rejects or ignores.
pub(super) fn keyword(node: Node<'_>) -> Vec<Violation> {
    let facts = node.facts;
    let mut found: Vec<Violation> = node
        .schema
        .iter()
        .filter(|(keyword, _)| !facts.accepts(keyword) && !ELSEWHERE.contains(&keyword.as_str()))
        .map(|(keyword, value)| rejected(node, keyword, value))
        .collect();
    let ignored = node
        .schema
        .keys()
        .filter(|keyword| facts.ignored.contain(keyword));
    found.extend(ignored.map(|keyword| {
        let (at, what) = (Pointer::of([keyword.as_str()]), format!("`{keyword}`"));
        Violation::minded(Level::Ignored, "keyword", at, &what)
    }));
    if let (true, Some(Value::Array(examples))) = (facts.one_example, node.schema.get("examples"))
        && examples.len() != 1
    {
        let violation = Violation::rejected(
            "examples",
            Pointer::of(["examples"]),
            "exactly one example is accepted",
        );
        let first = examples.first().map(|first| json!([first]));
        found.push(violation.informing(vec![Step {
            at: Pointer::of(["examples"]),
            after: first,
        }]));
    }
    if let (Some(most), Some(least)) = (
        facts.max_min_items,
        node.schema.get("minItems").and_then(Value::as_u64),
    ) && least > most
    {
        let message = format!("`minItems` above {most} is not accepted");
        let violation = Violation::rejected("min-items", Pointer::of(["minItems"]), message);
        found.push(violation.other(told(
            node,
            "minItems",
            vec![Step::set("minItems", json!(most))],
        )));
    }
    found
}

fn rejected(node: Node<'_>, keyword: &str, value: &Value) -> Violation {
    let message = format!("`{keyword}` is not accepted");
    let violation = Violation::rejected("keyword", Pointer::of([keyword]), message);
    match keyword {
        "const" if enumerable(node, value) => violation.same(vec![
            Step::set("enum", json!([value])),
            Step::remove("const"),
        ]),
        "exclusiveMinimum" | "exclusiveMaximum" => bound(node, keyword, value, violation),
        "definitions" if node.facts.accepts("$defs") => renamed_definitions(node, value, violation),
        // A reference that cannot be inlined still needs them; else they go once nothing refers.
        "$defs" | "definitions" => violation.other(vec![Step::remove(keyword)]),
        "prefixItems" if node.facts.accepts("items") && node.facts.accepts("anyOf") => {
            let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
            let items = items_of_any_kind(items, node.schema.get("items"));
            violation.other(told(node, keyword, vec![items, Step::remove(keyword)]))
        }
        "nullable" => violation.informing(vec![Step::remove(keyword)]),
        _ if INFORMING.contains(&keyword) || !CONSTRAINING.contains(&keyword) => {
            violation.informing(vec![Step::remove(keyword)])
        }
        _ => violation.other(told(node, keyword, vec![Step::remove(keyword)])),
    }
}

/// Whether the dialect takes the value in an `enum`.
fn enumerable(node: Node<'_>, value: &Value) -> bool {
    let Enums { numbers, mixed } = node.facts.enums;
    let taken = match value {
        Value::String(_) => true,
        Value::Number(_) => numbers != Taken::Refused,
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
            mixed != Taken::Refused
        }
    };
    taken && node.facts.accepts("enum") && !node.schema.contains_key("enum")
}

/// An open bound of whole numbers is a closed one next to it.
fn bound(node: Node<'_>, keyword: &str, value: &Value, violation: Violation) -> Violation {
    let (closed, step) = if keyword == "exclusiveMinimum" {
        ("minimum", 1)
    } else {
        ("maximum", -1)
    };
    let integer = node.schema.get("type").and_then(Value::as_str) == Some("integer");
    match value.as_i64().and_then(|value| value.checked_add(step)) {
        Some(next)
            if integer && !node.schema.contains_key(closed) && node.facts.accepts(closed) =>
        {
            violation.same(vec![Step::set(closed, json!(next)), Step::remove(keyword)])
        }
        _ => violation.other(told(node, keyword, vec![Step::remove(keyword)])),
    }
}

/// References have been inlined by the time this is tried, so the old name can go with its content.
fn renamed_definitions(node: Node<'_>, value: &Value, violation: Violation) -> Violation {
    if node.schema.contains_key("$defs") {
        return violation.same(vec![Step::remove("definitions")]);
    }
    violation.same(vec![
        Step::set("$defs", value.clone()),
        Step::remove("definitions"),
    ])
}

/// Adds to the description what can no longer be said in the schema, where the dialect wants that.
fn told(node: Node<'_>, keyword: &str, mut steps: Vec<Step>) -> Vec<Step> {
    steps.extend(description_step(node.facts, node.schema, keyword));
    steps
}

pub(super) fn description_step(facts: &Facts, schema: &Object, keyword: &str) -> Option<Step> {
    if !facts.tells_lost_constraints {
        return None;
    }
    let constraint = format!("{keyword}: {}", schema.get(keyword)?);
    let description = match schema.get("description") {
        Some(Value::String(text)) if !text.is_empty() => format!("{text} ({constraint})"),
        _ => format!("({constraint})"),
    };
    Some(Step::set("description", Value::String(description)))
}
