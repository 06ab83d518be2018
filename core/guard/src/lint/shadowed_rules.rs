//! Rules about grants and denials that other entries of the same holder make redundant.

use std::collections::{BTreeMap, BTreeSet};

use toolwarden_model::GroupName;
use toolwarden_model::json::Pointer;

use super::holders::{inherited_roles, principal_grants};
use super::{LintReport, LintRule};
use crate::policy::PatternTree;
use crate::policy::{
    DEFAULT_GROUP, EVERY, FeatureKind, Grants, PermissionPattern, Policy, ToolPolicy,
    group_and_parents,
};

pub(super) fn check(policy: &Policy, report: &mut LintReport) {
    let roles = policy
        .roles
        .iter()
        .map(|(name, role)| (name.as_str(), Rules::of(role)));
    let roles: BTreeMap<&str, Rules<'_>> = roles.collect();
    let tools = ToolGroups::of(policy);
    let holders = principal_grants(policy).map(|grants| (grants, true));
    for (grants, holds) in policy
        .roles
        .values()
        .map(|role| (role, false))
        .chain(holders)
    {
        let own = Rules::of(grants);
        let taken = inherited_roles(policy, grants).into_iter();
        let mut all: Vec<&Rules<'_>> = taken.filter_map(|(name, _)| roles.get(name)).collect();
        all.push(&own);
        let mut shadows = ShadowCheck { grants, report };
        shadows.grants(&own, &all);
        shadows.denies(&own);
        // A role may deny a permission that another role of its holders grants.
        if holds {
            shadows.idle_denies(&all, &tools);
        }
    }
}

/// The grants that one principal or role states itself, indexed.
struct Rules<'p> {
    says_groups: bool,
    groups: BTreeSet<&'p str>,
    denied_groups: BTreeSet<&'p str>,
    allowed: PatternTree,
    denied: PatternTree,
    /// The patterns of the second tree by number.
    denied_patterns: &'p [PermissionPattern],
}

impl<'p> Rules<'p> {
    fn of(grants: &'p Grants) -> Self {
        Self {
            says_groups: grants.groups.is_some(),
            groups: grants
                .groups
                .iter()
                .flatten()
                .map(GroupName::as_str)
                .collect(),
            denied_groups: grants.deny.groups.iter().map(GroupName::as_str).collect(),
            allowed: tree(&grants.permissions),
            denied: tree(&grants.deny.permissions),
            denied_patterns: &grants.deny.permissions,
        }
    }

    /// The deny rule that covers a whole group.
    fn denies_group(&self, group: &str) -> Option<&'p str> {
        let around = group_and_parents(group).chain([EVERY]);
        let mut denies = around.filter_map(|group| self.denied_groups.get(group));
        denies.next().copied()
    }

    /// The deny rule that covers a whole permission pattern.
    fn denies_permission(&self, pattern: &str) -> Option<&'p str> {
        let number = self.denied.covering(pattern).into_iter().min()?;
        self.denied_patterns
            .get(number)
            .map(PermissionPattern::as_str)
    }
}

fn tree(patterns: &[PermissionPattern]) -> PatternTree {
    let mut tree = PatternTree::default();
    for (number, pattern) in patterns.iter().enumerate() {
        tree.insert(pattern.as_str(), number);
    }
    tree
}

/// The groups that lead to the tools of a group, or to one tool.
struct ToolGroups<'p> {
    of_group: BTreeMap<&'p str, BTreeSet<&'p str>>,
    by_name: BTreeMap<&'p str, &'p ToolPolicy>,
}

impl<'p> ToolGroups<'p> {
    fn of(policy: &'p Policy) -> Self {
        let mut of_group: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for tool in policy.all_rules() {
            let groups: BTreeSet<&str> = reached_by(tool).collect();
            for group in &groups {
                of_group.entry(group).or_default().extend(&groups);
            }
        }
        let by_name = policy.tools.iter().map(|tool| (tool.name.as_str(), tool));
        Self {
            of_group,
            by_name: by_name.collect(),
        }
    }
}

fn reached_by(tool: &ToolPolicy) -> impl Iterator<Item = &str> {
    tool.groups
        .iter()
        .flat_map(|group| group_and_parents(group.as_str()))
}

struct ShadowCheck<'p, 'r> {
    grants: &'p Grants,
    report: &'r mut LintReport,
}

impl ShadowCheck<'_, '_> {
    fn grants(&mut self, own: &Rules<'_>, all: &[&Rules<'_>]) {
        let groups = self.grants.groups.iter().flatten().map(GroupName::as_str);
        self.duplicates(&["roles"], self.grants.roles.iter().map(String::as_str));
        self.groups(&["groups"], groups, |group| {
            all.iter().find_map(|rules| rules.denies_group(group))
        });
        self.patterns(
            &["permissions"],
            &self.grants.permissions,
            &own.allowed,
            |pattern| {
                all.iter()
                    .find_map(|rules| rules.denies_permission(pattern))
            },
        );
    }

    fn denies(&mut self, own: &Rules<'_>) {
        let deny = &self.grants.deny;
        let groups = deny.groups.iter().map(GroupName::as_str);
        self.groups(&["deny", "groups"], groups, |_| None);
        self.patterns(
            &["deny", "permissions"],
            &deny.permissions,
            &own.denied,
            |_| None,
        );
        self.duplicates(&["deny", "tools"], deny.tools.iter().map(String::as_str));
        for kind in FeatureKind::BESIDES_TOOLS {
            let of_kind = deny.features.iter().filter(|(it, _)| *it == kind);
            let names = of_kind.map(|(_, name)| name.as_str());
            self.duplicates(&["deny", kind.section()], names);
        }
    }

    fn groups<'g>(
        &mut self,
        list: &[&str],
        groups: impl Iterator<Item = &'g str> + Clone,
        denied: impl Fn(&str) -> Option<&'g str>,
    ) {
        let all: BTreeSet<&str> = groups.clone().collect();
        let mut seen = BTreeSet::new();
        for (index, group) in groups.enumerate() {
            let mut around = group_and_parents(group).skip(1).chain([EVERY]);
            let around = around.find(|other| *other != group && all.contains(other));
            let message = if let Some(deny) = denied(group) {
                no_effect_message("group", group, deny)
            } else if !seen.insert(group) {
                format!("group `{group}` is written twice; remove one")
            } else if let Some(other) = around {
                format!("group `{group}` is within `{other}`, which is in the list too; remove one")
            } else {
                continue;
            };
            self.shadowed(list, index, message);
        }
    }

    fn patterns<'g>(
        &mut self,
        list: &[&str],
        patterns: &[PermissionPattern],
        tree: &PatternTree,
        denied: impl Fn(&str) -> Option<&'g str>,
    ) {
        for (index, pattern) in patterns.iter().enumerate() {
            let text = pattern.as_str();
            let covering = tree.covering(text);
            let mut others = covering.iter().filter_map(|number| patterns.get(*number));
            let message = if let Some(deny) = denied(text) {
                no_effect_message("permission", text, deny)
            } else if let Some(other) = others.find(|other| *other != pattern) {
                let other = other.as_str();
                format!("permission `{text}` is covered by `{other}` of the same list; remove one")
            } else if !covering.contains(&index) {
                format!("permission `{text}` is written twice; remove one")
            } else {
                continue;
            };
            self.shadowed(list, index, message);
        }
    }

    fn duplicates<'g>(&mut self, list: &[&str], names: impl Iterator<Item = &'g str>) {
        let mut seen = BTreeSet::new();
        for (index, name) in names.enumerate() {
            if !seen.insert(name) {
                self.shadowed(
                    list,
                    index,
                    format!("`{name}` is written twice; remove one"),
                );
            }
        }
    }

    fn idle_denies(&mut self, all: &[&Rules<'_>], tools: &ToolGroups<'_>) {
        let default = !all.iter().any(|rules| rules.says_groups);
        let granted = |group: &str| {
            (default && DEFAULT_GROUP == *group) || all.iter().any(|it| it.groups.contains(group))
        };
        let every = granted(EVERY);
        let deny = &self.grants.deny;
        for (index, group) in deny.groups.iter().enumerate() {
            let mut leading = tools.of_group.get(group.as_str()).into_iter().flatten();
            let takes = if *group == EVERY {
                default || all.iter().any(|rules| !rules.groups.is_empty())
            } else {
                leading.clone().next().is_some() && (every || leading.any(|group| granted(group)))
            };
            if !takes {
                let what = format!("no tool that is granted is in group `{group}`");
                self.idle("groups", index, &what);
            }
        }
        for (index, name) in deny.tools.iter().enumerate() {
            let tool = tools.by_name.get(name.as_str());
            let mut leading = tool.into_iter().flat_map(|tool| reached_by(tool));
            if !every && !leading.any(granted) {
                self.idle(
                    "tools",
                    index,
                    &format!("no group of tool `{name}` is granted"),
                );
            }
        }
        for (index, pattern) in deny.permissions.iter().enumerate() {
            let text = pattern.as_str();
            if !all.iter().any(|rules| rules.allowed.overlaps(text)) {
                let what = format!("nothing of permission `{text}` is granted");
                self.idle("permissions", index, &what);
            }
        }
    }

    fn shadowed(&mut self, list: &[&str], index: usize, message: String) {
        let pointer = self.place(list, index);
        self.report.add(LintRule::ShadowedRule, pointer, message);
    }

    fn idle(&mut self, list: &str, index: usize, what: &str) {
        let message = format!(
            "{what}, so denying it takes nothing away; remove it unless it is a precaution"
        );
        let pointer = self.place(&["deny", list], index);
        self.report.add(LintRule::IdleDeny, pointer, message);
    }

    fn place(&self, list: &[&str], index: usize) -> Pointer {
        let list = Pointer::of(list.iter().copied());
        self.grants.pointer.join(&list).index(index)
    }
}

fn no_effect_message(what: &str, name: &str, deny: &str) -> String {
    format!(
        "{what} `{name}` is granted and denied by `{deny}`: the deny wins and the grant is void; remove \
         one of them"
    )
}
