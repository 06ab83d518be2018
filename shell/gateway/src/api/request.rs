//! One API request with its context.

use std::sync::Arc;

use serde_json::Value;
use toolwarden_guard::RequestedGroups;
use toolwarden_live_guard::CallerClaims;

use super::Api;
use super::error::ApiError;
use super::request_params::RequestParams;
use crate::gateway::Gateway;
use crate::identity::Principal;

/// One request: its caller is authenticated if the route requires it, and its parameters are checked.
#[derive(Debug)]
pub(super) struct ApiRequest {
    pub(super) api: Arc<Api>,
    /// `None` if the route is open to unauthenticated callers.
    pub(super) principal: Option<Principal>,
    pub(super) params: RequestParams,
}

impl ApiRequest {
    pub(super) fn gateway(&self) -> &Gateway {
        &self.api.frontend.gateway
    }

    /// The authenticated caller.
    pub(super) fn caller(&self) -> Result<&Principal, ApiError> {
        let unknown = || ApiError::internal("the caller is not authenticated");
        self.principal.as_ref().ok_or_else(unknown)
    }

    /// Records what the caller did as an administrator.
    pub(super) async fn record_action(
        &self,
        code: &'static str,
        detail: Value,
    ) -> Result<(), ApiError> {
        let by = &self.caller()?.name;
        let guard = self.gateway().guard();
        guard.record_administration(by, code, detail).await;
        Ok(())
    }

    pub(super) fn is_admin(&self) -> bool {
        self.principal.as_ref().is_some_and(|it| it.admin)
    }

    /// The principal the request is about; only administrators may name another principal than the caller.
    pub(super) fn subject(&self, what: &str) -> Result<Arc<str>, ApiError> {
        let caller = self.caller()?;
        match self.params.text("principal") {
            None => Ok(Arc::clone(&caller.name)),
            Some(named) if named == &*caller.name => Ok(Arc::clone(&caller.name)),
            Some(named) if caller.admin => Ok(named.into()),
            Some(_) => {
                self.gateway()
                    .guard()
                    .record_admin_refusal(&caller.name, what);
                Err(ApiError::admins_only(&format!("{what} for other callers")))
            }
        }
    }

    /// The claims of the caller's credential, if the request is about the caller itself. For other principals only
    /// the policy is known.
    pub(super) fn claims(&self, about: &str) -> Option<&CallerClaims> {
        let caller = self.principal.as_ref();
        let own = caller.filter(|caller| *caller.name == *about);
        own.and_then(|caller| caller.claims.as_deref())
    }

    /// The requested groups.
    pub(super) fn groups(&self) -> Option<RequestedGroups> {
        let names = self.params.names("groups")?;
        Some(names.into_iter().collect())
    }
}
