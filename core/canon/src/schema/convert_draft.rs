use serde_json::Value;
use toolwarden_model::Draft;
use toolwarden_model::json::{Object, Pointer};

use super::dynamic_references::convert_dynamic;
use super::walk::places;
use crate::edit::Edit;

/// Keywords, and the first draft that defines them.
const KEYWORD_DRAFTS: &[(&str, Draft)] = &[
    ("const", Draft::Draft6),
    ("contains", Draft::Draft6),
    ("propertyNames", Draft::Draft6),
    ("if", Draft::Draft7),
    ("then", Draft::Draft7),
    ("else", Draft::Draft7),
    ("minContains", Draft::Draft2019),
    ("maxContains", Draft::Draft2019),
    ("dependentRequired", Draft::Draft2019),
    ("dependentSchemas", Draft::Draft2019),
    ("unevaluatedProperties", Draft::Draft2019),
    ("unevaluatedItems", Draft::Draft2019),
    ("prefixItems", Draft::Draft2020),
];

/// Keywords that do not constrain a value: they stay beside a reference that replaces all others.
const BESIDE_REFERENCES: &[&str] = &[
    "$ref",
    "$defs",
    "definitions",
    "$schema",
    "$comment",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
];

/// Converts a schema from the draft it is read in to draft 2019-09 or 2020-12. `$schema` is left
/// unchanged. The edits, applied one after the other, turn the old schema into the new one.
pub(crate) fn convert(schema: &mut Object, place: &Pointer, to: Draft) -> Vec<Edit> {
    let mut root = Value::Object(std::mem::take(schema));
    let from = Draft::of(&root);
    let mut edits = Vec::new();
    if from != to {
        edits.extend(convert_dynamic(&mut root, place, from, to));
        // Inner schemas first: a keyword that holds schemas may get another name.
        for at in places(&root).into_iter().rev() {
            edits.extend(convert_one(&mut root, &at, place, from, to));
        }
    }
    if let Value::Object(converted) = root {
        *schema = converted;
    }
    edits
}

/// The schema without the keywords beside its reference, if the document's draft ignores them.
pub(crate) fn without_ignored_siblings(schema: &mut Object, root: &Object) {
    let draft = Draft::declared(root);
    if draft.is_some_and(|draft| draft <= Draft::Draft7) {
        keep_reference(schema);
    }
}

fn convert_one(
    root: &mut Value,
    at: &Pointer,
    place: &Pointer,
    from: Draft,
    to: Draft,
) -> Vec<Edit> {
    let Some(Value::Object(before)) = at.find(root).cloned() else {
        return Vec::new();
    };
    let mut after = before.clone();
    rewrite(&mut after, from, to);
    let set = after
        .iter()
        .filter(|(key, value)| before.get(*key) != Some(value))
        .map(|(key, value)| (key, Some(value)));
    let removed = before.keys().filter(|key| !after.contains_key(*key));
    let steps = set.chain(removed.map(|key| (key, None)));
    let reason = format!("draft {} uses this form", to.as_str());
    let mut edits = Vec::new();
    for (key, value) in steps {
        let edit = Edit::change(
            at.child(key),
            before.get(key).cloned(),
            value.cloned(),
            reason.clone(),
        );
        if edit.apply(root) {
            let path = place.join(&edit.path);
            edits.push(Edit { path, ..edit });
        }
    }
    edits
}

fn rewrite(schema: &mut Object, from: Draft, to: Draft) {
    if from <= Draft::Draft7 && schema.get("$ref").is_some_and(Value::is_string) {
        keep_reference(schema);
        return;
    }
    for (keyword, since) in KEYWORD_DRAFTS {
        if from < *since && *since <= to {
            schema.shift_remove(*keyword);
        }
    }
    if from == Draft::Draft4 {
        strict_bound(schema, "minimum", "exclusiveMinimum");
        strict_bound(schema, "maximum", "exclusiveMaximum");
        if let Some(Value::String(id)) = schema.get("id").cloned() {
            schema.shift_remove("id");
            schema.insert("$id".to_owned(), Value::String(id));
        }
    }
    if from <= Draft::Draft7 {
        let anchor = schema
            .get("$id")
            .and_then(|id| id.as_str()?.strip_prefix('#'))
            .filter(|anchor| !anchor.is_empty())
            .map(Value::from);
        if let Some(anchor) = anchor {
            schema.shift_remove("$id");
            schema.insert("$anchor".to_owned(), anchor);
        }
        split_dependencies(schema);
    }
    if to == Draft::Draft2020 && schema.get("items").is_some_and(Value::is_array) {
        let items = schema.shift_remove("items");
        let rest = schema.shift_remove("additionalItems");
        schema.extend(named("prefixItems", items.filter(|it| !is_empty_list(it))));
        schema.extend(named("items", rest));
    }
    if from == Draft::Draft2020 {
        schema.shift_remove("additionalItems");
        if let Some(items) = schema.shift_remove("prefixItems") {
            let rest = schema.shift_remove("items");
            schema.extend(named("items", Some(items)));
            schema.extend(named("additionalItems", rest));
        }
    }
}

fn keep_reference(schema: &mut Object) {
    schema.retain(|keyword, _| {
        BESIDE_REFERENCES.contains(&keyword.as_str()) || keyword.starts_with("x-")
    });
}

/// Draft 4 has a boolean beside a bound that makes it exclusive.
fn strict_bound(schema: &mut Object, bound: &str, exclusive: &str) {
    match schema.get(exclusive) {
        Some(Value::Bool(true)) => {
            let limit = schema.shift_remove(bound);
            schema.shift_remove(exclusive);
            schema.extend(named(exclusive, limit));
        }
        Some(Value::Bool(false)) => {
            schema.shift_remove(exclusive);
        }
        _ => {}
    }
}

fn split_dependencies(schema: &mut Object) {
    let Some(Value::Object(dependencies)) = schema.get("dependencies").cloned() else {
        return;
    };
    schema.shift_remove("dependencies");
    let (names, schemas): (Object, Object) = dependencies
        .into_iter()
        .partition(|(_, needed)| needed.is_array());
    for (keyword, map) in [("dependentRequired", names), ("dependentSchemas", schemas)] {
        if !map.is_empty() {
            schema.insert(keyword.to_owned(), Value::Object(map));
        }
    }
}

fn named(keyword: &str, value: Option<Value>) -> Option<(String, Value)> {
    value.map(|value| (keyword.to_owned(), value))
}

fn is_empty_list(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(schema: &Value, to: Draft, expected: &Value) {
        let mut converted = schema.as_object().unwrap().clone();
        let edits = convert(&mut converted, &Pointer::of(["inputs"]), to);
        assert_eq!(Value::Object(converted), *expected);
        let mut applied = json!({"inputs": schema});
        for edit in &edits {
            assert!(edit.apply(&mut applied), "{edit:?} does not fit {applied}");
        }
        assert_eq!(applied["inputs"], *expected);
    }

    #[test]
    fn tuples_change_their_keyword() {
        let old = json!({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"items": [true]}], "additionalItems": false});
        let new = json!({"$schema": "http://json-schema.org/draft-07/schema#", "prefixItems": [{"prefixItems": [true]}], "items": false});
        check(&old, Draft::Draft2020, &new);
        check(&old, Draft::Draft2019, &old);
        check(
            &json!({"prefixItems": [true], "items": {"type": "string"}, "additionalItems": false}),
            Draft::Draft2019,
            &json!({"items": [true], "additionalItems": {"type": "string"}}),
        );
    }

    #[test]
    fn what_the_old_draft_does_not_read_stays_unread() {
        check(
            &json!({"$schema": "http://json-schema.org/draft-07/schema#",
                "properties": {"a": {"$ref": "#/definitions/a", "type": "string", "description": "d"}},
                "dependentRequired": {"a": ["b"]}, "dependencies": {"a": ["c"], "b": {"minProperties": 2}}}),
            Draft::Draft2020,
            &json!({"$schema": "http://json-schema.org/draft-07/schema#",
                "properties": {"a": {"$ref": "#/definitions/a", "description": "d"}},
                "dependentRequired": {"a": ["c"]}, "dependentSchemas": {"b": {"minProperties": 2}}}),
        );
    }

    #[test]
    fn bounds_of_draft_4_become_numbers() {
        check(
            &json!({"minimum": 1, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false, "const": 5}),
            Draft::Draft2019,
            &json!({"exclusiveMinimum": 1, "maximum": 9}),
        );
    }
}
