use std::collections::BTreeSet;

use serde_json::Value;
use toolwarden_model::json::{Object, Pointer};

use super::merge::merge;
use crate::dialect::violation::{SchemaContext, SchemaEdit, Violation};

/// `oneOf`, `allOf` and `anyOf` where the dialect does not take them.
pub(super) fn union(node: SchemaContext<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    found.extend(all_of(node));
    found.extend(one_of(node));
    found.extend(at_root(node));
    found.extend(type_beside(node));
    found
}

fn branches<'s>(node: SchemaContext<'s>, keyword: &str) -> Option<&'s Vec<Value>> {
    node.schema.get(keyword)?.as_array()
}

fn all_of(node: SchemaContext<'_>) -> Option<Violation> {
    let branches = branches(node, "allOf").filter(|_| !node.facts.accepts("allOf"))?;
    let violation =
        Violation::rejected("keyword", Pointer::of(["allOf"]), "`allOf` is not accepted");
    let mut rest = node.schema.clone();
    rest.shift_remove("allOf");
    let merged = branches
        .iter()
        .try_fold(rest, |merged, branch| merge(merged, branch.as_object()?));
    Some(match merged {
        Some(merged) => {
            violation.with_equivalent_remedy(vec![SchemaEdit::replace(Value::Object(merged))])
        }
        None => violation.with_semantic_remedy(vec![SchemaEdit::remove("allOf")]),
    })
}

fn one_of(node: SchemaContext<'_>) -> Option<Violation> {
    let branches = branches(node, "oneOf").filter(|_| !node.facts.accepts("oneOf"))?;
    let violation =
        Violation::rejected("keyword", Pointer::of(["oneOf"]), "`oneOf` is not accepted");
    if node.schema.contains_key("anyOf") || !node.facts.accepts("anyOf") {
        return Some(violation.with_semantic_remedy(vec![SchemaEdit::remove("oneOf")]));
    }
    let steps = vec![
        SchemaEdit::set("anyOf", Value::Array(branches.clone())),
        SchemaEdit::remove("oneOf"),
    ];
    Some(if pairwise_disjoint(branches) {
        violation.with_equivalent_remedy(steps)
    } else {
        violation.with_semantic_remedy(steps)
    })
}

fn at_root(node: SchemaContext<'_>) -> Option<Violation> {
    branches(node, "anyOf").filter(|_| node.is_root && node.facts.accepts("anyOf"))?;
    let level = node.facts.union_at_root.finding_level()?;
    let at = Pointer::of(["anyOf"]);
    Some(
        Violation::with_level(level, "root-union", at, "a union at the root")
            .with_semantic_remedy(vec![SchemaEdit::remove("anyOf")]),
    )
}

/// `type` beside `anyOf`: the type can move into the branches, except at the root, which needs it.
fn type_beside(node: SchemaContext<'_>) -> Option<Violation> {
    let branches = branches(node, "anyOf").filter(|_| node.facts.accepts("anyOf"))?;
    let types = node.schema.get("type")?;
    let taken = if node.is_root {
        node.facts.type_beside_root_union
    } else {
        node.facts.type_beside_union
    };
    let (at, what) = (Pointer::of(["type"]), "`type` beside `anyOf`");
    let violation = Violation::with_level(taken.finding_level()?, "type-beside-union", at, what);
    if node.is_root {
        return Some(violation);
    }
    let typed: Option<Vec<Value>> = branches
        .iter()
        .map(|branch| with_type(branch, types))
        .collect();
    Some(match typed {
        Some(typed) => violation.with_equivalent_remedy(vec![
            SchemaEdit::set("anyOf", Value::Array(typed)),
            SchemaEdit::remove("type"),
        ]),
        None => violation,
    })
}

/// The branch with the type added, if that is all it needs.
fn with_type(branch: &Value, types: &Value) -> Option<Value> {
    let branch = branch
        .as_object()
        .filter(|branch| !branch.contains_key("$ref"))?;
    match branch.get("type") {
        Some(own) => type_words(own)
            .is_subset(&type_words(types))
            .then(|| Value::Object(branch.clone())),
        None => {
            let mut typed = Object::new();
            typed.insert("type".to_owned(), types.clone());
            typed.extend(branch.clone());
            Some(Value::Object(typed))
        }
    }
}

fn type_words(types: &Value) -> BTreeSet<&str> {
    match types {
        Value::String(word) => BTreeSet::from([word.as_str()]),
        Value::Array(words) => words.iter().filter_map(Value::as_str).collect(),
        _ => BTreeSet::new(),
    }
}

/// Whether types, values or a discriminator prove that no value is valid in two branches.
pub(super) fn pairwise_disjoint(branches: &[Value]) -> bool {
    branches
        .iter()
        .enumerate()
        .all(|(index, a)| branches.iter().skip(index + 1).all(|b| disjoint(a, b)))
}

fn disjoint(a: &Value, b: &Value) -> bool {
    let (Some(a), Some(b)) = (a.as_object(), b.as_object()) else {
        return false;
    };
    disjoint_types(a, b) || disjoint_values(a, b) || disjoint_discriminator(a, b)
}

fn disjoint_types(a: &Object, b: &Object) -> bool {
    let types = |schema: &Object| -> Option<BTreeSet<String>> {
        let words = type_words(schema.get("type")?);
        let widened = words
            .iter()
            .map(|word| if *word == "integer" { "number" } else { word });
        Some(widened.map(str::to_owned).collect())
            .filter(|words: &BTreeSet<String>| !words.is_empty())
    };
    matches!((types(a), types(b)), (Some(a), Some(b)) if a.is_disjoint(&b))
}

fn disjoint_values(a: &Object, b: &Object) -> bool {
    let values = |schema: &Object| -> Option<Vec<Value>> {
        match (schema.get("const"), schema.get("enum")) {
            (Some(value), _) => Some(vec![value.clone()]),
            (None, Some(Value::Array(values))) => Some(values.clone()),
            _ => None,
        }
    };
    // Numbers may be equal in different spellings, so only texts count as different.
    let texts = |values: &[Value]| values.iter().all(Value::is_string);
    matches!((values(a), values(b)), (Some(a), Some(b))
        if texts(&a) && texts(&b) && a.iter().all(|value| !b.contains(value)))
}

/// A property both branches require, with values that exclude each other.
fn disjoint_discriminator(a: &Object, b: &Object) -> bool {
    let requires = |schema: &Object, name: &str| {
        let required = schema.get("required").and_then(Value::as_array);
        required.is_some_and(|required| required.iter().any(|word| word.as_str() == Some(name)))
    };
    let is_object = |schema: &Object| schema.get("type").and_then(Value::as_str) == Some("object");
    let (Some(Value::Object(of_a)), Some(Value::Object(of_b))) =
        (a.get("properties"), b.get("properties"))
    else {
        return false;
    };
    is_object(a)
        && is_object(b)
        && of_a.iter().any(|(name, schema)| {
            let pair = (
                schema.as_object(),
                of_b.get(name).and_then(Value::as_object),
            );
            requires(a, name)
                && requires(b, name)
                && matches!(pair, (Some(a), Some(b)) if disjoint_values(a, b))
        })
}
