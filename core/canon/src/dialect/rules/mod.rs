//! One rule per file. A rule checks one schema and reports what is wrong with it and how to fix it.

mod enums;
mod formats;
mod keywords;
mod merge;
mod names;
mod objects;
mod references;
mod required;
mod root;
mod size;
mod tool;
mod types;
mod unions;

use serde_json::{Value, json};
use toolwarden_model::json::Pointer;

use super::facts::DialectFacts;
use super::lint::DialectLevel;
use super::violation::{SchemaContext, SchemaEdit, Violation};

pub(super) use keywords::defined_keywords;
pub(super) use references::mentions_reference;
pub(super) use size::size_findings;
pub(super) use tool::tool_findings;

type Rule = fn(SchemaContext<'_>) -> Vec<Violation>;

/// The rules in the order their remedies are tried: rules that add keywords to a schema come before
/// rules that check keywords.
const RULES: &[Rule] = &[
    root::object_at_the_root,
    references::reference,
    unions::union,
    types::type_list,
    keywords::keyword,
    enums::enumeration,
    formats::format,
    formats::pattern,
    objects::closed,
    objects::map,
    objects::tuple,
    required::all_required,
    objects::underspecified,
];

/// Everything wrong with one schema, not counting the schemas inside it.
pub(super) fn violations(node: SchemaContext<'_>) -> Vec<Violation> {
    RULES.iter().flat_map(|rule| rule(node)).collect()
}

/// What is wrong with a schema that is `true` or `false`.
pub(super) fn boolean_schema(facts: &DialectFacts, schema: &Value) -> Option<Violation> {
    let level = facts.boolean_schemas.finding_level()?;
    let violation = |word: &str| {
        let message = match level {
            DialectLevel::Rejected => format!("`{word}` is not accepted as a schema"),
            DialectLevel::Ignored => level.describe(&format!("`{word}` for a schema")),
        };
        Violation {
            level,
            ..Violation::rejected("boolean-schema", Pointer::root(), message)
        }
    };
    match schema {
        Value::Bool(true) => {
            Some(violation("true").with_equivalent_remedy(vec![SchemaEdit::replace(json!({}))]))
        }
        Value::Bool(false) => {
            Some(violation("false").with_semantic_remedy(vec![SchemaEdit::replace(json!({}))]))
        }
        _ => None,
    }
}
