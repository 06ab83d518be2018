//! What a policy refers to has to be there.

use std::collections::{BTreeMap, BTreeSet};

use toolwarden_model::closest;
use toolwarden_model::document::{Mistake, Reader};
use toolwarden_model::json::Pointer;

use super::{DEFAULT_GROUP, EVERY, Grants, INITIAL_STATE, Policy, Problem, States};

/// How many misspelled names are compared with every known one.
const MAX_SUGGESTIONS: usize = 50;

/// Roles, tools and groups that are named have to be there: a misspelled refusal refuses nothing.
pub(super) fn check(policy: &Policy, reader: &mut Reader<Problem>) {
    let tools: BTreeSet<&str> = policy.tools.iter().map(|tool| tool.name.as_str()).collect();
    let mut suggestions = MAX_SUGGESTIONS;
    let mut closest = |word: &str, known: &mut dyn Iterator<Item = &str>| {
        suggestions = suggestions.saturating_sub(1);
        if suggestions == 0 {
            String::new()
        } else {
            closest(word, known)
        }
    };
    let known_groups = known_groups(policy);
    let holders = policy.principals.values().map(|it| &it.grants);
    for grants in holders.chain(policy.roles.values()).chain([&policy.anyone]) {
        let missing = |what: &'static str, name: &str, suggestion| Mistake::Nothing {
            what,
            name: name.to_owned(),
            suggestion,
        };
        for role in &grants.roles {
            if !policy.roles.contains_key(role) {
                let near = closest(role, &mut policy.roles.keys().map(String::as_str));
                let pointer = grants.pointer.child("roles");
                reader.error(&pointer, missing("role", role, near));
            }
        }
        let denied = grants.pointer.child("deny");
        for tool in &grants.deny.tools {
            if !tools.contains(tool.as_str()) {
                let near = closest(tool, &mut tools.iter().copied());
                reader.error(&denied.child("tools"), missing("tool", tool, near));
            }
        }
        for group in &grants.deny.groups {
            if group != EVERY && !known_groups.contains(group.as_str()) {
                let near = closest(group, &mut known_groups.iter().copied());
                reader.error(&denied.child("groups"), missing("group", group, near));
            }
        }
    }
    default_groups(policy, reader);
    states(policy, reader);
    for name in &policy.quarantine {
        let mut names = policy.all_rules().map(|rules| rules.name.as_str());
        if !tools.contains(name.as_str()) && !names.any(|it| it == name) {
            let mistake = Mistake::Nothing {
                what: "tool",
                name: name.clone(),
                suggestion: closest(name, &mut tools.iter().copied()),
            };
            reader.error(&Pointer::of(["quarantine"]), mistake);
        }
    }
    for (name, role) in &policy.roles {
        if takes_over_itself(name, &policy.roles) {
            let role_name = name.clone();
            reader.error(&role.pointer, Problem::RoleCircle { role: role_name });
        }
    }
}

/// States that rules are written for have to be states of some tool.
fn states(policy: &Policy, reader: &mut Reader<Problem>) {
    let mut known: BTreeSet<&str> = BTreeSet::from([INITIAL_STATE]);
    for tool in &policy.tools {
        known.extend(tool.next_state.as_deref());
        if let States::Only(states) = &tool.states {
            known.extend(states.iter().map(String::as_str));
        }
    }
    for name in policy.states.keys() {
        if !known.contains(name.as_str()) {
            let mistake = Mistake::Nothing {
                what: "state",
                name: name.clone(),
                suggestion: closest(name, known.iter().copied()),
            };
            reader.error(&Pointer::of(["states", name]), mistake);
        }
    }
}

/// Default groups have to be granted, or every client that names no groups would be left without them.
fn default_groups(policy: &Policy, reader: &mut Reader<Problem>) {
    let principals = policy.principals.iter();
    let principals = principals.map(|(name, it)| (format!("principal `{name}`"), &it.grants));
    let anyone = (format!("principal `{EVERY}`"), &policy.anyone);
    for (holder, grants) in principals.chain([anyone]) {
        for group in policy.default_groups(grants).into_iter().flatten() {
            if !policy.grants_group(grants, &group) {
                let place = grants.default_groups.is_some();
                let key = if place { "default_groups" } else { "roles" };
                let holder = holder.clone();
                reader.error(
                    &grants.pointer.child(key),
                    Problem::DefaultGroup { group, holder },
                );
            }
        }
    }
}

/// Every group a rule names or that is described, with the groups around it.
fn known_groups(policy: &Policy) -> BTreeSet<&str> {
    let of_rules = policy.all_rules().flat_map(|tool| &tool.groups);
    of_rules
        .chain(policy.groups.keys())
        .flat_map(|group| super::group_and_parents(group))
        .chain([DEFAULT_GROUP])
        .collect()
}

fn takes_over_itself(start: &str, roles: &BTreeMap<String, Grants>) -> bool {
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
