//! Rules about who can call what.

use std::collections::{BTreeMap, BTreeSet};

use toolwarden_model::json::Pointer;

use super::holders::{Access, Holders, all_grants};
use super::{LintRule, Report, Suggestions, listed};
use crate::policy::{EVERY, FeatureKind, Permission, PermissionPattern, Policy, ToolPolicy};

pub(super) fn check(policy: &Policy, report: &mut Report) {
    let holders = Holders::of(policy);
    // Only what is written has a place.
    let says_anyone = policy.anyone.pointer != Pointer::root();
    if !says_anyone {
        open_to_anyone(policy, &holders, report);
    }
    if !says_anyone && policy.principals.is_empty() {
        no_principals(policy, &holders, report);
        return;
    }
    unrequestable_groups(policy, &holders, report);
    unheld_permissions(policy, &holders, report);
    unreachable_tools(policy, &holders, report);
}

fn open_to_anyone(policy: &Policy, holders: &Holders<'_>, report: &mut Report) {
    let tools = policy.all_rules();
    let open = tools.filter(|tool| holders.may_call(holders.anyone, &holders.wanted(tool)));
    let open = listed(open.map(|tool| tool.name.as_str()));
    if !open.is_empty() {
        let message = format!(
            "principals that are not listed may call {open}, which the group `default` gives \
             everybody; write `\"*\": {{groups: [default]}}` under `principals` if that is meant, and \
             `\"*\": {{groups: []}}` if not"
        );
        report.add(LintRule::OpenToAnyone, Pointer::of(["principals"]), message);
    }
}

/// One finding instead of one for every group, permission and tool.
fn no_principals(policy: &Policy, holders: &Holders<'_>, report: &mut Report) {
    let tools = policy.all_rules();
    let closed = tools.filter(|tool| !holders.may_call(holders.anyone, &holders.wanted(tool)));
    let closed = listed(closed.map(|tool| tool.name.as_str()));
    if !closed.is_empty() {
        let message = format!(
            "nobody can call {closed}: the policy grants nobody groups or permissions; list who may \
             under `principals`, with `\"*\"` for everybody else"
        );
        report.add(LintRule::NoPrincipals, Pointer::of(["principals"]), message);
    }
}

fn unrequestable_groups(policy: &Policy, holders: &Holders<'_>, report: &mut Report) {
    let mut tools_in: BTreeMap<&str, Vec<&ToolPolicy>> = BTreeMap::new();
    for tool in policy.all_rules() {
        for group in &tool.groups {
            tools_in.entry(group).or_default().push(tool);
        }
    }
    let mut suggestions = Suggestions::among(granted_groups(policy));
    for (group, tools) in tools_in {
        // A group that is there to be denied need not be granted.
        if holders.group_is_requestable(group) || is_denied(policy, group) {
            continue;
        }
        let near = suggestions.of(group);
        let names = listed(tools.iter().map(|tool| tool.name.as_str()));
        let message = format!(
            "nobody may request group `{group}` of {names}{near}; grant it to a role or a principal, \
             or take the group away"
        );
        if let Some(tool) = tools.first() {
            report.add(
                LintRule::UnrequestableGroup,
                tool.pointer.child("group"),
                message,
            );
        }
    }
}

fn unheld_permissions(policy: &Policy, holders: &Holders<'_>, report: &mut Report) {
    let mut required_by: BTreeMap<&Permission, Vec<&ToolPolicy>> = BTreeMap::new();
    for tool in policy.all_rules() {
        for permission in &tool.permissions {
            required_by.entry(permission).or_default().push(tool);
        }
    }
    let mut suggestions = Suggestions::among(granted_permissions(policy));
    for (permission, tools) in required_by {
        if holders.is_held(&holders.needed(permission)) {
            continue;
        }
        let near = suggestions.of(permission.as_str());
        let names = listed(tools.iter().map(|tool| tool.name.as_str()));
        let message = format!(
            "nobody holds permission `{permission}`, which {names} requires{near}; grant it to a role \
             or a principal"
        );
        if let Some(tool) = tools.first() {
            let pointer = tool.pointer.child("required_permissions");
            report.add(LintRule::UnheldPermission, pointer, message);
        }
    }
}

fn unreachable_tools(policy: &Policy, holders: &Holders<'_>, report: &mut Report) {
    // Tools with the same groups and permissions share the answer, unless a rule names one.
    let mut known: BTreeMap<(&[String], &[Permission]), Access<'_>> = BTreeMap::new();
    for tool in policy.all_rules() {
        let wanted = || holders.wanted(tool);
        let is_named = tool.kind == FeatureKind::Tool && holders.denies_by_name(&tool.name);
        let access = if is_named {
            holders.access(&wanted())
        } else {
            let key = (tool.groups.as_slice(), tool.permissions.as_slice());
            known
                .entry(key)
                .or_insert_with(|| holders.access(&wanted()))
                .clone()
        };
        let (kind, name) = (tool.kind, &tool.name);
        let (key, message) = match access {
            Access::Somebody => continue,
            Access::NoRequester if tool.groups.is_empty() => (
                "group",
                format!(
                    "nobody can call {kind} `{name}`: it is in no group, and nobody is granted every \
                     group; put it into a group, or grant somebody `{EVERY}`"
                ),
            ),
            Access::NoRequester => (
                "group",
                format!(
                    "nobody can call {kind} `{name}`: nobody may request {}, or a deny rule keeps them \
                     from it",
                    listed(tool.groups.iter().map(String::as_str))
                ),
            ),
            Access::Lacking(permissions) => (
                "required_permissions",
                format!(
                    "nobody can call {kind} `{name}`: nobody who may request it holds {}",
                    listed(permissions)
                ),
            ),
            Access::NotTogether => (
                "required_permissions",
                format!(
                    "nobody can call {kind} `{name}`: nobody who may request it holds all of {}",
                    listed(tool.permissions.iter().map(Permission::as_str))
                ),
            ),
        };
        report.add(LintRule::UnreachableTool, tool.pointer.child(key), message);
    }
}

fn granted_groups(policy: &Policy) -> BTreeSet<&str> {
    let groups = all_grants(policy).flat_map(|grants| grants.groups.iter().flatten());
    groups.map(String::as_str).collect()
}

fn granted_permissions(policy: &Policy) -> BTreeSet<&str> {
    let patterns = all_grants(policy).flat_map(|grants| &grants.permissions);
    patterns.map(PermissionPattern::as_str).collect()
}

/// Whether some deny rule names a group.
fn is_denied(policy: &Policy, group: &str) -> bool {
    let principals = policy.principals.values().map(|it| &it.grants);
    let mut holders = principals
        .chain(policy.roles.values())
        .chain([&policy.anyone]);
    holders.any(|grants| grants.deny.groups.iter().any(|it| it == group))
}
