use std::collections::BTreeSet;

use serde_json::Value;
use toolwarden_model::did_you_mean;
use toolwarden_model::json::{Object, Pointer};
use toolwarden_model::keywords::subschemas;

use super::{SchemaFault, SchemaFaultRule, fault};
use crate::prepare::{Resources, SchemaLocation};

/// Keywords whose schemas apply to the same value and may declare more properties.
const IN_PLACE: &[&str] = &[
    "allOf",
    "anyOf",
    "oneOf",
    "if",
    "then",
    "else",
    "not",
    "dependentSchemas",
];

/// The most schemas examined to find what one value may hold.
const MAX_VISITS: usize = 2_000;

/// Finds names in `required` that no schema for the same value declares. A model does not
/// learn about such an argument, and providers refuse the schema.
pub(super) fn check(
    roots: &[(Pointer, &Value)],
    resources: &Resources<'_>,
    faults: &mut Vec<SchemaFault>,
) {
    let merged = merged_schemas(roots, resources);
    let mut open = roots.to_vec();
    while let Some((at, schema)) = open.pop() {
        let Value::Object(members) = schema else {
            continue;
        };
        let whole = !stands_in_place(&at) && !merged.contains(&at);
        if whole {
            let mut declared = DeclaredNames::default();
            declared.add(&at, members, resources);
            if !declared.any {
                report(&at, members, &declared.names, faults);
            }
        }
        open.extend(subschemas(members, &at));
    }
}

/// What the schemas for one value declare.
#[derive(Default)]
struct DeclaredNames<'s> {
    names: BTreeSet<&'s str>,
    /// Whether any name may be declared: by a pattern, a map, or a reference that cannot be followed.
    any: bool,
    seen: BTreeSet<Pointer>,
}

impl<'s> DeclaredNames<'s> {
    fn add(&mut self, at: &Pointer, members: &'s Object, resources: &Resources<'s>) {
        if !self.seen.insert(at.clone()) {
            return;
        }
        let maps = members
            .get("additionalProperties")
            .is_some_and(Value::is_object);
        self.any |= maps
            || members.contains_key("patternProperties")
            || members.contains_key("$dynamicRef")
            || members.contains_key("$recursiveRef")
            || self.seen.len() > MAX_VISITS;
        if self.any {
            return;
        }
        if let Some(Value::Object(properties)) = members.get("properties") {
            self.names.extend(properties.keys().map(String::as_str));
        }
        if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
            match resources.resolve(&SchemaLocation::here(at.clone()), reference) {
                Some((place, Value::Object(target))) if place.document == 0 => {
                    self.add(&place.pointer, target, resources);
                }
                _ => self.any = true,
            }
        }
        for (pointer, child) in subschemas(members, at) {
            if let (true, Value::Object(child)) = (is_in_place(&pointer, at), child) {
                self.add(&pointer, child, resources);
            }
        }
    }
}

fn report(at: &Pointer, members: &Object, names: &BTreeSet<&str>, faults: &mut Vec<SchemaFault>) {
    let listed = members.get("required").and_then(Value::as_array);
    for (index, name) in listed.into_iter().flatten().enumerate() {
        let Some(name) = name.as_str().filter(|name| !names.contains(name)) else {
            continue;
        };
        let message = format!("`required` names `{name}`, which nothing declares");
        let hint = did_you_mean(name, names.iter().copied());
        let fix = match hint.strip_prefix(", ") {
            Some(hint) => hint.to_owned(),
            None => "declare it in `properties`, or remove it from `required`".to_owned(),
        };
        let place = at.child("required").index(index);
        faults.push(fault(SchemaFaultRule::Required, place, message, fix));
    }
    for (pointer, child) in subschemas(members, at) {
        // `not` and `if` may require properties that callers must not send.
        let keyword = keyword_below(&pointer, at);
        let asks = !matches!(keyword.as_deref(), Some("not" | "if"));
        if let (true, true, Value::Object(child)) = (is_in_place(&pointer, at), asks, child) {
            report(&pointer, child, names, faults);
        }
    }
}

/// The schemas that are combined with others, by references in in-place keywords or references with
/// sibling keywords. They need not declare every property themselves.
fn merged_schemas(roots: &[(Pointer, &Value)], resources: &Resources<'_>) -> BTreeSet<Pointer> {
    let mut merged = BTreeSet::new();
    let mut open = roots.to_vec();
    while let Some((at, schema)) = open.pop() {
        let Value::Object(members) = schema else {
            continue;
        };
        if let Some(reference) = members.get("$ref").and_then(Value::as_str)
            && (members.len() > 1 || stands_in_place(&at))
            && let Some((place, _)) =
                resources.resolve(&SchemaLocation::here(at.clone()), reference)
            && place.document == 0
            && place.pointer != Pointer::root()
        {
            merged.insert(place.pointer);
        }
        open.extend(subschemas(members, &at));
    }
    merged
}

fn is_in_place(pointer: &Pointer, at: &Pointer) -> bool {
    keyword_below(pointer, at).is_some_and(|keyword| IN_PLACE.contains(&keyword.as_str()))
}

fn keyword_below(pointer: &Pointer, at: &Pointer) -> Option<String> {
    let below = pointer.as_str().strip_prefix(at.as_str())?;
    Pointer::from(below).segments().next()
}

/// Whether the schema at a place applies to the same value as its parent schema.
fn stands_in_place(at: &Pointer) -> bool {
    let segments: Vec<String> = at.segments().collect();
    let is = |segment: Option<&String>, among: &[&str]| {
        segment.is_some_and(|segment| among.contains(&segment.as_str()))
    };
    let mut last = segments.iter().rev();
    let (nearest, around, beyond) = (last.next(), last.next(), last.next());
    // A property may be called `then`, so the enclosing keyword counts as well.
    let names = ["properties", "patternProperties", "$defs", "definitions"];
    (is(nearest, &["if", "then", "else", "not"]) && !is(around, &names))
        || (is(around, &["allOf", "anyOf", "oneOf", "dependentSchemas"]) && !is(beyond, &names))
}
