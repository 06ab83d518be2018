//! A gateway that runs: opened, kept going, changed without a pause, and ended in order.

mod background;
mod error;
mod health;
mod misuse;
mod reload;
mod start;
mod store_quota;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use toolwarden_warden::guard::LoadedPolicy;
use toolwarden_warden::notify::Notifier;
use toolwarden_warden::settings::{PolicySource, Settings};

use crate::api::{ApiParts, CALL_PATIENCE};
use crate::gateway::Gateway;
use crate::http::{Endpoints, Front};
use crate::listener::{Certificates, Listener, Served, Shutdown};

pub use error::{ReloadError, StartError};
pub use start::Alone;

/// How long calls that are cut off have to record their outcome and to send their error.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// A gateway that runs.
#[derive(Debug)]
pub struct Running {
    /// The gateway.
    pub gateway: Gateway,
    /// Its endpoints.
    pub front: Front,
    /// Who tells people of alerts.
    pub notifier: Notifier,
    /// The settings in force with secrets masked.
    pub(crate) masked: Arc<Mutex<Value>>,
    shutdown: Shutdown,
    listener: Mutex<Option<Listener>>,
    certificates: Option<Certificates>,
    address: SocketAddr,
}

impl Running {
    /// Where agents reach it.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Everything it answers over HTTP.
    pub fn router(&self) -> axum::Router {
        let parts = ApiParts {
            notifier: self.notifier.clone(),
            masked: Arc::clone(&self.masked),
            call_patience: CALL_PATIENCE,
        };
        crate::http::router(self.front.clone()).merge(crate::api::router(self.front.clone(), parts))
    }

    /// What announces its end.
    #[must_use]
    pub fn shutdown(&self) -> Shutdown {
        self.shutdown.clone()
    }

    /// Serves until the end is announced, then lets calls under way end.
    pub async fn serve(&self, router: axum::Router) -> Served {
        let listener = self.listener.lock();
        let listener = listener.unwrap_or_else(PoisonError::into_inner).take();
        let Some(listener) = listener else {
            return Served { cut: 0 };
        };
        let gateway = self.gateway.clone();
        let shutdown = self.shutdown.clone();
        let ending = tokio::spawn(async move {
            shutdown.begun().await;
            gateway.end();
            tokio::time::sleep(gateway.settings().drain).await;
            gateway.cut_calls();
        });
        let endpoints = Endpoints {
            front: self.front.clone(),
            others: router,
        };
        let served = listener
            .serve(endpoints, self.shutdown.clone(), || {
                self.gateway.settings().drain + LAST_ANSWERS
            })
            .await;
        ending.abort();
        self.close().await;
        served
    }

    /// Ends servers, keeps what was learned, and delivers what is to be told.
    pub async fn close(&self) {
        self.gateway.end();
        for upstream in self.gateway.upstreams() {
            upstream.close().await;
        }
        // What cannot be kept now was counted; there is nobody left to tell.
        drop(self.gateway.watch().flush().await);
        self.notifier.close(self.gateway.settings().drain).await;
    }
}

/// The rules of the guard as the settings say.
///
/// # Errors
/// The policy cannot be used.
pub fn load_policy(
    settings: &Settings,
    path: &std::path::Path,
) -> Result<LoadedPolicy, toolwarden_warden::guard::PolicyFileError> {
    match &settings.policy {
        PolicySource::Open => LoadedPolicy::open(),
        PolicySource::File(file) => LoadedPolicy::read(file),
        PolicySource::Inline(text) => {
            let folder = path.parent().map_or_else(PathBuf::new, PathBuf::from);
            LoadedPolicy::of_text(text.as_bytes(), path, &folder)
        }
    }
}
