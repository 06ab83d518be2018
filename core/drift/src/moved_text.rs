//! Text of a schema that only moved: behind a reference, or among choices in another order.

use std::collections::BTreeSet;

use serde_json::Value;
use toolwarden_model::json::{Pointer, to_canonical_string};

use crate::change::Change;
use crate::facet::{Facet, ObservedDefinition};
use crate::place_text::described_values;

/// The maximum number of references that are followed.
const MAX_REFERENCES: usize = 16;

/// Whether a reader of the schema finds the same text at the place of a change as before.
pub(crate) fn is_same_text(
    change: &Change,
    (old, new): (&ObservedDefinition<'_>, &ObservedDefinition<'_>),
) -> bool {
    let facet = change.evidence.facet;
    if !matches!(facet, Facet::Input | Facet::Output) {
        return false;
    }
    let places = (old.layout.place(facet), new.layout.place(facet));
    let (Some(old_place), Some(new_place)) = places else {
        return false;
    };
    let (Some(old), Some(new)) = (old.facet(facet), new.facet(facet)) else {
        return false;
    };
    let inside = change.pointer.as_str().strip_prefix(new_place.as_str());
    let inside = inside.or_else(|| change.pointer.as_str().strip_prefix(old_place.as_str()));
    let Some(at) = inside.map(Pointer::from) else {
        return false;
    };
    is_behind_reference(&at, old, new)
        || is_reordered_choice(&at, old, new)
        || is_reordered_with_values(&at, old, new)
}

/// Whether a list describes the values of the enumeration beside it, and says the same of each.
fn is_reordered_with_values(at: &Pointer, old: &Value, new: &Value) -> bool {
    let mut node = at.clone();
    let Some(keyword) = at.segments().last() else {
        return false;
    };
    node.pop();
    let described = |schema: &Value| -> Option<BTreeSet<(String, String)>> {
        let (values, texts) = described_values(node.find(schema)?.as_object()?, &keyword)?;
        let pairs = values.iter().zip(texts);
        let pairs = pairs.map(|(value, text)| (value.to_string(), text.to_string()));
        Some(pairs.collect())
    };
    let before = described(old);
    before.is_some() && before == described(new)
}

/// Whether a description or title reads the same once references are followed.
fn is_behind_reference(at: &Pointer, old: &Value, new: &Value) -> bool {
    let mut node = at.clone();
    let Some(keyword) = at.segments().last() else {
        return false;
    };
    if !matches!(keyword.as_str(), "description" | "title") {
        return false;
    }
    node.pop();
    let before = effective(old, &node, &keyword);
    before.is_some() && before == effective(new, &node, &keyword)
}

/// The text of a keyword at a place: its own, or else that of the schema it refers to.
fn effective<'s>(schema: &'s Value, at: &Pointer, keyword: &str) -> Option<&'s Value> {
    let mut node = at.find(schema)?;
    for _ in 0..MAX_REFERENCES {
        if let Some(text) = node.get(keyword) {
            return Some(text);
        }
        // Generators wrap a reference that has siblings into `allOf`.
        let only = match node
            .get("allOf")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
        {
            Some([only]) => Some(only),
            _ => None,
        };
        let reference = node.get("$ref").or_else(|| only?.get("$ref"));
        node = match reference.and_then(Value::as_str) {
            Some(reference) => Pointer::from(reference.strip_prefix('#')?).find(schema)?,
            None => only?,
        };
    }
    None
}

/// Whether the place is in a list of choices that has the same entries in another order.
fn is_reordered_choice(at: &Pointer, old: &Value, new: &Value) -> bool {
    let mut list = Pointer::root();
    for segment in at.segments() {
        list.push(&segment);
        if !matches!(segment.as_str(), "oneOf" | "anyOf" | "allOf") {
            continue;
        }
        let entries = |schema: &Value| {
            let entries = list.find(schema)?.as_array()?;
            let mut entries: Vec<String> = entries.iter().map(to_canonical_string).collect();
            entries.sort();
            Some(entries)
        };
        if let Some(before) = entries(old)
            && entries(new) == Some(before)
        {
            return true;
        }
    }
    false
}
