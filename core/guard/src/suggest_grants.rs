//! The grants that each principal needed for its recorded calls, and the grants it never used.

use std::collections::{BTreeMap, BTreeSet};

use toolwarden_model::GroupName;

use crate::policy::{
    EVERY, FeatureKind, Grants, NamePattern, Permission, PermissionPattern, Policy, ToolPolicy,
    group_and_parents, normalize_name,
};

/// The separator between the name of a server and that of its tool, unless the settings of a gateway change
/// it.
const SEPARATOR: &str = "__";

/// How often each tool was used, by principal.
pub type ToolUsage = BTreeMap<String, BTreeMap<String, u64>>;

/// The grants that one principal needed, and those it never used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrantSuggestion {
    /// The principal; `*` stands for all principals that the policy does not name.
    pub principal: String,
    /// The tools it used, by their names in records, with the number of uses.
    pub tools: BTreeMap<String, u64>,
    /// The groups that are sufficient.
    pub groups: BTreeSet<GroupName>,
    /// The permissions that are sufficient.
    pub permissions: BTreeSet<String>,
    /// The roles that are sufficient alone, the smallest first.
    pub roles: Vec<String>,
    /// The granted groups that it never used.
    pub unused_groups: BTreeSet<GroupName>,
    /// The granted permissions that it never used.
    pub unused_permissions: BTreeSet<String>,
    /// The roles of which it used nothing.
    pub unused_roles: BTreeSet<String>,
    /// The tools it used that the policy does not name.
    pub unlisted: BTreeSet<String>,
}

/// The suggestions for every principal of a policy and for everyone who used a tool.
#[must_use]
pub fn suggest_grants(policy: &Policy, usage: &ToolUsage) -> Vec<GrantSuggestion> {
    let mut used: BTreeMap<&str, BTreeMap<String, u64>> = BTreeMap::new();
    for principal in policy.principals.keys() {
        used.entry(principal).or_default();
    }
    for (principal, tools) in usage {
        // The policy grants the same to all principals that it does not name.
        let known = policy.principals.contains_key(principal);
        let own = used
            .entry(if known { principal } else { EVERY })
            .or_default();
        for (tool, count) in tools {
            *own.entry(tool.clone()).or_default() += count;
        }
    }
    used.into_iter()
        .map(|(principal, tools)| suggest_for(policy, principal, tools))
        .collect()
}

fn suggest_for(policy: &Policy, principal: &str, tools: BTreeMap<String, u64>) -> GrantSuggestion {
    let known = policy.principals.get(principal);
    let grants = known.map_or(&policy.anyone, |it| &it.grants);
    let granted = EffectiveGrants::of(policy, grants);
    let mut needed: BTreeSet<Permission> = BTreeSet::new();
    let mut open: Vec<&[GroupName]> = Vec::new();
    let mut suggestion = GrantSuggestion {
        principal: principal.to_owned(),
        ..GrantSuggestion::default()
    };
    for name in tools.keys() {
        let Some(tool) = rules_of(policy, name) else {
            suggestion.unlisted.insert(name.clone());
            continue;
        };
        needed.extend(tool.permissions.iter().cloned());
        if !tool.groups.is_empty() {
            open.push(&tool.groups);
        }
    }
    suggestion.groups = cover(&open);
    suggestion.permissions = needed.iter().map(|it| it.as_str().to_owned()).collect();
    suggestion.roles = sufficient_roles(policy, &suggestion.groups, &needed);
    let reaches = |group: &str, tool: &[GroupName]| {
        let mut own = tool.iter().flat_map(|it| group_and_parents(it.as_str()));
        group == EVERY || own.any(|it| it == group)
    };
    let is_used = |group: &str| open.iter().any(|tool| reaches(group, tool));
    let covers = |it: &PermissionPattern| needed.iter().any(|permission| it.covers(permission));
    let unused = granted.groups.iter().filter(|it| !is_used(it));
    suggestion.unused_groups = unused.map(|it| GroupName::new(*it)).collect();
    let unused = granted.permissions.iter().filter(|it| !covers(it));
    suggestion.unused_permissions = unused.map(|it| it.as_str().to_owned()).collect();
    for role in &grants.roles {
        let Some(of_role) = policy
            .roles
            .get(role)
            .map(|it| EffectiveGrants::of(policy, it))
        else {
            continue;
        };
        let uses = of_role.groups.iter().any(|it| is_used(it))
            || of_role.permissions.iter().any(|it| covers(it));
        if !uses {
            suggestion.unused_roles.insert(role.clone());
        }
    }
    suggestion.tools = tools;
    suggestion
}

/// The rules for a name in a record.
fn rules_of<'p>(policy: &'p Policy, recorded: &str) -> Option<&'p ToolPolicy> {
    let exact = policy.tools.iter().find(|it| it.name == recorded);
    let feature = || {
        let (kind, name) = recorded.split_once(':')?;
        feature_rules(policy, FeatureKind::from_word(kind)?, name)
    };
    exact
        .or_else(feature)
        .or_else(|| other_name(policy, recorded))
}

/// The rules that name a feature besides a tool: by its exact name, else by the pattern with the most
/// literal characters.
fn feature_rules<'p>(policy: &'p Policy, kind: FeatureKind, name: &str) -> Option<&'p ToolPolicy> {
    let name = normalize_name(kind, name);
    let rules = policy.features.iter().filter(|it| it.kind == kind);
    let patterns = rules.map(|it| (NamePattern::new(kind, &it.name), it));
    let fitting = patterns.filter(|(pattern, _)| pattern.matches(&name));
    let best = fitting.max_by_key(|(pattern, _)| (pattern.is_exact(), pattern.literal_length()));
    best.map(|(_, rules)| rules)
}

/// The rules of a tool under its name with or without the server's prefix; `None` if several tools have
/// that name.
fn other_name<'p>(policy: &'p Policy, recorded: &str) -> Option<&'p ToolPolicy> {
    let own = |name: &str| {
        let parts = name.split_once(SEPARATOR);
        parts.map(|(_, own)| own.to_owned())
    };
    let recorded_own = own(recorded);
    let mut same = policy.tools.iter().filter(|it| {
        own(&it.name).as_deref() == Some(recorded) || recorded_own.as_ref() == Some(&it.name)
    });
    let only = same.next()?;
    same.next().is_none().then_some(only)
}

/// A small set of groups that reaches every tool: greedily, the group that reaches most of the remaining
/// tools.
fn cover(tools: &[&[GroupName]]) -> BTreeSet<GroupName> {
    let mut left: Vec<&[GroupName]> = tools.to_vec();
    let mut chosen = BTreeSet::new();
    while !left.is_empty() {
        let mut counts: BTreeMap<&GroupName, usize> = BTreeMap::new();
        for group in left.iter().copied().flatten() {
            *counts.entry(group).or_default() += 1;
        }
        // Ties go to the first by name, so that the same log gives the same answer.
        let best = counts.into_iter().rev().max_by_key(|(_, count)| *count);
        let Some((best, _)) = best else {
            break;
        };
        chosen.insert(best.clone());
        left.retain(|tool| !tool.contains(best));
    }
    chosen
}

fn sufficient_roles(
    policy: &Policy,
    groups: &BTreeSet<GroupName>,
    needed: &BTreeSet<Permission>,
) -> Vec<String> {
    if groups.is_empty() && needed.is_empty() {
        return Vec::new();
    }
    let mut found: Vec<(usize, &String)> = Vec::new();
    for (name, role) in &policy.roles {
        let granted = EffectiveGrants::of(policy, role);
        let has_group = |group: &GroupName| {
            granted.groups.contains(EVERY)
                || group_and_parents(group.as_str()).any(|it| granted.groups.contains(it))
        };
        let has_permission =
            |permission: &Permission| granted.permissions.iter().any(|it| it.covers(permission));
        if groups.iter().all(has_group) && needed.iter().all(has_permission) {
            found.push((granted.groups.len() + granted.permissions.len(), name));
        }
    }
    found.sort_unstable();
    found.into_iter().map(|(_, name)| name.clone()).collect()
}

/// All grants of a principal or role, including those of its roles.
#[derive(Default)]
struct EffectiveGrants<'p> {
    groups: BTreeSet<&'p str>,
    permissions: Vec<&'p PermissionPattern>,
}

impl<'p> EffectiveGrants<'p> {
    fn of(policy: &'p Policy, grants: &'p Grants) -> Self {
        let mut granted = Self::default();
        let mut open = vec![grants];
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        while let Some(grants) = open.pop() {
            let groups = grants.groups.iter().flatten();
            granted.groups.extend(groups.map(GroupName::as_str));
            granted.permissions.extend(&grants.permissions);
            let new = grants.roles.iter().filter(|role| seen.insert(role));
            open.extend(new.filter_map(|role| policy.roles.get(role)));
        }
        granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Document;

    fn policy() -> Policy {
        let text = r"
            tools:
              bank__pay: {group: money, required_permissions: [pay:send]}
              look: {group: reading}
              a__sum: {group: reading}
              b__sum: {group: money}
            resources:
              'file:///public/*': {group: reading}
              'file:///public/plan': {group: staff, required_permissions: [plan:read]}
            prompts:
              letter: {group: writing}
            roles:
              clerk: {groups: [reading, writing]}
              payer: {groups: [money], permissions: ['pay:*']}
            principals:
              ada: {roles: [clerk, payer], groups: [staff], permissions: ['plan:read']}
        ";
        Policy::read(&Document::read(text).unwrap()).unwrap().policy
    }

    fn of_ada(used: &[&str]) -> GrantSuggestion {
        let tools = used.iter().map(|it| ((*it).to_owned(), 1)).collect();
        let usage = ToolUsage::from([("ada".to_owned(), tools)]);
        let mut suggestions = suggest_grants(&policy(), &usage);
        suggestions.retain(|it| it.principal == "ada");
        suggestions.remove(0)
    }

    fn join_names<N: std::borrow::Borrow<str>>(names: &BTreeSet<N>) -> Vec<&str> {
        names.iter().map(N::borrow).collect()
    }

    #[test]
    fn tools_count_under_either_name() {
        for name in ["bank__pay", "pay"] {
            let told = of_ada(&[name]);
            assert_eq!(join_names(&told.groups), ["money"], "{name}");
            assert_eq!(join_names(&told.permissions), ["pay:send"], "{name}");
            assert_eq!(told.roles, ["payer"], "{name}");
            assert_eq!(join_names(&told.unused_roles), ["clerk"], "{name}");
        }
        assert_eq!(join_names(&of_ada(&["any__look"]).groups), ["reading"]);
        // Two tools have this name, so the one that was used is unknown.
        assert_eq!(join_names(&of_ada(&["sum"]).unlisted), ["sum"]);
    }

    #[test]
    fn resources_and_prompts_count() {
        let told = of_ada(&["resource:file:///public/news", "prompt:letter"]);
        assert_eq!(join_names(&told.groups), ["reading", "writing"]);
        assert_eq!(told.roles, ["clerk"]);
        assert_eq!(join_names(&told.unused_groups), ["money", "staff"]);
        assert!(told.unlisted.is_empty());
        let told = of_ada(&["resource:file:///public/./plan"]);
        assert_eq!(join_names(&told.groups), ["staff"]);
        assert_eq!(join_names(&told.permissions), ["plan:read"]);
        let told = of_ada(&["resource:note://x", "prompt:other"]);
        assert_eq!(
            join_names(&told.unlisted),
            ["prompt:other", "resource:note://x"]
        );
    }
}
