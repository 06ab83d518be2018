//! Finds who may request a group and who holds a permission, without visiting every principal for every
//! tool.

mod build;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crate::policy::PatternTree;
use crate::policy::{
    EVERY, FeatureKind, Grants, Permission, Policy, ToolPolicy, group_and_parents,
};

/// The principals of a policy; those with equal grants are merged.
#[derive(Debug, Default)]
pub(super) struct Holders<'p> {
    sources: Vec<Source<'p>>,
    /// For each holder, its sources.
    holders: Vec<Vec<usize>>,
    /// The principals that the policy does not list.
    pub(super) anyone: usize,
    groups: BTreeMap<&'p str, Index>,
    tree: PatternTree,
    patterns: Vec<Index>,
    /// For each source, its holders.
    holders_of: Vec<Vec<usize>>,
    denied_tools: BTreeSet<&'p str>,
}

/// The grants that one principal or role states itself, without those of its roles.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Source<'p> {
    groups: BTreeSet<&'p str>,
    denied_groups: BTreeSet<&'p str>,
    denied_tools: BTreeSet<&'p str>,
    allowed: BTreeSet<usize>,
    denied: BTreeSet<usize>,
}

/// The sources that grant something.
#[derive(Debug, Default)]
struct Index {
    sources: Vec<usize>,
    /// The total number of their holders.
    total: usize,
}

/// A tool as principals request it.
#[derive(Debug)]
pub(super) struct ToolQuery<'p> {
    pub(super) tool: &'p str,
    /// Its groups and all their parent groups.
    pub(super) groups: BTreeSet<&'p str>,
    pub(super) permissions: Vec<PermissionQuery<'p>>,
}

/// A permission with every pattern that covers it.
#[derive(Debug)]
pub(super) struct PermissionQuery<'p> {
    pub(super) permission: &'p Permission,
    covering: Vec<usize>,
}

/// Whether a principal can call a tool, ignoring states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ToolAccess<'p> {
    Callable,
    /// No principal may request it.
    NoRequester,
    /// No principal that may request it holds these.
    Lacking(Vec<&'p str>),
    /// For each permission, some principal that may request the tool holds it, but none holds them all.
    NotTogether,
}

impl<'p> Holders<'p> {
    pub(super) fn of(policy: &'p Policy) -> Self {
        build::build(policy)
    }

    pub(super) fn tool_query(&self, tool: &'p ToolPolicy) -> ToolQuery<'p> {
        let groups = tool
            .groups
            .iter()
            .flat_map(|group| group_and_parents(group.as_str()));
        ToolQuery {
            // Rules that deny tools apply to tools only.
            tool: if tool.kind == FeatureKind::Tool {
                &tool.name
            } else {
                ""
            },
            groups: groups.collect(),
            permissions: tool
                .permissions
                .iter()
                .map(|it| self.permission_query(it))
                .collect(),
        }
    }

    pub(super) fn permission_query(&self, permission: &'p Permission) -> PermissionQuery<'p> {
        PermissionQuery {
            permission,
            covering: self.tree.covering(permission.as_str()),
        }
    }

    /// Whether some principal may request a group.
    pub(super) fn group_is_requestable(&self, group: &str) -> bool {
        let around: BTreeSet<&str> = group_and_parents(group).collect();
        self.granted_any(&around).any(|holder| {
            !self
                .sources_of(holder)
                .any(|source| source.denies_group(&around))
        })
    }

    /// Whether some principal holds a permission.
    pub(super) fn is_held(&self, needed: &PermissionQuery<'_>) -> bool {
        self.allowed(needed)
            .any(|holder| self.holds(holder, needed))
    }

    /// Whether a deny rule names a tool.
    pub(super) fn denies_by_name(&self, tool: &str) -> bool {
        self.denied_tools.contains(tool)
    }

    pub(super) fn may_call(&self, holder: usize, wanted: &ToolQuery<'_>) -> bool {
        self.may_request(holder, wanted)
            && wanted
                .permissions
                .iter()
                .all(|needed| self.holds(holder, needed))
    }

    pub(super) fn access(&self, wanted: &ToolQuery<'p>) -> ToolAccess<'p> {
        // Only the holders that pass the most selective condition are examined.
        let by_permission = wanted
            .permissions
            .iter()
            .map(|needed| (self.total(needed), needed));
        let rarest = by_permission.min_by_key(|(total, _)| *total);
        let by_group: usize = self.granting(&wanted.groups).map(|index| index.total).sum();
        let may_call = |holder| self.may_call(holder, wanted);
        let is_callable = match rarest {
            Some((total, needed)) if total < by_group => self.allowed(needed).any(may_call),
            _ => self.granted_any(&wanted.groups).any(may_call),
        };
        if is_callable {
            return ToolAccess::Callable;
        }
        let may_request = |holder: usize| self.may_request(holder, wanted);
        if !self.granted_any(&wanted.groups).any(may_request) {
            return ToolAccess::NoRequester;
        }
        let lacking = wanted.permissions.iter().filter(|needed| {
            let mut holders = self.allowed(needed);
            !holders.any(|holder| self.holds(holder, needed) && may_request(holder))
        });
        let lacking: Vec<&str> = lacking.map(|needed| needed.permission.as_str()).collect();
        if lacking.is_empty() {
            return ToolAccess::NotTogether;
        }
        ToolAccess::Lacking(lacking)
    }

    fn may_request(&self, holder: usize, wanted: &ToolQuery<'_>) -> bool {
        let denied = |source: &Source<'_>| {
            source.denied_tools.contains(wanted.tool) || source.denies_group(&wanted.groups)
        };
        let granted = |source: &Source<'_>| {
            let mut groups = wanted.groups.iter();
            source.groups.contains(EVERY) || groups.any(|group| source.groups.contains(group))
        };
        !self.sources_of(holder).any(denied) && self.sources_of(holder).any(granted)
    }

    fn holds(&self, holder: usize, needed: &PermissionQuery<'_>) -> bool {
        let any =
            |patterns: &BTreeSet<usize>| needed.covering.iter().any(|it| patterns.contains(it));
        !self.sources_of(holder).any(|source| any(&source.denied))
            && self.sources_of(holder).any(|source| any(&source.allowed))
    }

    fn sources_of(&self, holder: usize) -> impl Iterator<Item = &Source<'p>> {
        let sources = self.holders.get(holder).into_iter().flatten();
        sources.filter_map(|source| self.sources.get(*source))
    }

    fn granting<'s>(&'s self, groups: &'s BTreeSet<&'s str>) -> impl Iterator<Item = &'s Index> {
        let groups = groups.iter().copied().filter(|group| *group != EVERY);
        groups
            .chain([EVERY])
            .filter_map(|group| self.groups.get(group))
    }

    /// The holders that are granted a group, even if it is also denied; some occur more than once.
    fn granted_any<'s>(&'s self, groups: &'s BTreeSet<&'s str>) -> impl Iterator<Item = usize> {
        self.granting(groups).flat_map(|index| self.having(index))
    }

    /// The holders that are granted a permission, even if it is also denied; some occur more than once.
    fn allowed<'s>(&'s self, needed: &'s PermissionQuery<'_>) -> impl Iterator<Item = usize> {
        let indexes = needed
            .covering
            .iter()
            .filter_map(|pattern| self.patterns.get(*pattern));
        indexes.flat_map(|index| self.having(index))
    }

    fn total(&self, needed: &PermissionQuery<'_>) -> usize {
        let indexes = needed
            .covering
            .iter()
            .filter_map(|pattern| self.patterns.get(*pattern));
        indexes.map(|index| index.total).sum()
    }

    fn having<'s>(&'s self, index: &'s Index) -> impl Iterator<Item = usize> {
        let lists = index
            .sources
            .iter()
            .filter_map(|source| self.holders_of.get(*source));
        lists.flatten().copied()
    }
}

impl Source<'_> {
    fn denies_group(&self, groups: &BTreeSet<&str>) -> bool {
        self.denied_groups.contains(EVERY)
            || groups
                .iter()
                .any(|group| self.denied_groups.contains(group))
    }
}

/// The grants of every principal and role, and of all unlisted principals.
pub(super) fn all_grants(policy: &Policy) -> impl Iterator<Item = &Grants> {
    policy.roles.values().chain(principal_grants(policy))
}

/// The grants of every principal, and of all unlisted principals.
pub(super) fn principal_grants(policy: &Policy) -> impl Iterator<Item = &Grants> {
    let principals = policy
        .principals
        .values()
        .map(|principal| &principal.grants);
    principals.chain([&policy.anyone])
}

/// The roles that grants include, directly or through other roles, each once.
pub(super) fn inherited_roles<'p>(
    policy: &'p Policy,
    grants: &'p Grants,
) -> Vec<(&'p str, &'p Grants)> {
    let mut taken = BTreeSet::new();
    let mut roles = Vec::new();
    let mut pending = vec![grants];
    while let Some(grants) = pending.pop() {
        for name in &grants.roles {
            if let Some(role) = policy.roles.get(name)
                && taken.insert(name)
            {
                roles.push((name.as_str(), role));
                pending.push(role);
            }
        }
    }
    roles
}
