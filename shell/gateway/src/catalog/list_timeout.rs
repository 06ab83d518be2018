//! How long list requests wait for a server.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::list_kind::ListKind;
use super::server_catalog::{GATEWAY_SCOPE, ServerCatalog, ServerToolList};
use super::server_list::{ListError, ServerList};
use super::server_view::{CatalogClient, HANDSHAKE_VARIANT, conversation_scope};
use crate::upstream::UpstreamError;

/// Whether a server responds in time.
#[derive(Debug, Default)]
pub(super) struct Responsiveness {
    /// It did not respond in time when a list last waited for it.
    is_slow: AtomicBool,
    /// A background request is in flight.
    is_background_request_running: AtomicBool,
}

/// The only background request; when it ends, however it ends, the next may follow.
struct BackgroundRequest(Arc<ServerCatalog>);

impl Drop for BackgroundRequest {
    fn drop(&mut self) {
        self.0
            .responsiveness
            .is_background_request_running
            .store(false, Ordering::Release);
    }
}

impl ServerCatalog {
    /// Whether the server was too slow for a list, and has not responded since.
    pub(crate) fn is_slow(&self) -> bool {
        self.responsiveness.is_slow.load(Ordering::Acquire)
    }

    /// Queries the server for a list, and waits as long as lists may wait. If the server was too slow before, queries
    /// it in the background, one request at a time, and returns `None` without waiting.
    pub(crate) fn with_list_timeout<T, F>(
        self: &Arc<Self>,
        query_future: F,
    ) -> impl Future<Output = Option<Result<T, ListError>>> + use<T, F>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, ListError>> + Send + 'static,
    {
        let was_slow = self.is_slow();
        let is_being_queried = was_slow
            && self
                .responsiveness
                .is_background_request_running
                .swap(true, Ordering::AcqRel);
        let query = (!is_being_queried).then(|| {
            let catalog = Arc::clone(self);
            tokio::spawn(async move {
                let in_background = was_slow.then(|| BackgroundRequest(Arc::clone(&catalog)));
                let outcome = query_future.await;
                // A server that fails quickly is not slow.
                let timeout = matches!(
                    &outcome,
                    Err(ListError::Upstream(UpstreamError::Timeout { .. }))
                );
                if !timeout {
                    catalog
                        .responsiveness
                        .is_slow
                        .store(false, Ordering::Release);
                }
                drop(in_background);
                outcome
            })
        });
        let catalog = Arc::clone(self);
        async move {
            let query = query.filter(|_| !was_slow)?;
            let limit = catalog.upstream.settings().timeouts.list;
            match tokio::time::timeout(limit, query).await {
                Ok(outcome) => outcome.ok(),
                Err(_elapsed) => {
                    catalog
                        .responsiveness
                        .is_slow
                        .store(true, Ordering::Release);
                    None
                }
            }
        }
    }

    /// The error for a server that was too slow for a list.
    pub(crate) fn silent(&self) -> ListError {
        let limit = self.upstream.settings().timeouts.list;
        ListError::CheckFailed {
            server: self.upstream.name().to_owned(),
            reason: format!("it did not answer within {limit:?}"),
        }
    }

    /// Whether the guard uses a list that was shown to a client, or to one with the same capabilities. A list that
    /// the guard does not use yet is awaited.
    pub(crate) fn has_active_list(&self, client: CatalogClient<'_>) -> bool {
        let is_own = client.variant.capabilities.is_none();
        let own = client_scopes(client).filter(|sight| is_own || **sight != *GATEWAY_SCOPE);
        own.filter_map(|sight| self.cached_tools(&sight))
            .any(|list| list.is_active())
    }

    /// The tools as a client, or otherwise a similar client, saw them last.
    pub(crate) fn last_tools_for(&self, client: CatalogClient<'_>) -> Option<Arc<ServerToolList>> {
        let seen = client_scopes(client).filter_map(|sight| self.cached_tools(&sight));
        seen.into_iter().find(|list| list.is_active())
    }

    /// Another list as a client, or otherwise a similar client, saw it last.
    pub(crate) fn last_feature_list_for(
        &self,
        kind: ListKind,
        client: CatalogClient<'_>,
    ) -> Option<Arc<ServerList>> {
        client_scopes(client).find_map(|sight| self.cached_feature_list(kind, &sight))
    }
}

/// The views in which a client may have seen lists, the nearest first.
fn client_scopes(client: CatalogClient<'_>) -> impl Iterator<Item = Box<str>> {
    let variant = client.variant.capabilities.as_deref();
    let variants = [
        Some(&*client.variant.handshake),
        variant,
        Some(HANDSHAKE_VARIANT),
        Some(GATEWAY_SCOPE),
    ];
    let variants = variants.into_iter().flatten().map(Box::from);
    [conversation_scope(client.conversation)]
        .into_iter()
        .chain(variants)
}
