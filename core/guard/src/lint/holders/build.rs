use std::collections::{BTreeMap, BTreeSet};

use toolwarden_model::GroupName;

use super::{Holders, Index, Source, inherited_roles};
use crate::policy::{DEFAULT_GROUP, Grants, PermissionPattern, Policy};

pub(super) fn build(policy: &Policy) -> Holders<'_> {
    let mut building = HoldersBuilder::default();
    let anyone = building.holder(policy, &policy.anyone);
    for principal in policy.principals.values() {
        building.holder(policy, &principal.grants);
    }
    building.finish(anyone)
}

#[derive(Default)]
struct HoldersBuilder<'p> {
    sources: BTreeMap<Source<'p>, usize>,
    holders: BTreeMap<Vec<usize>, usize>,
    numbers: BTreeMap<&'p str, usize>,
    roles: BTreeMap<&'p str, usize>,
}

impl<'p> HoldersBuilder<'p> {
    fn holder(&mut self, policy: &'p Policy, grants: &'p Grants) -> usize {
        let mut sources = vec![self.source(grants)];
        let mut says_groups = grants.groups.is_some();
        for (name, role) in inherited_roles(policy, grants) {
            says_groups |= role.groups.is_some();
            let known = self.roles.get(name).copied();
            let source = known.unwrap_or_else(|| self.source(role));
            self.roles.insert(name, source);
            sources.push(source);
        }
        if !says_groups {
            let fallback = Source {
                groups: BTreeSet::from([DEFAULT_GROUP.as_str()]),
                ..Source::default()
            };
            sources.push(number_of(&mut self.sources, fallback));
        }
        sources.sort_unstable();
        sources.dedup();
        number_of(&mut self.holders, sources)
    }

    fn source(&mut self, grants: &'p Grants) -> usize {
        let source = Source {
            groups: grants
                .groups
                .iter()
                .flatten()
                .map(GroupName::as_str)
                .collect(),
            denied_groups: grants.deny.groups.iter().map(GroupName::as_str).collect(),
            denied_tools: grants.deny.tools.iter().map(String::as_str).collect(),
            allowed: self.patterns(&grants.permissions),
            denied: self.patterns(&grants.deny.permissions),
        };
        number_of(&mut self.sources, source)
    }

    fn patterns(&mut self, patterns: &'p [PermissionPattern]) -> BTreeSet<usize> {
        let patterns = patterns.iter();
        patterns
            .map(|it| number_of(&mut self.numbers, it.as_str()))
            .collect()
    }

    fn finish(self, anyone: usize) -> Holders<'p> {
        let mut holders = Holders {
            sources: in_order(self.sources),
            holders: in_order(self.holders),
            anyone,
            ..Holders::default()
        };
        holders
            .holders_of
            .resize_with(holders.sources.len(), Vec::new);
        for (holder, sources) in holders.holders.iter().enumerate() {
            for source in sources {
                if let Some(list) = holders.holders_of.get_mut(*source) {
                    list.push(holder);
                }
            }
        }
        for (pattern, number) in &self.numbers {
            holders.tree.insert(pattern, *number);
        }
        holders
            .patterns
            .resize_with(self.numbers.len(), Index::default);
        for ((number, source), having) in
            holders.sources.iter().enumerate().zip(&holders.holders_of)
        {
            let indexed = |index: &mut Index| {
                index.sources.push(number);
                index.total += having.len();
            };
            for group in &source.groups {
                indexed(holders.groups.entry(group).or_default());
            }
            for pattern in &source.allowed {
                holders.patterns.get_mut(*pattern).map(indexed);
            }
            holders.denied_tools.extend(&source.denied_tools);
        }
        holders
    }
}

fn number_of<T: Ord>(known: &mut BTreeMap<T, usize>, value: T) -> usize {
    let next = known.len();
    *known.entry(value).or_insert(next)
}

fn in_order<T>(numbered: BTreeMap<T, usize>) -> Vec<T> {
    let mut numbered: Vec<(T, usize)> = numbered.into_iter().collect();
    numbered.sort_by_key(|(_, number)| *number);
    numbered.into_iter().map(|(value, _)| value).collect()
}
