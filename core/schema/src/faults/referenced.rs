//! Schemas that references lead to and no keyword holds.

use std::collections::BTreeMap;

use serde_json::Value;
use toolwarden_model::json::Pointer;
use toolwarden_model::keywords::{SubschemaForm, subschema_form, subschemas};

use super::is_reference;
use crate::prepare::{Draft, Resources, SchemaLocation};

/// The most schemas that are searched for references.
const MAX_SCHEMAS: usize = 20_000;

/// The places of schemas that only references lead to, such as `#/components/schemas/X`.
#[must_use]
pub fn schemas_outside_keywords(root: &Value) -> Vec<Pointer> {
    let resources = Resources::of(root, Draft::of(root));
    let found = outside_keywords(root, &resources).into_iter();
    found.map(|(at, _)| at).collect()
}

/// The schemas that only references lead to, none of them inside another.
pub(super) fn outside_keywords<'s>(
    root: &'s Value,
    resources: &Resources<'s>,
) -> Vec<(Pointer, &'s Value)> {
    let mut found: BTreeMap<Pointer, &'s Value> = BTreeMap::new();
    let mut open = vec![(Pointer::root(), root)];
    let mut visits = 0;
    while let Some((at, schema)) = open.pop() {
        let Some(members) = schema.as_object() else {
            continue;
        };
        visits += 1;
        if visits > MAX_SCHEMAS {
            break;
        }
        let references = members.iter().filter(|(keyword, _)| is_reference(keyword));
        for reference in references.filter_map(|(_, value)| value.as_str()) {
            let target = resources.resolve(&SchemaLocation::here(at.clone()), reference);
            let Some((place, target @ Value::Object(_))) = target else {
                continue;
            };
            let is_known =
                |(base, schema): (&Pointer, &&Value)| holds(base, schema, &place.pointer);
            if place.document == 0
                && !is_known((&Pointer::root(), &root))
                && !found.iter().any(is_known)
            {
                // What was found first may be inside.
                found.retain(|inner, _| !holds(&place.pointer, target, inner));
                open.push((place.pointer.clone(), target));
                found.insert(place.pointer, target);
            }
        }
        open.extend(subschemas(members, &at));
    }
    found.into_iter().collect()
}

/// Whether a place is that of a schema or of one that its keywords hold.
fn holds(base: &Pointer, schema: &Value, place: &Pointer) -> bool {
    let rest = place.as_str().strip_prefix(base.as_str());
    let rest = rest.filter(|rest| rest.is_empty() || rest.starts_with('/'));
    rest.is_some_and(|rest| is_position(schema, &Pointer::from(rest)))
}

/// Whether keywords lead from a schema to a place inside it.
fn is_position(schema: &Value, at: &Pointer) -> bool {
    let mut segments = at.segments();
    let mut schema = schema;
    while let Some(keyword) = segments.next() {
        let Some(value) = schema.get(&keyword) else {
            return false;
        };
        let inside = match (subschema_form(&keyword), value) {
            (Some(SubschemaForm::Map), Value::Object(map)) => {
                segments.next().and_then(|name| map.get(&name))
            }
            (Some(SubschemaForm::List | SubschemaForm::OneOrList), Value::Array(items)) => {
                let index = segments
                    .next()
                    .and_then(|index| index.parse::<usize>().ok());
                index.and_then(|index| items.get(index))
            }
            (Some(SubschemaForm::One | SubschemaForm::OneOrList), value) => Some(value),
            _ => None,
        };
        match inside {
            Some(inside) => schema = inside,
            None => return false,
        }
    }
    true
}
