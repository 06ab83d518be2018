use std::sync::Arc;

use toolwarden_model::{GroupName, StateName};

use super::groups::GroupTable;
use super::{GroupId, Guard, NameMap, PatternId, RequiredPermission, ToolId};
use crate::policy::{
    InvalidPermission, NamePattern, PatternTree, Permission, PermissionPattern, group_and_parents,
    is_group_name,
};

/// The grants of a principal, as numbers. Principals with equal grants share one profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Profile {
    /// Whether every group is granted.
    pub(super) every_group: bool,
    /// Sorted.
    pub(super) groups: Vec<GroupId>,
    pub(super) denies_every_group: bool,
    /// Sorted.
    pub(super) denied_groups: Vec<GroupId>,
    /// Sorted.
    pub(super) denied_tools: Vec<ToolId>,
    /// Names of features besides tools; sorted.
    pub(super) denied_features: Vec<NamePattern>,
    /// Sorted.
    pub(super) allowed: Vec<PatternId>,
    /// Sorted.
    pub(super) denied: Vec<PatternId>,
    /// Permissions granted and revoked at run time, the latest last: the last one that covers a permission
    /// decides.
    permission_changes: Vec<(PatternId, bool)>,
    /// The groups of a request that names none, if the policy sets them.
    pub(super) default_groups: Option<Vec<GroupName>>,
    /// The initial state of sessions, if the policy sets it.
    pub(super) initial_state: Option<StateName>,
}

/// Every permission pattern of a policy.
#[derive(Clone, Debug, Default)]
pub(super) struct PermissionPatterns {
    by_text: NameMap<String, PatternId>,
    tree: PatternTree,
}

impl Profile {
    /// Whether a group, known or unknown, may be requested: it or a parent group is granted, and none of
    /// them is denied.
    pub(super) fn grants_group(&self, groups: &GroupTable, name: &GroupName) -> bool {
        if self.denies_every_group || !is_group_name(name.as_str()) {
            return false;
        }
        let mut granted = self.every_group;
        for name in group_and_parents(name.as_str()) {
            let Some(id) = groups.id(name) else { continue };
            if self.denied_groups.binary_search(&id).is_ok() {
                return false;
            }
            granted |= self.groups.binary_search(&id).is_ok();
        }
        granted
    }

    /// Whether a deny rule names the tool or one of the groups that reach it.
    pub(super) fn denies_tool(&self, id: ToolId, reachable_by: &[GroupId]) -> bool {
        self.denies_every_group
            || self.denied_tools.binary_search(&id).is_ok()
            || (!self.denied_groups.is_empty()
                && reachable_by
                    .iter()
                    .any(|group| self.denied_groups.binary_search(group).is_ok()))
    }

    /// Whether a deny rule names one of these tools.
    pub(super) fn denies_any(&self, ids: &[ToolId]) -> bool {
        let denied = |id: &ToolId| self.denied_tools.binary_search(id).is_ok();
        ids.iter().any(denied)
    }

    pub(super) fn holds(&self, required: &RequiredPermission) -> bool {
        let any = |list: &[PatternId]| {
            required
                .covered_by
                .iter()
                .any(|pattern| list.binary_search(pattern).is_ok())
        };
        if !self.denied.is_empty() && any(&self.denied) {
            return false;
        }
        let amended = self.permission_changes.iter().rev();
        let mut amended = amended.filter(|(id, _)| required.covered_by.contains(id));
        match amended.next() {
            Some((_, given)) => *given,
            None => any(&self.allowed),
        }
    }

    /// Whether a deny rule covers a permission.
    pub(super) fn denies_permission(&self, required: &RequiredPermission) -> bool {
        let mut covering = required.covered_by.iter();
        covering.any(|pattern| self.denied.binary_search(pattern).is_ok())
    }

    /// The combined grants and denials of several roles; `None` if there are no roles.
    pub(super) fn union<'p>(profiles: impl IntoIterator<Item = &'p Self>) -> Option<Self> {
        let mut profiles = profiles.into_iter();
        let mut all = profiles.next()?.clone();
        for other in profiles {
            all.every_group |= other.every_group;
            all.groups.extend(&other.groups);
            all.denies_every_group |= other.denies_every_group;
            all.denied_groups.extend(&other.denied_groups);
            all.denied_tools.extend(&other.denied_tools);
            all.denied_features
                .extend(other.denied_features.iter().cloned());
            all.allowed.extend(&other.allowed);
            all.denied.extend(&other.denied);
            if let Some(more) = &other.default_groups {
                let groups = all.default_groups.get_or_insert_default();
                let fresh = more.iter().filter(|name| !groups.contains(name));
                let fresh: Vec<GroupName> = fresh.cloned().collect();
                groups.extend(fresh);
            }
            if all.initial_state.is_none() {
                all.initial_state.clone_from(&other.initial_state);
            }
        }
        all.sort();
        Some(all)
    }

    /// These grants, with the permissions that were granted and revoked at run time in another profile.
    pub(super) fn with_permission_changes_of(&self, other: &Self) -> Self {
        Self {
            permission_changes: other.permission_changes.clone(),
            ..self.clone()
        }
    }

    pub(super) fn sort(&mut self) {
        self.denied_features.sort_unstable();
        self.denied_features.dedup();
        for list in [
            &mut self.groups,
            &mut self.denied_groups,
            &mut self.denied_tools,
            &mut self.allowed,
            &mut self.denied,
        ] {
            list.sort_unstable();
            list.dedup();
        }
    }
}

impl PermissionPatterns {
    pub(super) fn intern(&mut self, pattern: &PermissionPattern) -> PatternId {
        if let Some(id) = self.by_text.get(pattern.as_str()) {
            return *id;
        }
        let id = PatternId::try_from(self.by_text.len()).unwrap_or(PatternId::MAX);
        self.by_text.insert(pattern.as_str().to_owned(), id);
        self.tree.insert(pattern.as_str(), id as usize);
        id
    }

    /// Every pattern that covers a permission, sorted.
    pub(super) fn covering(&self, permission: &Permission) -> Box<[PatternId]> {
        let covering = self.tree.covering(permission.as_str()).into_iter();
        let mut covering: Vec<PatternId> = covering.filter_map(|it| it.try_into().ok()).collect();
        covering.sort_unstable();
        covering.dedup();
        covering.into()
    }
}

/// A permission granted or revoked at run time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PermissionChange {
    /// The permission is granted.
    Grant(PermissionPattern),
    /// The permission is revoked, even if a granted pattern covers it.
    Revoke(PermissionPattern),
}

impl Guard {
    /// A copy of this guard with permissions changed, in the given order. Deny rules of the policy still
    /// win.
    #[must_use]
    pub fn with_permission_changes<'a>(
        &self,
        permission_changes: impl IntoIterator<Item = (&'a str, &'a PermissionChange)>,
    ) -> Self {
        let mut guard = self.clone();
        let mut patterns = PermissionPatterns::clone(&guard.patterns);
        let mut profiles: Vec<(Arc<str>, Profile)> = Vec::new();
        for (principal, amendment) in permission_changes {
            let at = profiles.iter().position(|(name, _)| &**name == principal);
            let at = at.unwrap_or_else(|| {
                profiles.push((principal.into(), Profile::clone(guard.profile(principal))));
                profiles.len() - 1
            });
            let Some((_, profile)) = profiles.get_mut(at) else {
                continue;
            };
            let (pattern, given) = match amendment {
                PermissionChange::Grant(pattern) => (pattern, true),
                PermissionChange::Revoke(pattern) => (pattern, false),
            };
            let id = patterns.intern(pattern);
            profile.permission_changes.retain(|(it, _)| *it != id);
            profile.permission_changes.push((id, given));
        }
        let grown = patterns.by_text.len() > guard.patterns.by_text.len();
        if grown {
            guard.tools = Arc::new(guard.tools.covered_by(&patterns));
            guard.features = Arc::new(guard.features.covered_by(&patterns));
            guard.patterns = Arc::new(patterns);
        }
        let mut amended = NameMap::clone(&guard.amended);
        for (name, profile) in profiles {
            amended.insert(name, Arc::new(profile));
        }
        guard.amended = Arc::new(amended);
        guard
    }
}

impl PermissionChange {
    /// The permission pattern.
    #[must_use]
    pub const fn pattern(&self) -> &PermissionPattern {
        match self {
            Self::Grant(pattern) | Self::Revoke(pattern) => pattern,
        }
    }

    /// A granted permission.
    ///
    /// # Errors
    /// The text is not a permission.
    pub fn grant(text: &str) -> Result<Self, InvalidPermission> {
        PermissionPattern::parse(text).map(Self::Grant)
    }

    /// A revoked permission.
    ///
    /// # Errors
    /// The text is not a permission.
    pub fn revoke(text: &str) -> Result<Self, InvalidPermission> {
        PermissionPattern::parse(text).map(Self::Revoke)
    }
}
