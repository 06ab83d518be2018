//! Checks that the names a policy refers to exist.

use std::collections::{BTreeMap, BTreeSet};

use toolwarden_model::StateName;
use toolwarden_model::did_you_mean;
use toolwarden_model::document::{DiagnosticKind, DocumentReader};
use toolwarden_model::json::Pointer;

use super::{DEFAULT_GROUP, EVERY, Grants, INITIAL_STATE, Policy, PolicyProblem, StateSet};

/// The maximum number of misspelled names that are compared with every known one.
const MAX_SUGGESTIONS: usize = 50;

/// Checks that named roles, tools and groups exist: a misspelled deny rule denies nothing.
pub(super) fn check(policy: &Policy, reader: &mut DocumentReader<PolicyProblem>) {
    let tools: BTreeSet<&str> = policy.tools.iter().map(|tool| tool.name.as_str()).collect();
    let mut suggestions = MAX_SUGGESTIONS;
    let mut closest = |word: &str, known: &mut dyn Iterator<Item = &str>| {
        suggestions = suggestions.saturating_sub(1);
        if suggestions == 0 {
            String::new()
        } else {
            did_you_mean(word, known)
        }
    };
    let known_groups = known_groups(policy);
    let holders = policy.principals.values().map(|it| &it.grants);
    for grants in holders.chain(policy.roles.values()).chain([&policy.anyone]) {
        let missing =
            |what: &'static str, name: &str, suggestion| DiagnosticKind::UnknownReference {
                what,
                name: name.to_owned(),
                suggestion,
            };
        for role in &grants.roles {
            if !policy.roles.contains_key(role) {
                let near = closest(role, &mut policy.roles.keys().map(String::as_str));
                let pointer = grants.pointer.child("roles");
                reader.report(&pointer, missing("role", role, near));
            }
        }
        let denied = grants.pointer.child("deny");
        for tool in &grants.deny.tools {
            if !tools.contains(tool.as_str()) {
                let near = closest(tool, &mut tools.iter().copied());
                reader.report(&denied.child("tools"), missing("tool", tool, near));
            }
        }
        for group in &grants.deny.groups {
            if *group != EVERY && !known_groups.contains(group.as_str()) {
                let near = closest(group.as_str(), &mut known_groups.iter().copied());
                reader.report(
                    &denied.child("groups"),
                    missing("group", group.as_str(), near),
                );
            }
        }
    }
    default_groups(policy, reader);
    states(policy, reader);
    for name in &policy.quarantine {
        let mut names = policy.all_rules().map(|rules| rules.name.as_str());
        if !tools.contains(name.as_str()) && !names.any(|it| it == name) {
            let mistake = DiagnosticKind::UnknownReference {
                what: "tool",
                name: name.clone(),
                suggestion: closest(name, &mut tools.iter().copied()),
            };
            reader.report(&Pointer::of(["quarantine"]), mistake);
        }
    }
    for (name, role) in &policy.roles {
        if is_in_role_cycle(name, &policy.roles) {
            let role_name = name.clone();
            reader.report(&role.pointer, PolicyProblem::RoleCycle { role: role_name });
        }
    }
}

/// Checks that states with settings are states of some tool.
fn states(policy: &Policy, reader: &mut DocumentReader<PolicyProblem>) {
    let mut known: BTreeSet<&str> = BTreeSet::from([INITIAL_STATE.as_str()]);
    for tool in &policy.tools {
        known.extend(tool.next_state.as_ref().map(StateName::as_str));
        if let StateSet::Only(states) = &tool.states {
            known.extend(states.iter().map(StateName::as_str));
        }
    }
    for name in policy.states.keys() {
        if !known.contains(name.as_str()) {
            let mistake = DiagnosticKind::UnknownReference {
                what: "state",
                name: name.to_string(),
                suggestion: did_you_mean(name.as_str(), known.iter().copied()),
            };
            reader.report(&Pointer::of(["states", name.as_str()]), mistake);
        }
    }
}

/// Checks that default groups are granted: otherwise a client that names no groups would not get them.
fn default_groups(policy: &Policy, reader: &mut DocumentReader<PolicyProblem>) {
    let principals = policy.principals.iter();
    let principals = principals.map(|(name, it)| (format!("principal `{name}`"), &it.grants));
    let anyone = (format!("principal `{EVERY}`"), &policy.anyone);
    for (holder, grants) in principals.chain([anyone]) {
        for group in policy.default_groups(grants).into_iter().flatten() {
            if !policy.grants_group(grants, &group) {
                let place = grants.default_groups.is_some();
                let key = if place { "default_groups" } else { "roles" };
                let holder = holder.clone();
                reader.report(
                    &grants.pointer.child(key),
                    PolicyProblem::DefaultGroup { group, holder },
                );
            }
        }
    }
}

/// Every group that a rule names or describes, with its parent groups.
fn known_groups(policy: &Policy) -> BTreeSet<&str> {
    let of_rules = policy.all_rules().flat_map(|tool| &tool.groups);
    of_rules
        .chain(policy.groups.keys())
        .flat_map(|group| super::group_and_parents(group.as_str()))
        .chain([DEFAULT_GROUP.as_str()])
        .collect()
}

fn is_in_role_cycle(start: &str, roles: &BTreeMap<String, Grants>) -> bool {
    let mut seen = BTreeSet::new();
    let mut pending: Vec<&str> = roles
        .get(start)
        .into_iter()
        .flat_map(|role| role.roles.iter().map(String::as_str))
        .collect();
    while let Some(name) = pending.pop() {
        if name == start {
            return true;
        }
        if seen.insert(name) {
            let next = roles.get(name).into_iter().flat_map(|role| &role.roles);
            pending.extend(next.map(String::as_str));
        }
    }
    false
}
