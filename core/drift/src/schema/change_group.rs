//! Groups differences into changes, and finds the differences that must be judged together.

use serde_json::Value;
use toolwarden_model::json::Pointer;

use super::role::SchemaRole;
use crate::difference::Difference;
use crate::rename::{Rename, RenameCandidate, match_renames};

/// Keywords that together restrict a value; authors often rewrite one as another.
const SHAPE_KEYWORDS: &[&str] = &[
    "type",
    "enum",
    "const",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "$ref",
    "items",
    "prefixItems",
    "additionalItems",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
];

/// One change: its differences, and the related differences that affect its meaning.
#[derive(Debug)]
pub(super) struct ChangeGroup<'d, 'v> {
    pub(super) parts: Vec<&'d Difference<'v>>,
    pub(super) related: Vec<&'d Difference<'v>>,
    pub(super) rename: Option<Rename>,
}

/// A property that was removed or added: its difference, the map that holds it, its name.
struct MovedProperty<'d, 'v> {
    index: usize,
    difference: &'d Difference<'v>,
    map: Pointer,
    name: String,
}

impl MovedProperty<'_, '_> {
    fn candidate(&self) -> RenameCandidate<'_> {
        let schema = self.difference.before.or(self.difference.after);
        let description = schema.and_then(|schema| schema.get("description"));
        RenameCandidate {
            name: &self.name,
            schema,
            description: description.and_then(Value::as_str).unwrap_or_default(),
        }
    }
}

/// Groups differences into changes: renames first, then by place.
pub(super) fn group_differences<'d, 'v>(
    found: &'d [Difference<'v>],
    old: &Value,
    new: &Value,
) -> Vec<ChangeGroup<'d, 'v>> {
    let mut used = vec![false; found.len()];
    let mut groups = renames(found, &mut used, old, new);
    for (difference, used) in found.iter().zip(used) {
        if !used {
            groups.push(ChangeGroup {
                parts: vec![difference],
                related: Vec::new(),
                rename: None,
            });
        }
    }
    for group in &mut groups {
        group.related = related_differences(found, group);
    }
    groups.sort_by_key(|group| {
        let first = group.parts.first().map(|part| part.pointer.clone());
        (group.rename.is_none(), first)
    });
    groups
}

/// Differences that affect the meaning of a change: other keywords that restrict the same value, and
/// for a removed property whether its object was closed.
fn related_differences<'d, 'v>(
    found: &'d [Difference<'v>],
    group: &ChangeGroup<'d, 'v>,
) -> Vec<&'d Difference<'v>> {
    let Some(first) = group.parts.first() else {
        return Vec::new();
    };
    let others = found.iter().filter(|other| other.pointer != first.pointer);
    let role = SchemaRole::of(&first.pointer);
    if role.is_property() && first.after.is_none() {
        let holder = parent(&parent(&first.pointer));
        let closing = others.filter(|other| {
            parent(&other.pointer) == holder && SchemaRole::of(&other.pointer).is_closing()
        });
        return closing.collect();
    }
    let shapes =
        |pointer: &Pointer| SHAPE_KEYWORDS.contains(&SchemaRole::of(pointer).keyword.as_str());
    let is_keyword = |pointer: &Pointer| {
        let last = pointer.segments().last().unwrap_or_default();
        SHAPE_KEYWORDS.contains(&last.as_str())
    };
    if !shapes(&first.pointer) || !is_keyword(&first.pointer) {
        return Vec::new();
    }
    let holder = parent(&first.pointer);
    others
        .filter(|other| parent(&other.pointer) == holder && is_keyword(&other.pointer))
        .collect()
}

fn parent(pointer: &Pointer) -> Pointer {
    let mut parent = pointer.clone();
    parent.pop();
    parent
}

/// Properties that were renamed, with the list of required names if it changed only because of the
/// rename.
fn renames<'d, 'v>(
    found: &'d [Difference<'v>],
    used: &mut [bool],
    old: &Value,
    new: &Value,
) -> Vec<ChangeGroup<'d, 'v>> {
    let named = |gone: bool| -> Vec<MovedProperty<'d, 'v>> {
        let all = found.iter().enumerate();
        let wanted = all.filter(|(_, it)| match gone {
            true => it.after.is_none(),
            false => it.before.is_none(),
        });
        let properties = wanted.filter(|(_, it)| SchemaRole::of(&it.pointer).is_property());
        let named = properties.map(|(index, difference)| MovedProperty {
            index,
            difference,
            map: parent(&difference.pointer),
            name: difference.pointer.segments().last().unwrap_or_default(),
        });
        named.collect()
    };
    let (gone, come) = (named(true), named(false));
    let mut maps: Vec<&Pointer> = gone.iter().map(|it| &it.map).collect();
    maps.sort();
    maps.dedup();
    let mut groups = Vec::new();
    for map in maps {
        let here = |it: &&MovedProperty<'d, 'v>| it.map == *map;
        let left: Vec<&MovedProperty<'d, 'v>> = gone.iter().filter(here).collect();
        let right: Vec<&MovedProperty<'d, 'v>> = come.iter().filter(here).collect();
        let went: Vec<RenameCandidate<'_>> = left.iter().map(|it| it.candidate()).collect();
        let came: Vec<RenameCandidate<'_>> = right.iter().map(|it| it.candidate()).collect();
        let mut renamed = Vec::new();
        for matched in match_renames(&went, &came) {
            let from = left.iter().find(|it| it.name == matched.from);
            let to = right.iter().find(|it| it.name == matched.to);
            let (Some(from), Some(to)) = (from, to) else {
                continue;
            };
            for index in [from.index, to.index] {
                if let Some(slot) = used.get_mut(index) {
                    *slot = true;
                }
            }
            renamed.push(ChangeGroup {
                parts: vec![from.difference, to.difference],
                related: Vec::new(),
                rename: Some(Rename::for_argument(&matched)),
            });
        }
        absorb_required(found, used, &mut renamed, map, old, new);
        groups.extend(renamed);
    }
    groups
}

/// Adds the list of required names to the renames next to it, if they explain its change.
fn absorb_required<'d, 'v>(
    found: &'d [Difference<'v>],
    used: &mut [bool],
    renamed: &mut [ChangeGroup<'d, 'v>],
    properties: &Pointer,
    old: &Value,
    new: &Value,
) {
    let place = parent(properties).child("required");
    let Some(at) = found.iter().position(|it| it.pointer == place) else {
        return;
    };
    let names = |schema: &Value| -> Vec<String> {
        let list = place.find(schema).and_then(Value::as_array);
        let names = list.into_iter().flatten().filter_map(Value::as_str);
        names.map(ToOwned::to_owned).collect()
    };
    let mut expected = names(old);
    for rename in renamed.iter().filter_map(|group| group.rename.as_ref()) {
        for name in expected.iter_mut().filter(|name| **name == rename.from) {
            name.clone_from(&rename.to);
        }
    }
    let mut actual = names(new);
    expected.sort();
    actual.sort();
    if renamed.is_empty() || expected != actual {
        return;
    }
    for group in renamed {
        group.parts.extend(found.get(at));
    }
    if let Some(slot) = used.get_mut(at) {
        *slot = true;
    }
}
