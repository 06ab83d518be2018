//! Callers whose roles come with their credential, not from the policy.

use std::sync::Arc;

use super::profile::Profile;
use super::{Guard, Names, Principals};

impl Guard {
    /// Whether the policy has a role of this name.
    #[must_use]
    pub fn has_role(&self, name: &str) -> bool {
        self.principals.roles.contains_key(name)
    }

    /// This guard for a caller with these roles. Principals that the policy does not name have the grants of
    /// the roles instead of those of `*`; principals that it names keep their own entry. Roles that the
    /// policy does not have grant nothing.
    #[must_use]
    pub fn with_roles<'r>(&self, roles: impl IntoIterator<Item = &'r str>) -> Self {
        let known = &self.principals.roles;
        let profiles = roles.into_iter().filter_map(|role| known.get(role));
        let Some(together) = Profile::together(profiles.map(|profile| &**profile)) else {
            return self.clone();
        };
        let amended = self.amended.iter().map(|(name, profile)| {
            let named = self.principals.by_name.contains_key(name);
            let kept = match named {
                true => Arc::clone(profile),
                false => Arc::new(together.amended_like(profile)),
            };
            (Arc::clone(name), kept)
        });
        let amended: Names<Arc<str>, Arc<Profile>> = amended.collect();
        let principals = Principals {
            anyone: Arc::new(together),
            ..Principals::clone(&self.principals)
        };
        Self {
            principals: Arc::new(principals),
            amended: Arc::new(amended),
            ..self.clone()
        }
    }
}
