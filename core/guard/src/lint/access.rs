//! Rules about who can call what.

use std::collections::{BTreeMap, BTreeSet};

use toolwarden_model::GroupName;
use toolwarden_model::json::Pointer;

use super::holders::{Holders, ToolAccess, all_grants};
use super::{LintReport, LintRule, Suggestions, join_names};
use crate::policy::{EVERY, FeatureKind, Permission, PermissionPattern, Policy, ToolPolicy};

pub(super) fn check(policy: &Policy, report: &mut LintReport) {
    let holders = Holders::of(policy);
    // Only entries that the policy contains have a pointer.
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

fn open_to_anyone(policy: &Policy, holders: &Holders<'_>, report: &mut LintReport) {
    let tools = policy.all_rules();
    let open = tools.filter(|tool| holders.may_call(holders.anyone, &holders.tool_query(tool)));
    let open = join_names(open.map(|tool| tool.name.as_str()));
    if !open.is_empty() {
        let message = format!(
            "principals that are not listed may call {open}, which the group `default` gives every \
             principal; write `\"*\": {{groups: [default]}}` under `principals` if that is meant, and \
             `\"*\": {{groups: []}}` if not"
        );
        report.add(LintRule::OpenToAnyone, Pointer::of(["principals"]), message);
    }
}

/// Reports one finding instead of one for every group, permission and tool.
fn no_principals(policy: &Policy, holders: &Holders<'_>, report: &mut LintReport) {
    let tools = policy.all_rules();
    let closed = tools.filter(|tool| !holders.may_call(holders.anyone, &holders.tool_query(tool)));
    let closed = join_names(closed.map(|tool| tool.name.as_str()));
    if !closed.is_empty() {
        let message = format!(
            "no principal can call {closed}: the policy grants no principal groups or permissions; list the \
             callers under `principals`, with `\"*\"` for all other principals"
        );
        report.add(LintRule::NoPrincipals, Pointer::of(["principals"]), message);
    }
}

fn unrequestable_groups(policy: &Policy, holders: &Holders<'_>, report: &mut LintReport) {
    let mut tools_in: BTreeMap<&str, Vec<&ToolPolicy>> = BTreeMap::new();
    for tool in policy.all_rules() {
        for group in &tool.groups {
            tools_in.entry(group.as_str()).or_default().push(tool);
        }
    }
    let mut suggestions = Suggestions::among(granted_groups(policy));
    for (group, tools) in tools_in {
        // A group that exists only to be denied need not be granted.
        if holders.group_is_requestable(group) || is_denied(policy, group) {
            continue;
        }
        let near = suggestions.of(group);
        let names = join_names(tools.iter().map(|tool| tool.name.as_str()));
        let message = format!(
            "no principal may request group `{group}` of {names}{near}; grant it to a role or a principal, \
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

fn unheld_permissions(policy: &Policy, holders: &Holders<'_>, report: &mut LintReport) {
    let mut required_by: BTreeMap<&Permission, Vec<&ToolPolicy>> = BTreeMap::new();
    for tool in policy.all_rules() {
        for permission in &tool.permissions {
            required_by.entry(permission).or_default().push(tool);
        }
    }
    let mut suggestions = Suggestions::among(granted_permissions(policy));
    for (permission, tools) in required_by {
        if holders.is_held(&holders.permission_query(permission)) {
            continue;
        }
        let near = suggestions.of(permission.as_str());
        let names = join_names(tools.iter().map(|tool| tool.name.as_str()));
        let message = format!(
            "no principal holds permission `{permission}`, which {names} requires{near}; grant it to a role \
             or a principal"
        );
        if let Some(tool) = tools.first() {
            let pointer = tool.pointer.child("required_permissions");
            report.add(LintRule::UnheldPermission, pointer, message);
        }
    }
}

fn unreachable_tools(policy: &Policy, holders: &Holders<'_>, report: &mut LintReport) {
    // Tools with the same groups and permissions share the result, unless a deny rule names one of them.
    let mut known: BTreeMap<(&[GroupName], &[Permission]), ToolAccess<'_>> = BTreeMap::new();
    for tool in policy.all_rules() {
        let wanted = || holders.tool_query(tool);
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
            ToolAccess::Callable => continue,
            ToolAccess::NoRequester if tool.groups.is_empty() => (
                "group",
                format!(
                    "no principal can call {kind} `{name}`: it is in no group, and no principal is granted every \
                     group; put it into a group, or grant a principal `{EVERY}`"
                ),
            ),
            ToolAccess::NoRequester => (
                "group",
                format!(
                    "no principal can call {kind} `{name}`: no principal may request {}, or a deny rule keeps them \
                     from it",
                    join_names(tool.groups.iter().map(GroupName::as_str))
                ),
            ),
            ToolAccess::Lacking(permissions) => (
                "required_permissions",
                format!(
                    "no principal can call {kind} `{name}`: no principal that may request it holds {}",
                    join_names(permissions)
                ),
            ),
            ToolAccess::NotTogether => (
                "required_permissions",
                format!(
                    "no principal can call {kind} `{name}`: no principal that may request it holds all of {}",
                    join_names(tool.permissions.iter().map(Permission::as_str))
                ),
            ),
        };
        report.add(LintRule::UnreachableTool, tool.pointer.child(key), message);
    }
}

fn granted_groups(policy: &Policy) -> BTreeSet<&str> {
    let groups = all_grants(policy).flat_map(|grants| grants.groups.iter().flatten());
    groups.map(GroupName::as_str).collect()
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
    holders.any(|grants| grants.deny.groups.iter().any(|it| *it == *group))
}
