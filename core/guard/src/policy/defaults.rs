//! The groups and the state that a session starts with if its client names none.

use std::collections::BTreeSet;

use toolwarden_model::{GroupName, StateName};

use super::{DEFAULT_GROUP, EVERY, Grants, Policy, group_and_parents};

impl Policy {
    /// The `default_groups` of a principal or role: its own, else those of all its roles together.
    pub(crate) fn default_groups(&self, grants: &Grants) -> Option<Vec<GroupName>> {
        self.default_groups_within(grants, &mut BTreeSet::new())
    }

    fn default_groups_within<'p>(
        &'p self,
        grants: &'p Grants,
        seen: &mut BTreeSet<&'p str>,
    ) -> Option<Vec<GroupName>> {
        if let Some(own) = &grants.default_groups {
            return Some(own.clone());
        }
        let mut groups: Option<Vec<GroupName>> = None;
        for (name, role) in self.roles_of(grants) {
            if !seen.insert(name) {
                continue;
            }
            for group in self.default_groups_within(role, seen).into_iter().flatten() {
                let groups = groups.get_or_insert_default();
                if !groups.contains(&group) {
                    groups.push(group);
                }
            }
        }
        groups
    }

    /// The `initial_state` of a principal or role: its own, else that of its first role that has one.
    pub(crate) fn initial_state(&self, grants: &Grants) -> Option<StateName> {
        self.initial_state_within(grants, &mut BTreeSet::new())
    }

    fn initial_state_within<'p>(
        &'p self,
        grants: &'p Grants,
        seen: &mut BTreeSet<&'p str>,
    ) -> Option<StateName> {
        if let Some(own) = &grants.initial_state {
            return Some(own.clone());
        }
        for (name, role) in self.roles_of(grants) {
            if seen.insert(name)
                && let Some(state) = self.initial_state_within(role, seen)
            {
                return Some(state);
            }
        }
        None
    }

    /// Whether a principal or role is granted a group, directly or through its roles.
    pub(super) fn grants_group(&self, grants: &Grants, group: &GroupName) -> bool {
        let mut pending = vec![grants];
        let mut seen = BTreeSet::new();
        let mut says_groups = false;
        while let Some(grants) = pending.pop() {
            says_groups |= grants.groups.is_some();
            let mut granted = grants.groups.iter().flatten();
            if granted.any(|it| {
                *it == EVERY || group_and_parents(group.as_str()).any(|name| *it == *name)
            }) {
                return true;
            }
            for (name, role) in self.roles_of(grants) {
                if seen.insert(name) {
                    pending.push(role);
                }
            }
        }
        !says_groups && group_and_parents(group.as_str()).any(|name| DEFAULT_GROUP == *name)
    }

    /// Every initial state that the policy sets for a principal or role.
    pub(crate) fn own_initial_states(&self) -> BTreeSet<&StateName> {
        let principals = self.principals.values().map(|it| &it.grants);
        let all = principals.chain(self.roles.values()).chain([&self.anyone]);
        all.filter_map(|grants| grants.initial_state.as_ref())
            .collect()
    }

    fn roles_of<'p>(&'p self, grants: &'p Grants) -> impl Iterator<Item = (&'p str, &'p Grants)> {
        let roles = grants.roles.iter();
        roles.filter_map(|name| Some((name.as_str(), self.roles.get(name)?)))
    }
}
