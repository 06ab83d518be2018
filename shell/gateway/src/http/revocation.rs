//! What ends when a credential is no longer accepted: sessions that it opened, and streams.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use http_body::Frame;
use tokio::sync::watch;
use tokio::time::sleep;

use super::front::Front;
use crate::identity::{Identities, Principal};

/// Marks an answer that stays open without an end of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing;

impl Front {
    /// Takes over who callers are. Sessions and streams of credentials that are no longer accepted end.
    pub(crate) fn take_over_identities(&self, identities: Identities) {
        self.identities.store(Arc::new(identities));
        let identities = self.identities.load_full();
        for conversation in self.gateway.conversations().all() {
            let opened_by = conversation.opened_by.get();
            if opened_by.is_some_and(|it| !identities.still_accepts(it)) {
                self.gateway.close_conversation(&conversation.id);
            }
        }
        self.identities_changed.send_replace(());
    }

    /// The answer to a caller; where it is a stream, it ends when the caller's credential is no longer
    /// accepted. A stream without an end of its own also ends when the credential expires.
    pub(super) fn while_accepted(&self, principal: &Principal, response: Response) -> Response {
        let kind = response.headers().get(CONTENT_TYPE);
        if kind.is_none_or(|it| it != "text/event-stream") {
            return response;
        }
        let expires = response.extensions().get::<Standing>().is_some();
        let revoked = revoked(
            Arc::clone(&self.identities),
            self.identities_changed.subscribe(),
            principal.clone(),
            expires,
        );
        let revoked = Box::pin(revoked);
        response.map(|inner| Body::new(WhileAccepted { inner, revoked }))
    }
}

/// Resolves when a credential is no longer accepted.
async fn revoked(
    identities: Arc<ArcSwap<Identities>>,
    mut changed: watch::Receiver<()>,
    principal: Principal,
    expires: bool,
) {
    let left = || principal.accepted.expires_in().filter(|_| expires);
    loop {
        if !identities.load().still_accepts(&principal) || left().is_some_and(|it| it.is_zero()) {
            return;
        }
        let expiry = async {
            match left() {
                Some(left) => sleep(left.max(Duration::from_secs(1))).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = expiry => {}
            changed = changed.changed() => if changed.is_err() {
                // The endpoints are gone, and with them what could change.
                std::future::pending::<()>().await;
            },
        }
    }
}

/// A body that ends early when a credential is no longer accepted.
struct WhileAccepted {
    inner: Body,
    revoked: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl http_body::Body for WhileAccepted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.revoked.as_mut().poll(context).is_ready() {
            // The task that fills the body notices that it is gone.
            self.inner = Body::empty();
            self.revoked = Box::pin(std::future::pending());
            return Poll::Ready(None);
        }
        Pin::new(&mut self.inner).poll_frame(context)
    }
}
