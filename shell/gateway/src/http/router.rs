//! What all endpoints share: authentication of callers and the host check.

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
    AllowedHosts, ClaimedName, Identities, Principal, TlsSubject, metadata_url, protected_resource,
};
use crate::listener::{ConnectionSlot, HttpHandler};
use crate::metrics::CallStage;

/// What the endpoints need.
#[derive(Clone, Debug)]
pub struct HttpFrontend {
    /// The gateway.
    pub gateway: Gateway,
    /// Authenticates callers.
    pub identities: Arc<ArcSwap<Identities>>,
    /// The host names of the gateway.
    pub allowed_hosts: Arc<ArcSwap<AllowedHosts>>,
    /// Signals that the identities changed.
    pub(super) authenticator_changed: Arc<watch::Sender<()>>,
    /// Sessions of the older transport.
    pub(super) legacy_sessions: Arc<legacy::LegacySessions>,
}

/// Everything a gateway serves over HTTP. Most requests are messages at one path, which need no router.
#[derive(Clone, Debug)]
pub struct HttpService {
    /// Serves messages.
    pub frontend: HttpFrontend,
    /// Serves all other paths.
    pub router: Router,
}

impl HttpHandler for HttpService {
    async fn answer(&self, request: Request) -> Response {
        if request.uri().path() == MCP_PATH {
            return mcp::endpoint(State(self.frontend.clone()), request).await;
        }
        self.router.answer(request).await
    }
}

/// The path of the MCP endpoint.
pub(super) const MCP_PATH: &str = "/mcp";

impl HttpFrontend {
    /// The endpoints of a gateway.
    #[must_use]
    pub fn new(gateway: Gateway, identities: Identities, allowed_hosts: AllowedHosts) -> Self {
        Self {
            gateway,
            identities: Arc::new(ArcSwap::from_pointee(identities)),
            allowed_hosts: Arc::new(ArcSwap::from_pointee(allowed_hosts)),
            authenticator_changed: Arc::new(watch::Sender::new(())),
            legacy_sessions: Arc::default(),
        }
    }

    /// Authenticates the caller of a request and checks the host name it used.
    ///
    /// # Errors
    /// The complete response for a caller that is refused.
    pub async fn authenticate(
        &self,
        request: &axum::http::request::Parts,
    ) -> Result<Principal, Response> {
        let headers = &request.headers;
        let allowed_hosts = self.allowed_hosts.load_full();
        allowed_hosts
            .check(headers)
            .map_err(|refused| refused.response())?;
        let subject = request.extensions.get::<TlsSubject>();
        let identities = self.identities.load_full();
        let began = self.gateway.now();
        let identified = identities.identify(headers, subject).await;
        let took = self.gateway.now().saturating_sub(began);
        self.gateway.count_stage(CallStage::Identify, took);
        if let (Ok(known), Some(seat)) =
            (&identified, request.extensions.get::<Arc<ConnectionSlot>>())
            && !seat.authenticate(&known.name)
        {
            return Err(too_many_connections());
        }
        identified.map_err(|refused| {
            if let Some(ClaimedName { principal, source }) = refused.claimed_name() {
                self.gateway.guard().record_name_conflict(principal, source);
            }
            let settings = self.gateway.settings();
            let has_issuers = !settings.identity.jwt.is_empty();
            let base = allowed_hosts.base_url(headers);
            let metadata = has_issuers.then(|| metadata_url(&base, MCP_PATH));
            refused.response(metadata.as_deref())
        })
    }
}

/// The response if a principal has too many connections.
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
pub fn router(frontend: HttpFrontend) -> Router {
    Router::new()
        .route(MCP_PATH, any(mcp::endpoint))
        .route("/mcp/g/{groups}", any(mcp::endpoint_with_groups))
        .route("/sse", get(legacy::open_stream))
        .route("/messages", axum::routing::post(legacy::post_message))
        .route(
            "/.well-known/oauth-protected-resource",
            get(resource_metadata),
        )
        .route(
            "/.well-known/oauth-protected-resource/mcp",
            get(resource_metadata),
        )
        .with_state(frontend)
}

async fn resource_metadata(
    State(frontend): State<HttpFrontend>,
    request: Request<Body>,
) -> Response {
    let headers = request.headers();
    let allowed_hosts = frontend.allowed_hosts.load_full();
    if let Err(refused) = allowed_hosts.check(headers) {
        return refused.response();
    }
    let settings = frontend.gateway.settings();
    let base = allowed_hosts.base_url(headers);
    match protected_resource(&settings.identity, &base, MCP_PATH) {
        Some(document) => json(StatusCode::OK, document.to_string()),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// A JSON response.
pub(crate) fn json(status: StatusCode, text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

/// The value of a header, if it is text.
pub(super) fn header_text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}
