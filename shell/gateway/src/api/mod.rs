//! The REST API under `/api/v1`, and `/metrics`.
//!
//! One table (`routes`) says what there is, who may ask and what may be said. The router, the checks of
//! what callers send and the OpenAPI document are made of it, so that they cannot differ.

mod alerts;
mod answer;
mod approve;
mod asking;
mod audit;
mod baselines;
mod decide;
mod error;
mod explain;
mod field;
mod given;
mod looked;
mod openapi;
mod page;
mod pending;
mod ready;
mod route;
mod routes;
mod schemas;
mod serve;
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
use toolwarden_warden::notify::Notifier;

use crate::http::Front;
use error::ApiError;
use pending::Pending;
use ready::StoreProbe;
use routes::ROUTES;

pub use openapi::document as openapi_document;

/// How long whoever was allowed a call has to say how it ended.
pub const CALL_PATIENCE: Duration = Duration::from_secs(10 * 60);

/// What the API needs besides the gateway.
#[derive(Clone)]
pub struct ApiParts {
    /// Who tells people of alerts.
    pub notifier: Notifier,
    /// The settings in force with secrets masked.
    pub masked: Arc<Mutex<Value>>,
    /// How long whoever was allowed a call by `/decide` has to say how it ended.
    pub call_patience: Duration,
}

impl fmt::Debug for ApiParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiParts")
            .field("call_patience", &self.call_patience)
            .finish_non_exhaustive()
    }
}

/// What every endpoint of the API shares.
#[derive(Debug)]
struct Api {
    front: Front,
    notifier: Notifier,
    masked: Arc<Mutex<Value>>,
    pending: Arc<Pending>,
    store: StoreProbe,
    started: Instant,
    /// Only one verification of the log at a time: each reads all of it.
    verifying: Arc<Semaphore>,
}

impl Api {
    fn masked(&self) -> Value {
        let masked = self.masked.lock();
        masked.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// All endpoints of the API. Needs a tokio runtime, in which calls whose end nobody tells expire.
pub fn router(front: Front, parts: ApiParts) -> Router {
    let ApiParts {
        notifier,
        masked,
        call_patience,
    } = parts;
    let pending = Arc::new(Pending::new(call_patience));
    pending::expire_regularly(&pending);
    let api = Arc::new(Api {
        front,
        notifier,
        masked,
        pending,
        store: StoreProbe::default(),
        started: Instant::now(),
        verifying: Arc::new(Semaphore::new(1)),
    });
    let mut router = Router::new();
    for route in ROUTES {
        let api = Arc::clone(&api);
        let handler = move |request| serve::serve(route, Arc::clone(&api), request);
        router = router.route(route.path, on(route.method.filter(), handler));
    }
    router
        .method_not_allowed_fallback(async || ApiError::method_not_allowed().response())
        .route("/api/v1/{*rest}", any(serve::nowhere))
        .route("/api/v1", any(serve::nowhere))
}
