//! Finds the properties that a schema marks, and checks that the marks are allowed.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use toolwarden_model::keywords::{SubschemaForm, subschema_form};

/// The keyword that marks a property.
pub(super) const ANNOTATION_KEY: &str = "x-mcp-header";

/// A property that a header repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HeaderParam {
    /// The keys that lead from the arguments to the property.
    pub(super) path: Vec<String>,
    /// The header's name after the common prefix.
    pub(super) name: String,
    pub(super) is_integer: bool,
}

/// The marks on chains of `properties`: elsewhere a value may occur any number of times.
pub(super) fn collect_params(schema: &Value) -> Vec<HeaderParam> {
    let mut marks = Vec::new();
    let mut keep = |path: Option<&[String]>, schema: &Map<String, Value>| {
        if let (Some(path @ [_, ..]), Some(Value::String(name))) =
            (path, schema.get(ANNOTATION_KEY))
        {
            marks.push(HeaderParam {
                path: path.to_vec(),
                name: name.clone(),
                is_integer: schema.get("type").is_some_and(|kind| kind == "integer"),
            });
        }
    };
    walk(schema, Some(&mut Vec::new()), &mut keep);
    marks
}

/// Whether every mark is on a chain of `properties`, on a string, integer or boolean, and names a
/// unique header.
pub(super) fn are_annotations_valid(schema: &Value) -> bool {
    let mut names = BTreeSet::new();
    let mut is_valid = true;
    let mut check = |path: Option<&[String]>, schema: &Map<String, Value>| {
        let Some(mark) = schema.get(ANNOTATION_KEY) else {
            return;
        };
        let is_reachable = matches!(path, Some([_, ..]));
        let kind = schema.get("type").and_then(Value::as_str);
        let is_plain = matches!(kind, Some("string" | "integer" | "boolean"));
        let names_one = mark
            .as_str()
            .is_some_and(|name| is_token(name) && names.insert(name.to_ascii_lowercase()));
        is_valid &= is_reachable && is_plain && names_one;
    };
    walk(schema, Some(&mut Vec::new()), &mut check);
    is_valid
}

/// Called with a schema and the keys that lead to it.
type Visit<'a> = dyn FnMut(Option<&[String]>, &Map<String, Value>) + 'a;

/// Visits every schema with the keys that lead to it; they are unknown outside chains of
/// `properties`. The JSON reader's nesting limit bounds the recursion.
fn walk(schema: &Value, mut path: Option<&mut Vec<String>>, visit: &mut Visit<'_>) {
    let Value::Object(members) = schema else {
        return;
    };
    visit(path.as_deref().map(Vec::as_slice), members);
    for (keyword, value) in members {
        if keyword == "properties"
            && let Value::Object(properties) = value
        {
            for (key, property) in properties {
                if let Some(path) = path.as_deref_mut() {
                    path.push(key.clone());
                }
                walk(property, path.as_deref_mut(), visit);
                if let Some(path) = path.as_deref_mut() {
                    path.pop();
                }
            }
            continue;
        }
        match (subschema_form(keyword), value) {
            (Some(SubschemaForm::Map), Value::Object(all)) => {
                all.values().for_each(|one| walk(one, None, visit));
            }
            (Some(SubschemaForm::List | SubschemaForm::OneOrList), Value::Array(all)) => {
                all.iter().for_each(|one| walk(one, None, visit));
            }
            (Some(SubschemaForm::One | SubschemaForm::OneOrList), one) => walk(one, None, visit),
            // Values that are data, and references, which are not resolved.
            _ => {}
        }
    }
}

/// Whether HTTP allows this text as a header name.
fn is_token(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(allowed)
}
