//! Rules about unused names, which are often misspelled.

use std::collections::{BTreeMap, BTreeSet};

use toolwarden_model::json::Pointer;

use super::holders::{all_grants, inherited_roles, principal_grants};
use super::{LintReport, LintRule, Suggestions};
use crate::policy::PatternTree;
use crate::policy::{
    DEFAULT_GROUP, EVERY, EVERY_GROUP, Grants, PermissionPattern, Policy, group_and_parents,
};

pub(super) fn check(policy: &Policy, report: &mut LintReport) {
    roles(policy, report);
    groups(policy, report);
    permissions(policy, report);
}

fn roles(policy: &Policy, report: &mut LintReport) {
    let mut direct = Grants::default();
    let roles: BTreeSet<&String> = principal_grants(policy)
        .flat_map(|grants| &grants.roles)
        .collect();
    direct.roles = roles.into_iter().cloned().collect();
    let used: BTreeSet<&str> = inherited_roles(policy, &direct)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    for (name, role) in &policy.roles {
        if !used.contains(name.as_str()) {
            let message =
                format!("no principal has role `{name}`; give it to a principal, or remove it");
            report.add(LintRule::UnusedRole, role.pointer.clone(), message);
        }
    }
}

fn groups(policy: &Policy, report: &mut LintReport) {
    let of_rules = policy.all_rules().flat_map(|tool| &tool.groups);
    let populated: BTreeSet<&str> = of_rules
        .flat_map(|group| group_and_parents(group.as_str()))
        .collect();
    let mut suggestions = Suggestions::among(populated.iter().copied());
    for name in policy.groups.keys() {
        if !populated.contains(name.as_str()) {
            let near = suggestions.of(name.as_str());
            let message = format!(
                "no tool is in group `{name}`{near}; put a tool into it, or remove its description"
            );
            report.add(
                LintRule::UnusedGroup,
                Pointer::of(["groups", name.as_str()]),
                message,
            );
        }
    }
    let mut granted = NameOccurrences::default();
    for grants in all_grants(policy) {
        for (index, group) in grants.groups.iter().flatten().enumerate() {
            // A request without groups asks for the default group, so granting it is useful even without
            // tools.
            let special = [&EVERY_GROUP, &DEFAULT_GROUP].contains(&group);
            let known = populated.contains(group.as_str()) || policy.groups.contains_key(group);
            if !special && !known {
                granted.add(group.as_str(), || {
                    grants.pointer.child("groups").index(index)
                });
            }
        }
    }
    for (name, place) in granted.0 {
        let near = suggestions.of(name);
        let others = place.others();
        let message = format!("group `{name}` is granted{others}, and no tool is in it{near}");
        report.add(LintRule::UnusedGroup, place.first, message);
    }
}

fn permissions(policy: &Policy, report: &mut LintReport) {
    let mut places = NameOccurrences::default();
    for grants in all_grants(policy) {
        let lists: [(&[PermissionPattern], &[&str]); 2] = [
            (&grants.permissions, &["permissions"]),
            (&grants.deny.permissions, &["deny", "permissions"]),
        ];
        for (patterns, keys) in lists {
            for (index, pattern) in patterns.iter().enumerate() {
                places.add(pattern.as_str(), || {
                    let list = Pointer::of(keys.iter().copied());
                    grants.pointer.join(&list).index(index)
                });
            }
        }
    }
    let mut tree = PatternTree::default();
    let names: Vec<&str> = places.0.keys().copied().collect();
    for (number, name) in names.iter().enumerate() {
        tree.insert(name, number);
    }
    let required: BTreeSet<&str> = policy
        .all_rules()
        .flat_map(|tool| &tool.permissions)
        .map(|permission| permission.as_str())
        .collect();
    let used: BTreeSet<usize> = required.iter().flat_map(|it| tree.covering(it)).collect();
    let mut suggestions = Suggestions::among(required.iter().copied());
    for (number, (name, place)) in places.0.into_iter().enumerate() {
        if used.contains(&number) || name == EVERY {
            continue;
        }
        let near = suggestions.of(name);
        let others = place.others();
        let message =
            format!("no tool requires permission `{name}`{others}{near}; correct it, or remove it");
        report.add(LintRule::UnusedPermission, place.first, message);
    }
}

/// Names with the first place of each, so that one mistake in many places is one finding.
#[derive(Default)]
struct NameOccurrences<'p>(BTreeMap<&'p str, NameOccurrence>);

struct NameOccurrence {
    first: Pointer,
    count: usize,
}

impl<'p> NameOccurrences<'p> {
    fn add(&mut self, name: &'p str, pointer: impl FnOnce() -> Pointer) {
        let place = self.0.entry(name).or_insert_with(|| NameOccurrence {
            first: pointer(),
            count: 0,
        });
        place.count += 1;
    }
}

impl NameOccurrence {
    fn others(&self) -> String {
        match self.count {
            0 | 1 => String::new(),
            2 => " (here and in one other place)".to_owned(),
            count => format!(" (here and in {} other places)", count - 1),
        }
    }
}
