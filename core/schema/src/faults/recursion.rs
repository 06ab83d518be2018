//! Schemas that no finite value satisfies, because every value must contain another one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use toolwarden_model::json::{Object, Pointer};

use super::reference::is_cycle;
use super::{MAX_FAULTS, SchemaFault, SchemaFaultRule, fault, referenced};
use crate::prepare::{Draft, Resources, SchemaLocation};
use toolwarden_model::keywords::subschemas;

/// The most schemas examined; a larger document is not decided.
const MAX_VISITS: usize = 200_000;

/// Finds the schemas whose values would have to be infinite.
pub(super) fn check(root: &Value, resources: &Resources<'_>, faults: &mut Vec<SchemaFault>) {
    let targets = targets(root, resources);
    if targets.is_empty() {
        return;
    }
    let mut search = FiniteSearch {
        resources,
        draft: resources.draft(0),
        finite: BTreeSet::new(),
        visits: 0,
    };
    // The least fixed point: a schema has a finite value if it has one that uses only schemas that have
    // one.
    loop {
        let mut found: Vec<Pointer> = Vec::new();
        for (at, schema) in &targets {
            if !search.finite.contains(at) && search.is_finite(at, schema) {
                found.push(at.clone());
            }
        }
        if search.visits > MAX_VISITS {
            return;
        }
        if found.is_empty() {
            break;
        }
        search.finite.extend(found);
    }
    // References that only lead to each other are a fault of their own: nothing contains anything.
    // All searches together have one budget.
    search.visits = 0;
    for (at, schema) in &targets {
        if faults.len() >= MAX_FAULTS || search.visits > MAX_VISITS {
            return;
        }
        let place = SchemaLocation::here(at.clone());
        if search.finite.contains(at)
            || is_cycle(place, schema, resources)
            || !leads_back(&mut search, &targets, at, schema)
        {
            continue;
        }
        let message = "every value of this schema must contain another value of it, without end";
        let fix = "make the property that refers back optional, or let it be null";
        faults.push(fault(SchemaFaultRule::Endless, at.clone(), message, fix));
    }
}

/// The schemas that references lead to, in the document itself.
fn targets<'s>(root: &'s Value, resources: &Resources<'s>) -> BTreeMap<Pointer, &'s Value> {
    let mut found = BTreeMap::new();
    let outside = referenced::outside_keywords(root, resources);
    let mut open: Vec<(Pointer, &Value)> = vec![(Pointer::root(), root)];
    open.extend(outside);
    let mut visits = 0;
    while let Some((at, schema)) = open.pop() {
        let Some(members) = schema.as_object().filter(|_| visits < MAX_VISITS) else {
            continue;
        };
        visits += 1;
        if let Some((place, target)) = reference(members, &at, resources) {
            found.insert(place, target);
        }
        open.extend(subschemas(members, &at));
    }
    found
}

fn reference<'s>(
    members: &Object,
    at: &Pointer,
    resources: &Resources<'s>,
) -> Option<(Pointer, &'s Value)> {
    let reference = members.get("$ref")?.as_str()?;
    let (place, target) = resources.resolve(&SchemaLocation::here(at.clone()), reference)?;
    (place.document == 0).then_some((place.pointer, target))
}

struct FiniteSearch<'r, 's> {
    resources: &'r Resources<'s>,
    draft: Draft,
    /// The targets of references that have a finite value.
    finite: BTreeSet<Pointer>,
    visits: usize,
}

impl FiniteSearch<'_, '_> {
    /// Whether nothing so far excludes a finite value.
    fn is_finite(&mut self, at: &Pointer, schema: &Value) -> bool {
        self.needed(at, schema).is_empty()
    }

    /// The targets of references that every value of a schema needs and that have no finite value yet.
    fn needed(&mut self, at: &Pointer, schema: &Value) -> BTreeSet<Pointer> {
        self.visits += 1;
        let mut needed = BTreeSet::new();
        let Some(members) = schema.as_object().filter(|_| self.visits <= MAX_VISITS) else {
            return needed;
        };
        if let Some((place, _)) = reference(members, at, self.resources) {
            if !self.finite.contains(&place) {
                needed.insert(place);
            }
            if self.draft <= Draft::Draft7 {
                return needed;
            }
        }
        let mut inside: Vec<(Pointer, &Value)> = Vec::new();
        if is_only(members, "object") {
            let properties = members.get("properties").and_then(Value::as_object);
            let required = members.get("required").and_then(Value::as_array);
            for name in required.into_iter().flatten().filter_map(Value::as_str) {
                let property = properties.and_then(|it| it.get(name));
                inside.extend(property.map(|it| (at.child("properties").child(name), it)));
            }
        }
        let least = members.get("minItems").and_then(Value::as_u64);
        let least = usize::try_from(least.unwrap_or_default()).unwrap_or(usize::MAX);
        if is_only(members, "array") && least > 0 {
            let prefix = members.get("prefixItems").and_then(Value::as_array);
            let first = prefix.into_iter().flatten().take(least).enumerate();
            inside.extend(first.map(|(index, it)| (at.child("prefixItems").index(index), it)));
            if prefix.map_or(0, Vec::len) < least {
                let items = members.get("items").filter(|it| it.is_object());
                inside.extend(items.map(|it| (at.child("items"), it)));
            }
        }
        if let Some(all) = members.get("allOf").and_then(Value::as_array) {
            let all = all.iter().enumerate();
            inside.extend(all.map(|(index, it)| (at.child("allOf").index(index), it)));
        }
        for (at, schema) in inside {
            needed.append(&mut self.needed(&at, schema));
        }
        for keyword in ["anyOf", "oneOf"] {
            let Some(choices) = members.get(keyword).and_then(Value::as_array) else {
                continue;
            };
            let choices = choices.iter().enumerate();
            let mut choices: Vec<BTreeSet<Pointer>> = choices
                .map(|(index, it)| self.needed(&at.child(keyword).index(index), it))
                .collect();
            if choices.iter().all(|it| !it.is_empty()) {
                choices.iter_mut().for_each(|it| needed.append(it));
            }
        }
        needed
    }
}

/// Whether a schema accepts values of one type only.
fn is_only(members: &Object, word: &str) -> bool {
    match members.get("type") {
        Some(Value::String(only)) => only == word,
        Some(Value::Array(words)) => {
            !words.is_empty() && words.iter().all(|it| it.as_str() == Some(word))
        }
        _ => false,
    }
}

/// Whether a schema without a finite value needs itself, rather than another such schema.
fn leads_back(
    search: &mut FiniteSearch<'_, '_>,
    targets: &BTreeMap<Pointer, &Value>,
    at: &Pointer,
    schema: &Value,
) -> bool {
    let mut seen = BTreeSet::new();
    let mut open: Vec<Pointer> = search.needed(at, schema).into_iter().collect();
    while let Some(next) = open.pop() {
        if next == *at {
            return true;
        }
        if seen.insert(next.clone())
            && let Some(schema) = targets.get(&next)
        {
            open.extend(search.needed(&next, schema));
        }
    }
    false
}
