use std::collections::BTreeSet;

use serde_json::Value;
use thiserror::Error;
use toolwarden_model::json::{Object, Pointer, percent_decode};
use toolwarden_model::keywords::{SubschemaForm, subschema_form, subschemas};

use super::convert_draft::without_ignored_siblings;

/// The most nodes one inlining may produce.
const MAX_NODES: usize = 100_000;
/// The deepest nesting one inlining may produce.
const MAX_DEPTH: usize = 100;

/// Why references cannot be inlined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum InlineError {
    /// A reference is recursive.
    #[error("the reference is recursive")]
    Recursive,
    /// The reference has no target, or points outside the document.
    #[error("the reference leads to nothing in this schema")]
    Unresolved,
    /// The result would be too large.
    #[error("the inlined schema would exceed {MAX_NODES} nodes or {MAX_DEPTH} levels")]
    TooLarge,
}

/// The target of a local reference.
pub(crate) fn resolve<'s>(root: &'s Object, reference: &str) -> Option<&'s Value> {
    let pointer = percent_decode(reference.strip_prefix('#')?)?;
    let mut segments = Pointer::from(pointer.as_str())
        .segments()
        .collect::<Vec<_>>()
        .into_iter();
    let first = segments.next()?;
    // A rewrite may have moved the definitions already.
    let moved = || root.get("definitions").filter(|_| first == "$defs");
    let mut current = root.get(&first).or_else(moved)?;
    for segment in segments {
        current = match current {
            Value::Object(map) => map.get(&segment)?,
            Value::Array(items) => items.get(segment.parse::<usize>().ok()?)?,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
        };
    }
    Some(current)
}

/// Whether following references from here can come back to one already followed.
pub(crate) fn is_recursive(root: &Object, reference: &str) -> bool {
    fn visit<'s>(
        root: &'s Object,
        schema: &'s Value,
        open: &mut Vec<&'s str>,
        done: &mut BTreeSet<&'s str>,
    ) -> bool {
        let Value::Object(members) = schema else {
            return false;
        };
        if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
            if reference == "#" || open.contains(&reference) {
                return true;
            }
            if !done.contains(reference)
                && let Some(target) = resolve(root, reference)
            {
                open.push(reference);
                let found = visit(root, target, open, done);
                open.pop();
                done.insert(reference);
                if found {
                    return true;
                }
            }
        }
        // Definitions count only where something refers to them.
        let at = Pointer::root();
        let children = subschemas(members, &at);
        children
            .into_iter()
            .filter(|(pointer, _)| {
                !["/$defs/", "/definitions/"]
                    .iter()
                    .any(|defs| pointer.as_str().starts_with(defs))
            })
            .any(|(_, child)| visit(root, child, open, done))
    }
    if reference == "#" {
        return true;
    }
    let Some(target) = resolve(root, reference) else {
        return false;
    };
    visit(root, target, &mut vec![reference], &mut BTreeSet::new())
}

/// Replaces references by their targets, within bounds.
#[derive(Debug)]
pub(crate) struct Inliner<'s> {
    root: &'s Object,
    open: Vec<String>,
    nodes: usize,
}

impl<'s> Inliner<'s> {
    pub(crate) const fn new(root: &'s Object) -> Self {
        Self {
            root,
            open: Vec::new(),
            nodes: 0,
        }
    }

    /// A copy of a schema without references.
    pub(crate) fn inline(&mut self, schema: &Value, depth: usize) -> Result<Value, InlineError> {
        self.nodes += 1;
        if self.nodes > MAX_NODES || depth > MAX_DEPTH {
            return Err(InlineError::TooLarge);
        }
        let Value::Object(members) = schema else {
            return Ok(schema.clone());
        };
        let mut inlined = Object::new();
        for (keyword, value) in members {
            if keyword == "$ref" {
                continue;
            }
            let value = match (subschema_form(keyword), value) {
                (Some(SubschemaForm::Map), Value::Object(map)) => Value::Object(
                    map.iter()
                        .map(|(name, value)| Ok((name.clone(), self.inline(value, depth + 1)?)))
                        .collect::<Result<_, InlineError>>()?,
                ),
                (Some(SubschemaForm::List | SubschemaForm::OneOrList), Value::Array(items)) => {
                    Value::Array(
                        items
                            .iter()
                            .map(|item| self.inline(item, depth + 1))
                            .collect::<Result<_, _>>()?,
                    )
                }
                (Some(SubschemaForm::One | SubschemaForm::OneOrList), Value::Object(_)) => {
                    self.inline(value, depth + 1)?
                }
                _ => value.clone(),
            };
            inlined.insert(keyword.clone(), value);
        }
        match members.get("$ref").and_then(Value::as_str) {
            Some(reference) => self.follow(reference, inlined, depth),
            None => Ok(Value::Object(inlined)),
        }
    }

    /// The referred schema with the keywords beside the reference added.
    fn follow(
        &mut self,
        reference: &str,
        beside: Object,
        depth: usize,
    ) -> Result<Value, InlineError> {
        if reference == "#" || self.open.iter().any(|open| open == reference) {
            return Err(InlineError::Recursive);
        }
        let target = resolve(self.root, reference).ok_or(InlineError::Unresolved)?;
        self.open.push(reference.to_owned());
        let inlined = self.inline(target, depth + 1);
        self.open.pop();
        let inlined = inlined?;
        let beside = read_beside(beside, self.root);
        if beside.is_empty() {
            return Ok(inlined);
        }
        match inlined {
            Value::Object(mut target)
                if beside
                    .keys()
                    .all(|key| is_annotation(key) || !target.contains_key(key)) =>
            {
                target.extend(beside);
                Ok(Value::Object(target))
            }
            target => {
                let mut both = beside;
                both.insert("allOf".to_owned(), Value::Array(vec![target]));
                Ok(Value::Object(both))
            }
        }
    }
}

/// The keywords beside a reference that take effect: up to draft 7, no constraint does.
fn read_beside(mut beside: Object, root: &Object) -> Object {
    without_ignored_siblings(&mut beside, root);
    beside
}

/// Whether a keyword is an annotation, so that the outer one may replace the inner one.
fn is_annotation(keyword: &str) -> bool {
    [
        "title",
        "description",
        "default",
        "examples",
        "deprecated",
        "readOnly",
        "writeOnly",
        "$comment",
    ]
    .contains(&keyword)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn inline(schema: &Value) -> Result<Value, InlineError> {
        let root = schema.as_object().unwrap();
        Inliner::new(root).inline(&root["properties"], 0)
    }

    #[test]
    fn references_are_replaced_and_what_stands_beside_them_stays() {
        let schema = json!({
            "properties": {"items": {"$ref": "#/$defs/a%20b~1c", "description": "outer"}},
            "$defs": {"a b/c": {"type": "string", "description": "inner"}}
        });
        assert_eq!(
            inline(&schema),
            Ok(json!({"items": {"type": "string", "description": "outer"}}))
        );
    }

    #[test]
    fn a_constraint_beside_a_reference_is_not_dropped() {
        let schema = json!({"properties": {"items": {"$ref": "#/$defs/a", "type": "string"}}, "$defs": {"a": {"type": ["string", "null"]}}});
        assert_eq!(
            inline(&schema),
            Ok(json!({"items": {"type": "string", "allOf": [{"type": ["string", "null"]}]}}))
        );
    }

    #[test]
    fn what_draft_7_ignores_beside_a_reference_stays_ignored() {
        let schema = json!({"$schema": "http://json-schema.org/draft-07/schema#",
            "properties": {"items": {"$ref": "#/$defs/a", "minLength": 3, "description": "outer"}},
            "$defs": {"a": {"type": "string"}}});
        assert_eq!(
            inline(&schema),
            Ok(json!({"items": {"type": "string", "description": "outer"}}))
        );
    }

    #[test]
    fn cycles_bombs_and_dead_ends_are_told_apart() {
        let cycle = json!({"properties": {"items": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}});
        assert_eq!(inline(&cycle), Err(InlineError::Recursive));
        assert!(is_recursive(cycle.as_object().unwrap(), "#/$defs/a"));
        let dead = json!({"properties": {"items": {"$ref": "https://example.com/x"}}});
        assert_eq!(inline(&dead), Err(InlineError::Unresolved));
        let mut definitions = Object::new();
        for level in 0..40 {
            let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
            definitions.insert(format!("d{level}"), json!({"anyOf": [next, next]}));
        }
        definitions.insert("d40".to_owned(), json!({}));
        let bomb = json!({"properties": {"items": {"$ref": "#/$defs/d0"}}, "$defs": definitions});
        assert_eq!(inline(&bomb), Err(InlineError::TooLarge));
        assert!(!is_recursive(bomb.as_object().unwrap(), "#/$defs/d0"));
    }
}
