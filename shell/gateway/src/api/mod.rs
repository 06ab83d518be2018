//! The REST API under `/api/v1`, and `/metrics`.
//!
//! One table (`routes`) defines the endpoints, who may call them and which parameters they take. The router, the
//! parameter checks and the OpenAPI document are generated from it, so that they cannot differ.

mod alerts;
mod approve;
mod audit;
mod baselines;
mod decide;
mod error;
mod explain;
mod field;
mod openapi;
mod page;
mod pending_calls;
mod ready;
mod request;
mod request_params;
mod response;
mod route;
mod routes;
mod schemas;
mod serve;
mod server_tools;
mod servers;
mod service;
mod sessions;
mod tools;
mod workflow;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::{any, on};
use serde_json::Value;
use tokio::sync::Semaphore;
use toolwarden_notify::Notifier;

use crate::http::HttpFrontend;
use error::ApiError;
use pending_calls::PendingCalls;
use ready::StoreProbe;
use routes::ROUTES;

pub use openapi::document as openapi_document;

/// How long a caller has to report the outcome of a call that it was allowed.
pub const COMPLETE_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// What the API needs in addition to the gateway.
#[derive(Clone)]
pub struct ApiParts {
    /// Delivers alerts.
    pub notifier: Notifier,
    /// The settings in force with secrets masked.
    pub masked_settings: Arc<Mutex<Value>>,
    /// How long a caller has to report the outcome of a call that `/decide` allowed.
    pub complete_timeout: Duration,
}

impl fmt::Debug for ApiParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiParts")
            .field("call_patience", &self.complete_timeout)
            .finish_non_exhaustive()
    }
}

/// State that all endpoints of the API share.
#[derive(Debug)]
struct Api {
    frontend: HttpFrontend,
    notifier: Notifier,
    masked_settings: Arc<Mutex<Value>>,
    pending_calls: Arc<PendingCalls>,
    store_probe: StoreProbe,
    started: Instant,
    /// Allows only one verification of the log at a time: each reads all of it.
    verify_slot: Arc<Semaphore>,
}

impl Api {
    fn masked_settings(&self) -> Value {
        let masked = self.masked_settings.lock();
        masked.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// All endpoints of the API. Needs a tokio runtime, in which calls without a reported outcome expire.
pub fn router(frontend: HttpFrontend, parts: ApiParts) -> Router {
    let ApiParts {
        notifier,
        masked_settings: masked,
        complete_timeout: call_patience,
    } = parts;
    let pending = Arc::new(PendingCalls::new(call_patience));
    pending_calls::spawn_expiry(&pending);
    let api = Arc::new(Api {
        frontend,
        notifier,
        masked_settings: masked,
        pending_calls: pending,
        store_probe: StoreProbe::default(),
        started: Instant::now(),
        verify_slot: Arc::new(Semaphore::new(1)),
    });
    let mut router = Router::new();
    for route in ROUTES {
        let api = Arc::clone(&api);
        let handler = move |request| serve::serve(route, Arc::clone(&api), request);
        router = router.route(route.path, on(route.method.filter(), handler));
    }
    router
        .method_not_allowed_fallback(async || ApiError::method_not_allowed().response())
        .route("/api/v1/{*rest}", any(serve::unknown_endpoint))
        .route("/api/v1", any(serve::unknown_endpoint))
}
