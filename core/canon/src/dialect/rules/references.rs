use std::borrow::Cow;

use serde_json::Value;
use toolwarden_model::json::{Object, Pointer};

use crate::dialect::facts::KeywordSupport;
use crate::dialect::lint::DialectLevel;
use crate::dialect::violation::{SchemaContext, SchemaEdit, Violation};
use crate::schema::{InlineError, Inliner, is_recursive, subschemas};

/// Reports references that the dialect does not accept at all or not in this form.
pub(super) fn reference(node: SchemaContext<'_>) -> Vec<Violation> {
    let Some(reference) = node.schema.get("$ref").and_then(Value::as_str) else {
        return Vec::new();
    };
    let Some((level, message)) = reference_problem(node, reference) else {
        return Vec::new();
    };
    let violation = Violation {
        level,
        ..Violation::rejected("reference", Pointer::of(["$ref"]), message)
    };
    if level == DialectLevel::Ignored {
        return vec![violation];
    }
    // `definitions` becomes `$defs` as a whole where it can, and references go along.
    if let Some(name) = reference
        .strip_prefix("#/definitions/")
        .filter(|_| moves_definitions(node))
    {
        return vec![violation.with_equivalent_remedy(vec![SchemaEdit::set(
            "$ref",
            format!("#/$defs/{name}").into(),
        )])];
    }
    match inline_references(node) {
        Ok(inlined) => vec![violation.with_equivalent_remedy(vec![SchemaEdit::replace(inlined)])],
        Err(InlineError::Recursive | InlineError::TooLarge) => vec![violation],
        // A dangling reference imposes no constraint that could be checked.
        Err(InlineError::Unresolved) => {
            vec![violation.with_semantic_remedy(vec![SchemaEdit::remove("$ref")])]
        }
    }
}

/// Whether the root's `definitions` can be called `$defs` instead.
pub(super) fn moves_definitions(node: SchemaContext<'_>) -> bool {
    node.facts.accepts("$defs")
        && !node.facts.accepts("definitions")
        && !node.root.contains_key("$defs")
}

/// The schema with its references replaced by their targets.
fn inline_references(node: SchemaContext<'_>) -> Result<Value, InlineError> {
    Inliner::new(node.root).inline(&Value::Object(node.schema.clone()), 0)
}

fn reference_problem(
    node: SchemaContext<'_>,
    reference: &str,
) -> Option<(DialectLevel, Cow<'static, str>)> {
    let refused =
        rejection_reason(node, reference).map(|message| (DialectLevel::Rejected, message.into()));
    let ignored = || {
        let rules = node.facts.references;
        let what = if rules.allowed == KeywordSupport::Ignored {
            "a reference"
        } else if rules.recursive == KeywordSupport::Ignored && is_recursive(node.root, reference) {
            "a recursive reference"
        } else {
            return None;
        };
        Some((
            DialectLevel::Ignored,
            DialectLevel::Ignored.describe(what).into(),
        ))
    };
    refused.or_else(ignored)
}

fn rejection_reason(node: SchemaContext<'_>, reference: &str) -> Option<&'static str> {
    let rules = node.facts.references;
    let at_root = ["#/$defs/", "#/definitions/"]
        .iter()
        .find_map(|prefix| reference.strip_prefix(prefix))
        .is_some_and(|name| !name.contains('/') && !name.contains("~1"));
    let unknown = |place: &str| {
        !node.facts.accepts(place)
            && reference
                .strip_prefix("#/")
                .and_then(|it| it.strip_prefix(place))
                .is_some_and(|it| it.starts_with('/'))
    };
    if rules.allowed == KeywordSupport::Refused {
        return Some("references are not accepted");
    }
    if unknown("definitions") {
        return Some("references into `definitions` are not accepted");
    }
    if unknown("$defs") {
        return Some("references into `$defs` are not accepted");
    }
    if rules.root_only && !at_root && reference != "#" {
        return Some("only references to `$defs` at the root are accepted");
    }
    if !rules.to_whole && reference == "#" {
        return Some("a reference to the whole schema is not accepted");
    }
    if !rules.with_siblings && node.schema.len() > 1 {
        return Some("nothing may stand beside a reference");
    }
    if !rules.inside_unions && node.in_union {
        return Some("a reference inside a union must be inlined");
    }
    if rules.recursive == KeywordSupport::Refused && is_recursive(node.root, reference) {
        return Some("recursive references are not accepted");
    }
    None
}

/// Whether any schema inside refers to another.
pub(in crate::dialect) fn mentions_reference(schema: &Value) -> bool {
    fn outside_definitions(schema: &Object) -> bool {
        let children = subschemas(schema, &Pointer::root());
        let inside = |at: &Pointer| {
            ["/$defs/", "/definitions/"]
                .iter()
                .any(|defs| at.as_str().starts_with(defs))
        };
        schema.contains_key("$ref")
            || children
                .into_iter()
                .filter(|(at, _)| !inside(at))
                .any(|(_, child)| child.as_object().is_some_and(outside_definitions))
    }
    schema.as_object().is_some_and(outside_definitions)
}
