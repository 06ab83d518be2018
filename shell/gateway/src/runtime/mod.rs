//! A running gateway: start, background tasks, reload without downtime, and graceful shutdown.

mod background;
mod error;
mod health_alerts;
mod misuse_alerts;
mod reload;
mod start;
mod store_quota_alerts;
mod validate;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use toolwarden_live_guard::LoadedPolicy;
use toolwarden_notify::Notifier;
use toolwarden_settings::{PolicySource, Settings};

use crate::api::{ApiParts, COMPLETE_TIMEOUT};
use crate::gateway::Gateway;
use crate::http::{HttpFrontend, HttpService};
use crate::listener::{HttpListener, ServeSummary, ServerCertificates, Shutdown};

pub use error::{ReloadError, StartError};
pub use start::SingleAgentGateway;
pub use validate::{MistakePlace, StartMistake, validate};

/// How long cancelled calls have to record their outcome and to send their error.
const ABORT_GRACE: Duration = Duration::from_secs(2);

/// A running gateway.
#[derive(Debug)]
pub struct RunningGateway {
    /// The gateway.
    pub gateway: Gateway,
    /// Its endpoints.
    pub frontend: HttpFrontend,
    /// Delivers alerts.
    pub notifier: Notifier,
    /// The settings in force with secrets masked.
    pub(crate) masked_settings: Arc<Mutex<Value>>,
    shutdown: Shutdown,
    listener: Mutex<Option<HttpListener>>,
    certificates: Option<ServerCertificates>,
    address: SocketAddr,
}

impl RunningGateway {
    /// The address at which agents reach it.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Everything it serves over HTTP.
    pub fn router(&self) -> axum::Router {
        let parts = ApiParts {
            notifier: self.notifier.clone(),
            masked_settings: Arc::clone(&self.masked_settings),
            complete_timeout: COMPLETE_TIMEOUT,
        };
        crate::http::router(self.frontend.clone())
            .merge(crate::api::router(self.frontend.clone(), parts))
    }

    /// The signal that begins its shutdown.
    #[must_use]
    pub fn shutdown(&self) -> Shutdown {
        self.shutdown.clone()
    }

    /// Serves until the shutdown begins, then lets calls in flight finish.
    pub async fn serve(&self, router: axum::Router) -> ServeSummary {
        let listener = self.listener.lock();
        let listener = listener.unwrap_or_else(PoisonError::into_inner).take();
        let Some(listener) = listener else {
            return ServeSummary {
                aborted_connections: 0,
            };
        };
        let gateway = self.gateway.clone();
        let shutdown = self.shutdown.clone();
        let ending = tokio::spawn(async move {
            shutdown.begun().await;
            gateway.end();
            tokio::time::sleep(gateway.settings().drain).await;
            gateway.abort_calls();
        });
        let endpoints = HttpService {
            frontend: self.frontend.clone(),
            router,
        };
        let served = listener
            .serve(endpoints, self.shutdown.clone(), || {
                self.gateway.settings().drain + ABORT_GRACE
            })
            .await;
        ending.abort();
        self.close().await;
        served
    }

    /// Stops the servers, stores what the watch learned, and delivers pending alerts.
    pub async fn close(&self) {
        self.gateway.end();
        for upstream in self.gateway.upstreams() {
            upstream.close().await;
        }
        // What cannot be stored now was counted; there is no one left to report it to.
        drop(self.gateway.watch().flush().await);
        self.notifier.close(self.gateway.settings().drain).await;
    }
}

/// Loads the guard's policy that the settings name.
///
/// # Errors
/// The policy cannot be used.
pub fn load_policy(
    settings: &Settings,
    path: &std::path::Path,
) -> Result<LoadedPolicy, toolwarden_live_guard::PolicyFileError> {
    match &settings.policy {
        PolicySource::Open => LoadedPolicy::open(),
        PolicySource::File(file) => LoadedPolicy::read(file),
        PolicySource::Inline(text) => {
            let folder = path.parent().map_or_else(PathBuf::new, PathBuf::from);
            LoadedPolicy::of_text(text.as_bytes(), path, &folder)
        }
    }
}
