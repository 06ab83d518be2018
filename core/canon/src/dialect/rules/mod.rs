//! One rule per file. A rule looks at one schema and says what is wrong with it and how to mend it.

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

use super::facts::Facts;
use super::lint::Level;
use super::node::{Node, Step, Violation};

pub(super) use keywords::defined;
pub(super) use references::mentions_reference;
pub(super) use size::size_findings;
pub(super) use tool::tool_findings;

type Rule = fn(Node<'_>) -> Vec<Violation>;

/// The rules in the order their remedies are tried: what brings new keywords into a schema comes
/// before what looks at keywords.
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
    objects::nothing_said,
];

/// Everything wrong with one schema, not counting the schemas inside it.
pub(super) fn violations(node: Node<'_>) -> Vec<Violation> {
    RULES.iter().flat_map(|rule| rule(node)).collect()
}

/// What is wrong with a schema that is `true` or `false`.
pub(super) fn boolean_schema(facts: &Facts, schema: &Value) -> Option<Violation> {
    let level = facts.boolean_schemas.objection()?;
    let violation = |word: &str| {
        let message = match level {
            Level::Rejected => format!("`{word}` is no schema here"),
            Level::Ignored => level.said_of(&format!("`{word}` for a schema")),
        };
        Violation {
            level,
            ..Violation::rejected("boolean-schema", Pointer::root(), message)
        }
    };
    match schema {
        Value::Bool(true) => Some(violation("true").same(vec![Step::replace(json!({}))])),
        Value::Bool(false) => Some(violation("false").other(vec![Step::replace(json!({}))])),
        _ => None,
    }
}
