//! Callers whose roles come from their credential instead of the policy.

use std::sync::Arc;

use super::profile::Profile;
use super::{Guard, NameMap, PrincipalTable};

impl Guard {
    /// Whether the policy has a role of this name.
    #[must_use]
    pub fn has_role(&self, name: &str) -> bool {
        self.principals.roles.contains_key(name)
    }

    /// A copy of this guard for a caller with these roles. Principals that the policy does not name get the
    /// grants of the roles instead of those of `*`; principals that it names keep their own entry. Roles
    /// that the policy does not define grant nothing.
    #[must_use]
    pub fn with_roles<'r>(&self, roles: impl IntoIterator<Item = &'r str>) -> Self {
        let known = &self.principals.roles;
        let profiles = roles.into_iter().filter_map(|role| known.get(role));
        let Some(together) = Profile::union(profiles.map(|profile| &**profile)) else {
            return self.clone();
        };
        let amended = self.amended.iter().map(|(name, profile)| {
            let named = self.principals.by_name.contains_key(name);
            let kept = match named {
                true => Arc::clone(profile),
                false => Arc::new(together.with_permission_changes_of(profile)),
            };
            (Arc::clone(name), kept)
        });
        let amended: NameMap<Arc<str>, Arc<Profile>> = amended.collect();
        let principals = PrincipalTable {
            anyone: Arc::new(together),
            ..PrincipalTable::clone(&self.principals)
        };
        Self {
            principals: Arc::new(principals),
            amended: Arc::new(amended),
            ..self.clone()
        }
    }
}
