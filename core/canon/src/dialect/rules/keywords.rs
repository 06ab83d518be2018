use serde_json::{Value, json};
use toolwarden_model::json::{Object, Pointer};

use super::objects::any_item_type;
use crate::dialect::facts::{DialectFacts, EnumFacts, KeywordSupport};
use crate::dialect::lint::DialectLevel;
use crate::dialect::violation::{SchemaContext, SchemaEdit, Violation};

/// Annotations: keywords that constrain nothing.
const ANNOTATIONS: &[&str] = &[
    "$schema",
    "$id",
    "$comment",
    "$anchor",
    "$dynamicAnchor",
    "$recursiveAnchor",
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
const HANDLED_ELSEWHERE: &[&str] = &["allOf", "oneOf", "$ref"];

/// Keywords of JSON Schema that may constrain a value; any other keyword is at most an annotation.
const CONSTRAINING: &[&str] = &[
    "$dynamicRef",
    "$recursiveRef",
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

/// Keywords of OpenAPI and containers of definitions, which are not constraints.
const OTHER_KEYWORDS: &[&str] = &["nullable", "$defs", "definitions"];

/// Every keyword that JSON Schema or OpenAPI defines.
pub(in crate::dialect) fn defined_keywords() -> impl Iterator<Item = &'static str> {
    [ANNOTATIONS, CONSTRAINING, HANDLED_ELSEWHERE, OTHER_KEYWORDS]
        .into_iter()
        .flatten()
        .copied()
}

/// Keywords the dialect rejects or ignores.
pub(super) fn keyword(node: SchemaContext<'_>) -> Vec<Violation> {
    let facts = node.facts;
    let mut found: Vec<Violation> = node
        .schema
        .iter()
        .filter(|(keyword, _)| {
            !facts.accepts(keyword) && !HANDLED_ELSEWHERE.contains(&keyword.as_str())
        })
        .map(|(keyword, value)| rejected(node, keyword, value))
        .collect();
    let ignored = node
        .schema
        .keys()
        .filter(|keyword| facts.ignored.contains(keyword));
    found.extend(ignored.map(|keyword| {
        let (at, what) = (Pointer::of([keyword.as_str()]), format!("`{keyword}`"));
        Violation::with_level(DialectLevel::Ignored, "keyword", at, &what)
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
        found.push(violation.with_metadata_remedy(vec![SchemaEdit {
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
        found.push(violation.with_semantic_remedy(add_to_description(
            node,
            "minItems",
            vec![SchemaEdit::set("minItems", json!(most))],
        )));
    }
    found
}

fn rejected(node: SchemaContext<'_>, keyword: &str, value: &Value) -> Violation {
    let message = format!("`{keyword}` is not accepted");
    let violation = Violation::rejected("keyword", Pointer::of([keyword]), message);
    match keyword {
        "const" if enumerable(node, value) => violation.with_equivalent_remedy(vec![
            SchemaEdit::set("enum", json!([value])),
            SchemaEdit::remove("const"),
        ]),
        "exclusiveMinimum" | "exclusiveMaximum" => closed_bound(node, keyword, value, violation),
        "definitions" if node.facts.accepts("$defs") => rename_definitions(node, value, violation),
        // A reference that cannot be inlined still needs them; else they go once nothing refers.
        "$defs" | "definitions" => {
            violation.with_semantic_remedy(vec![SchemaEdit::remove(keyword)])
        }
        "prefixItems" if node.facts.accepts("items") && node.facts.accepts("anyOf") => {
            let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
            let items = any_item_type(items, node.schema.get("items"));
            violation.with_semantic_remedy(add_to_description(
                node,
                keyword,
                vec![items, SchemaEdit::remove(keyword)],
            ))
        }
        "nullable" => violation.with_metadata_remedy(vec![SchemaEdit::remove(keyword)]),
        _ if ANNOTATIONS.contains(&keyword) || !CONSTRAINING.contains(&keyword) => {
            violation.with_metadata_remedy(vec![SchemaEdit::remove(keyword)])
        }
        _ => violation.with_semantic_remedy(add_to_description(
            node,
            keyword,
            vec![SchemaEdit::remove(keyword)],
        )),
    }
}

/// Whether the dialect takes the value in an `enum`.
fn enumerable(node: SchemaContext<'_>, value: &Value) -> bool {
    let EnumFacts { numbers, mixed } = node.facts.enums;
    let taken = match value {
        Value::String(_) => true,
        Value::Number(_) => numbers != KeywordSupport::Refused,
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
            mixed != KeywordSupport::Refused
        }
    };
    taken && node.facts.accepts("enum") && !node.schema.contains_key("enum")
}

/// For integers, an exclusive bound equals the inclusive bound next to it.
fn closed_bound(
    node: SchemaContext<'_>,
    keyword: &str,
    value: &Value,
    violation: Violation,
) -> Violation {
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
            violation.with_equivalent_remedy(vec![
                SchemaEdit::set(closed, json!(next)),
                SchemaEdit::remove(keyword),
            ])
        }
        _ => violation.with_semantic_remedy(add_to_description(
            node,
            keyword,
            vec![SchemaEdit::remove(keyword)],
        )),
    }
}

/// References have been inlined by the time this is tried, so the old name can go with its content.
fn rename_definitions(node: SchemaContext<'_>, value: &Value, violation: Violation) -> Violation {
    if node.schema.contains_key("$defs") {
        return violation.with_equivalent_remedy(vec![SchemaEdit::remove("definitions")]);
    }
    violation.with_equivalent_remedy(vec![
        SchemaEdit::set("$defs", value.clone()),
        SchemaEdit::remove("definitions"),
    ])
}

/// Adds the lost constraint to the description, if the dialect asks for that.
fn add_to_description(
    node: SchemaContext<'_>,
    keyword: &str,
    mut steps: Vec<SchemaEdit>,
) -> Vec<SchemaEdit> {
    steps.extend(description_step(node.facts, node.schema, keyword));
    steps
}

pub(super) fn description_step(
    facts: &DialectFacts,
    schema: &Object,
    keyword: &str,
) -> Option<SchemaEdit> {
    if !facts.describes_lost_constraints {
        return None;
    }
    let constraint = format!("{keyword}: {}", schema.get(keyword)?);
    let description = match schema.get("description") {
        Some(Value::String(text)) if !text.is_empty() => format!("{text} ({constraint})"),
        _ => format!("({constraint})"),
    };
    Some(SchemaEdit::set("description", Value::String(description)))
}
