//! Callers whose roles come with their credential.

use std::sync::{Arc, Mutex, PoisonError};

use super::live::{Call, Current, LiveGuard, Shared};

/// The most sets of roles for which a guard is kept ready; then all are made again as they are needed.
const MOST: usize = 256;

/// What the credential of a caller says of it, beside its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CallerClaims {
    /// Who vouches for the name: the issuer of its token.
    pub issuer: Option<Arc<str>>,
    /// The roles of the policy that its token gives it, sorted. Where there are none, the policy alone says
    /// what the caller may do.
    pub roles: Arc<[Box<str>]>,
}

/// The policy in use as callers with roles have it, by set of roles.
#[derive(Debug, Default)]
pub(super) struct ByRoles(Mutex<Vec<Ready>>);

/// The policy in use, made ready for a set of roles.
#[derive(Debug)]
struct Ready {
    roles: Arc<[Box<str>]>,
    current: Arc<Current>,
}

impl LiveGuard {
    /// Whether the policy in use has a role of this name.
    #[must_use]
    pub fn has_role(&self, name: &str) -> bool {
        self.shared.current().guard.has_role(name)
    }
}

impl Shared {
    /// The policy in use, as the caller of a call has it.
    pub(super) fn current_for(&self, call: &Call<'_>) -> Arc<Current> {
        self.current_with(call.claims)
    }

    /// The policy in use, as it is for a caller with these claims.
    pub(super) fn current_with(&self, claims: Option<&CallerClaims>) -> Arc<Current> {
        let current = self.current();
        match claims {
            Some(claims) if !claims.roles.is_empty() => current.with_roles(&claims.roles),
            _ => current,
        }
    }
}

impl Current {
    fn with_roles(&self, roles: &Arc<[Box<str>]>) -> Arc<Self> {
        // A list that is changed in one step is whole after a panic.
        let mut known = self
            .by_roles
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(ready) = known.iter().find(|it| it.roles == *roles) {
            return Arc::clone(&ready.current);
        }
        let guard = self.guard.with_roles(roles.iter().map(|role| &**role));
        let made = Arc::new(Self::new(guard, Arc::clone(&self.under)));
        if known.len() >= MOST {
            known.clear();
        }
        known.push(Ready {
            roles: Arc::clone(roles),
            current: Arc::clone(&made),
        });
        made
    }
}
