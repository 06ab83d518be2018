//! How long lists wait for a server.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::client_view::{Client, HANDSHAKE, session_sight};
use super::kind::Kind;
use super::list::{List, ListError};
use super::shelf::{OWN, Shelf, ToolList};
use crate::upstream::UpstreamError;

/// Whether a server answers in time.
#[derive(Debug, Default)]
pub(super) struct Patience {
    /// It did not when it was last waited for.
    is_slow: AtomicBool,
    /// It is being asked while no agent waits for it.
    in_background: AtomicBool,
}

/// The one request in the background; the next may follow however it ends.
struct InBackground(Arc<Shelf>);

impl Drop for InBackground {
    fn drop(&mut self) {
        self.0
            .patience
            .in_background
            .store(false, Ordering::Release);
    }
}

impl Shelf {
    /// Whether the server kept a list waiting for too long, and has not answered since.
    pub(crate) fn is_slow(&self) -> bool {
        self.patience.is_slow.load(Ordering::Acquire)
    }

    /// Asks the server something for a list, and waits for the answer as long as lists may wait. A server
    /// that was too slow is asked in the background, once at a time, and not waited for: none then.
    pub(crate) fn wait_for<T, F>(
        self: &Arc<Self>,
        asking: F,
    ) -> impl Future<Output = Option<Result<T, ListError>>> + use<T, F>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, ListError>> + Send + 'static,
    {
        let was_slow = self.is_slow();
        let is_asked = was_slow && self.patience.in_background.swap(true, Ordering::AcqRel);
        let asked = (!is_asked).then(|| {
            let shelf = Arc::clone(self);
            tokio::spawn(async move {
                let in_background = was_slow.then(|| InBackground(Arc::clone(&shelf)));
                let outcome = asking.await;
                // A server that fails is not one that keeps waiting.
                let timeout = matches!(
                    &outcome,
                    Err(ListError::Upstream(UpstreamError::Timeout { .. }))
                );
                if !timeout {
                    shelf.patience.is_slow.store(false, Ordering::Release);
                }
                drop(in_background);
                outcome
            })
        });
        let shelf = Arc::clone(self);
        async move {
            let asked = asked.filter(|_| !was_slow)?;
            let limit = shelf.upstream.settings().timeouts.list;
            match tokio::time::timeout(limit, asked).await {
                Ok(outcome) => outcome.ok(),
                Err(_elapsed) => {
                    shelf.patience.is_slow.store(true, Ordering::Release);
                    None
                }
            }
        }
    }

    /// The error of a server that kept a list waiting.
    pub(crate) fn silent(&self) -> ListError {
        let limit = self.upstream.settings().timeouts.list;
        ListError::Unchecked {
            server: self.upstream.name().to_owned(),
            reason: format!("it did not answer within {limit:?}"),
        }
    }

    /// Whether the guard decides by a list that a client, or one with the same capabilities, was shown. A
    /// list that is not in force yet is waited for.
    pub(crate) fn has_seen(&self, client: Client<'_>) -> bool {
        let is_own = client.variant.capabilities.is_none();
        let own = sights(client).filter(|sight| is_own || **sight != *OWN);
        own.filter_map(|sight| self.tools_at(&sight))
            .any(|list| list.is_in_force())
    }

    /// The tools as a client, or else a client like it, saw them last.
    pub(crate) fn last_seen_by(&self, client: Client<'_>) -> Option<Arc<ToolList>> {
        let seen = sights(client).filter_map(|sight| self.tools_at(&sight));
        seen.into_iter().find(|list| list.is_in_force())
    }

    /// Another list as a client, or else a client like it, saw it last.
    pub(crate) fn last_other(&self, kind: Kind, client: Client<'_>) -> Option<Arc<List>> {
        sights(client).find_map(|sight| self.other_at(kind, &sight))
    }
}

/// Under which sights a client may have seen lists, the nearest first.
fn sights(client: Client<'_>) -> impl Iterator<Item = Box<str>> {
    let variant = client.variant.capabilities.as_deref();
    let variants = [
        Some(&*client.variant.handshake),
        variant,
        Some(HANDSHAKE),
        Some(OWN),
    ];
    let variants = variants.into_iter().flatten().map(Box::from);
    [session_sight(client.conversation)]
        .into_iter()
        .chain(variants)
}
