//! Ends sessions and streams whose credential is no longer accepted.

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

use super::router::HttpFrontend;
use crate::identity::{Identities, Principal};

/// Marks a response that stays open indefinitely.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenEndedStream;

impl HttpFrontend {
    /// Replaces the identities. Sessions and streams of credentials that are no longer accepted end.
    pub(crate) fn replace_authenticator(&self, identities: Identities) {
        self.identities.store(Arc::new(identities));
        let identities = self.identities.load_full();
        for conversation in self.gateway.conversations().all() {
            let opened_by = conversation.opened_by.get();
            if opened_by.is_some_and(|it| !identities.still_accepts(it)) {
                self.gateway.close_conversation(&conversation.id);
            }
        }
        self.authenticator_changed.send_replace(());
    }

    /// The response to a caller. If it is a stream, it ends when the caller's credential is no longer accepted. A
    /// stream that stays open indefinitely also ends when the credential expires.
    pub(super) fn end_on_revocation(&self, principal: &Principal, response: Response) -> Response {
        let kind = response.headers().get(CONTENT_TYPE);
        if kind.is_none_or(|it| it != "text/event-stream") {
            return response;
        }
        let expires = response.extensions().get::<OpenEndedStream>().is_some();
        let revoked = wait_for_revocation(
            Arc::clone(&self.identities),
            self.authenticator_changed.subscribe(),
            principal.clone(),
            expires,
        );
        let revoked = Box::pin(revoked);
        response.map(|inner| {
            Body::new(RevocableBody {
                inner,
                revocation: revoked,
            })
        })
    }
}

/// Resolves when a credential is no longer accepted.
async fn wait_for_revocation(
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
                // The endpoints are gone, so nothing can change any more.
                std::future::pending::<()>().await;
            },
        }
    }
}

/// A body that ends early when a credential is no longer accepted.
struct RevocableBody {
    inner: Body,
    revocation: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl http_body::Body for RevocableBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.revocation.as_mut().poll(context).is_ready() {
            // The task that fills the body notices that it is gone.
            self.inner = Body::empty();
            self.revocation = Box::pin(std::future::pending());
            return Poll::Ready(None);
        }
        Pin::new(&mut self.inner).poll_frame(context)
    }
}
