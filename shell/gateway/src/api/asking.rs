//! One request, with everything its answer needs.

use std::sync::Arc;

use serde_json::Value;
use toolwarden_guard::RequestedGroups;
use toolwarden_warden::guard::CallerClaims;

use super::Api;
use super::error::ApiError;
use super::given::Given;
use crate::gateway::Gateway;
use crate::identity::Principal;

/// One request whose sender is known, where that is asked for, and whose parameters are checked.
#[derive(Debug)]
pub(super) struct Asking {
    pub(super) api: Arc<Api>,
    /// None where everybody may ask.
    pub(super) principal: Option<Principal>,
    pub(super) given: Given,
}

impl Asking {
    pub(super) fn gateway(&self) -> &Gateway {
        &self.api.front.gateway
    }

    /// Who asks.
    pub(super) fn caller(&self) -> Result<&Principal, ApiError> {
        let unknown = || ApiError::internal("nobody knows who asks");
        self.principal.as_ref().ok_or_else(unknown)
    }

    /// Puts down in the log what the caller did as an administrator.
    pub(super) async fn did(&self, code: &'static str, detail: Value) -> Result<(), ApiError> {
        let by = &self.caller()?.name;
        let guard = self.gateway().guard();
        guard.administered(by, code, detail).await;
        Ok(())
    }

    pub(super) fn is_admin(&self) -> bool {
        self.principal.as_ref().is_some_and(|it| it.admin)
    }

    /// Whom it is about: others than the caller are a matter for administrators.
    pub(super) fn about(&self, what: &str) -> Result<Arc<str>, ApiError> {
        let caller = self.caller()?;
        match self.given.text("principal") {
            None => Ok(Arc::clone(&caller.name)),
            Some(named) if named == &*caller.name => Ok(Arc::clone(&caller.name)),
            Some(named) if caller.admin => Ok(named.into()),
            Some(_) => {
                self.gateway().guard().note_not_admin(&caller.name, what);
                Err(ApiError::admins_only(&format!("{what} for somebody else")))
            }
        }
    }

    /// What the caller's credential says of it, where the request is about the caller itself. Of others only the
    /// policy is known.
    pub(super) fn claims(&self, about: &str) -> Option<&CallerClaims> {
        let caller = self.principal.as_ref();
        let own = caller.filter(|caller| *caller.name == *about);
        own.and_then(|caller| caller.claims.as_deref())
    }

    /// The groups that are asked for.
    pub(super) fn groups(&self) -> Option<RequestedGroups> {
        let names = self.given.names("groups")?;
        Some(RequestedGroups::These(
            names.into_iter().map(Box::from).collect(),
        ))
    }
}
