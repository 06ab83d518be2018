//! What every endpoint shares: who asks, and by which name of the gateway.

use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get};
use tokio::sync::watch;

use super::{legacy, mcp};
use crate::gateway::Gateway;
use crate::identity::{
    Claimed, Identities, Principal, Site, TlsSubject, metadata_url, protected_resource,
};
use crate::listener::{Answers, Seat};
use crate::metrics::Stage;

/// What the endpoints need.
#[derive(Clone, Debug)]
pub struct Front {
    /// The gateway.
    pub gateway: Gateway,
    /// Who callers are.
    pub identities: Arc<ArcSwap<Identities>>,
    /// By which names the gateway is reached.
    pub site: Arc<ArcSwap<Site>>,
    /// Says that the identities are others.
    pub(super) identities_changed: Arc<watch::Sender<()>>,
    /// Sessions of the older transport.
    pub(super) legacy: Arc<legacy::Sessions>,
}

/// Everything a gateway answers over HTTP. Most of it are messages at one path, which need no router.
#[derive(Clone, Debug)]
pub struct Endpoints {
    /// Answers messages.
    pub front: Front,
    /// Answers all else.
    pub others: Router,
}

impl Answers for Endpoints {
    async fn answer(&self, request: Request) -> Response {
        if request.uri().path() == MCP_PATH {
            return mcp::endpoint(State(self.front.clone()), request).await;
        }
        self.others.answer(request).await
    }
}

/// Where agents speak MCP.
pub(super) const MCP_PATH: &str = "/mcp";

impl Front {
    /// Puts endpoints before a gateway.
    #[must_use]
    pub fn new(gateway: Gateway, identities: Identities, site: Site) -> Self {
        Self {
            gateway,
            identities: Arc::new(ArcSwap::from_pointee(identities)),
            site: Arc::new(ArcSwap::from_pointee(site)),
            identities_changed: Arc::new(watch::Sender::new(())),
            legacy: Arc::default(),
        }
    }

    /// Who sent a request, by a name of the gateway.
    ///
    /// # Errors
    /// The whole answer to somebody who is refused.
    pub async fn admit(&self, request: &axum::http::request::Parts) -> Result<Principal, Response> {
        let headers = &request.headers;
        let site = self.site.load_full();
        site.check(headers).map_err(|refused| refused.response())?;
        let subject = request.extensions.get::<TlsSubject>();
        let identities = self.identities.load_full();
        let began = self.gateway.now();
        let identified = identities.identify(headers, subject).await;
        let took = self.gateway.now().saturating_sub(began);
        self.gateway.count_stage(Stage::Identify, took);
        if let (Ok(known), Some(seat)) = (&identified, request.extensions.get::<Arc<Seat>>())
            && !seat.authenticate(&known.name)
        {
            return Err(too_many_connections());
        }
        identified.map_err(|refused| {
            if let Some(Claimed { principal, source }) = refused.claimed() {
                self.gateway.guard().note_taken_name(principal, source);
            }
            let settings = self.gateway.settings();
            let has_issuers = !settings.identity.jwt.is_empty();
            let base = site.base_url(headers);
            let metadata = has_issuers.then(|| metadata_url(&base, MCP_PATH));
            refused.response(metadata.as_deref())
        })
    }
}

/// The answer over one connection too many of a principal.
fn too_many_connections() -> Response {
    let text = "you have too many connections to this gateway (`listen.limits.per_principal`); close some, or use \
                those you have";
    let error = serde_json::json!({"jsonrpc": "2.0", "error": {"code": -32_000, "message": text}});
    let mut response = json(StatusCode::SERVICE_UNAVAILABLE, error.to_string());
    let headers = response.headers_mut();
    headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// All endpoints of MCP.
pub fn router(front: Front) -> Router {
    Router::new()
        .route(MCP_PATH, any(mcp::endpoint))
        .route("/mcp/g/{groups}", any(mcp::endpoint_with_groups))
        .route("/sse", get(legacy::open))
        .route("/messages", axum::routing::post(legacy::take))
        .route("/.well-known/oauth-protected-resource", get(metadata))
        .route("/.well-known/oauth-protected-resource/mcp", get(metadata))
        .with_state(front)
}

async fn metadata(State(front): State<Front>, request: Request<Body>) -> Response {
    let headers = request.headers();
    let site = front.site.load_full();
    if let Err(refused) = site.check(headers) {
        return refused.response();
    }
    let settings = front.gateway.settings();
    let base = site.base_url(headers);
    match protected_resource(&settings.identity, &base, MCP_PATH) {
        Some(document) => json(StatusCode::OK, document.to_string()),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// An answer in JSON.
pub(crate) fn json(status: StatusCode, text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

/// A header that is text.
pub(super) fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}
