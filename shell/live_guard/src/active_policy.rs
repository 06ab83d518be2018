//! The effective policy: the policy file, the tools and servers learned at run time, and permissions changed since.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use toolwarden_guard::{DiscoveredTools, Guard, PermissionChange, ToolPolicy};

use super::availability_cache::AvailabilityCache;
use super::entry_policy::EntryPolicy;

/// The maximum number of role sets with a cached guard; beyond it the cache is cleared.
const MAX_ROLE_SETS: usize = 256;

/// The effective policy.
#[derive(Debug)]
pub(super) struct ActivePolicy {
    pub(super) guard: Guard,
    pub(super) entry_policy: Arc<EntryPolicy>,
    pub(super) availability_cache: AvailabilityCache,
    pub(super) role_policies: RolePolicyCache,
}

/// The parts that make up the effective policy.
#[derive(Debug)]
pub(super) struct PolicyParts {
    /// The policy, and tools registered at run time.
    pub(super) policy: Guard,
    /// The tools learned from servers, which survive a change of the policy.
    pub(super) discovered: DiscoveredTools,
    /// The servers, with the rules for their features that the policy does not name.
    pub(super) servers: BTreeMap<Arc<str>, Arc<ToolPolicy>>,
    /// Permissions changed at run time, which survive a change of the policy.
    pub(super) permission_changes: Vec<(Arc<str>, PermissionChange)>,
}

impl PolicyParts {
    pub(super) fn build(&self) -> ActivePolicy {
        let whole = self.policy.with_discovered(&self.discovered);
        let whole = whole.with_servers(&self.servers);
        let guard = whole.with_permission_changes(
            self.permission_changes
                .iter()
                .map(|(name, it)| (&**name, it)),
        );
        ActivePolicy::new(guard, EntryPolicy::new(whole))
    }
}

/// The effective policy for callers with roles, by set of roles.
#[derive(Debug, Default)]
pub(super) struct RolePolicyCache(Mutex<Vec<RolePolicy>>);

/// The effective policy, compiled for a set of roles.
#[derive(Debug)]
struct RolePolicy {
    roles: Arc<[Box<str>]>,
    current: Arc<ActivePolicy>,
}

impl ActivePolicy {
    pub(super) fn new(guard: Guard, entry_policy: Arc<EntryPolicy>) -> Self {
        Self {
            guard,
            entry_policy,
            availability_cache: AvailabilityCache::default(),
            role_policies: RolePolicyCache::default(),
        }
    }

    /// The policy for callers whose credential gives them these roles.
    pub(super) fn with_roles(&self, roles: &Arc<[Box<str>]>) -> Arc<Self> {
        // The list is changed atomically, so it is consistent after a panic.
        let mut known = self
            .role_policies
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(ready) = known.iter().find(|it| it.roles == *roles) {
            return Arc::clone(&ready.current);
        }
        let guard = self.guard.with_roles(roles.iter().map(|role| &**role));
        let made = Arc::new(Self::new(guard, Arc::clone(&self.entry_policy)));
        if known.len() >= MAX_ROLE_SETS {
            known.clear();
        }
        known.push(RolePolicy {
            roles: Arc::clone(roles),
            current: Arc::clone(&made),
        });
        made
    }
}
