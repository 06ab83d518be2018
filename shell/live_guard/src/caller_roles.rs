//! Callers whose roles come from their credential.

use std::sync::{Arc, Mutex, PoisonError};

use super::live_guard::{ActivePolicy, Call, GuardState, LiveGuard};

/// The maximum number of role sets with a cached guard; beyond it the cache is cleared.
const MAX_ROLE_SETS: usize = 256;

/// The claims of a caller's credential, besides its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CallerClaims {
    /// The issuer of its token, which vouches for the name.
    pub issuer: Option<Arc<str>>,
    /// The roles of the policy that its token gives it, sorted. If there are none, the policy alone decides
    /// what the caller may do.
    pub roles: Arc<[Box<str>]>,
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

impl LiveGuard {
    /// Whether the effective policy has a role of this name.
    #[must_use]
    pub fn has_role(&self, name: &str) -> bool {
        self.shared.current().guard.has_role(name)
    }
}

impl GuardState {
    /// The effective policy for the caller of a call.
    pub(super) fn policy_for_call(&self, call: &Call<'_>) -> Arc<ActivePolicy> {
        self.policy_for_claims(call.claims)
    }

    /// The effective policy for a caller with these claims.
    pub(super) fn policy_for_claims(&self, claims: Option<&CallerClaims>) -> Arc<ActivePolicy> {
        let current = self.current();
        match claims {
            Some(claims) if !claims.roles.is_empty() => current.with_roles(&claims.roles),
            _ => current,
        }
    }
}

impl ActivePolicy {
    fn with_roles(&self, roles: &Arc<[Box<str>]>) -> Arc<Self> {
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
