//! Readiness of the gateway.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use toolwarden_settings::StartMode;
use toolwarden_store::{Store, StoreError};

use super::request::ApiRequest;
use super::response::ApiResponse;
use super::route::HandlerResult;
use crate::gateway::Gateway;
use crate::upstream::UpstreamHealth;

/// How long a result of the store check is cached: unauthenticated callers must not keep the store busy.
const PROBE_MAX_AGE: Duration = Duration::from_secs(2);
/// How long the check waits for another writer.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// The cached result of the check that the store can be written.
#[derive(Debug, Default)]
pub(super) struct StoreProbe(Mutex<Option<(Instant, bool)>>);

/// How long the gateway waits for eager servers before it becomes ready without them.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(30);

/// `GET /ready`
///
/// Ready means that this gateway can serve: its store and its log can be written, the first attempt to reach
/// every eager server has finished, and it is not shutting down. A server that is down makes the gateway
/// degraded, not unready: the other servers still work.
pub(super) async fn ready(api_request: ApiRequest) -> HandlerResult {
    let gateway = api_request.gateway();
    let (mut reasons, mut degraded) = servers(gateway, api_request.api.started.elapsed());
    if let Some(usage) = gateway
        .guard()
        .log()
        .usage()
        .filter(|it| it.is_nearly_full())
    {
        let text = format!(
            "the store uses {} of its quota of {} bytes (`store_quota`)",
            usage.used, usage.quota
        );
        degraded.push(reason("store_quota", &text));
    }
    if gateway.is_shutting_down() {
        reasons.push(reason("ending", "the gateway is shutting down"));
    }
    let health = gateway.guard().log().health();
    if health.is_some_and(|it| it.failure.is_some()) {
        reasons.push(reason("audit", "audit records cannot be written"));
    }
    let store = gateway.settings().store.clone();
    if !api_request.api.store_probe.is_writable(store).await {
        reasons.push(reason("store", "the store cannot be written"));
    }
    let ready = reasons.is_empty();
    let body = json!({"ready": ready, "reasons": reasons, "degraded": degraded});
    let answer = ApiResponse::document("ready", body);
    Ok(if ready {
        answer
    } else {
        answer.with_status(StatusCode::SERVICE_UNAVAILABLE)
    })
}

/// The servers that make the gateway unready, and those that only degrade it.
fn servers(gateway: &Gateway, running_for: Duration) -> (Vec<Value>, Vec<Value>) {
    let (mut reasons, mut degraded) = (Vec::new(), Vec::new());
    for upstream in gateway.upstreams() {
        let status = upstream.status();
        let (name, word) = (upstream.name(), status.health.as_str());
        let text = format!("server `{name}` is {word}");
        let never_tried = upstream.description().is_none() && status.last_error.is_none();
        match status.health {
            UpstreamHealth::Idle | UpstreamHealth::Starting if never_tried => {
                let eager = upstream.settings().start == StartMode::Eager;
                match eager && running_for < STARTUP_TIMEOUT {
                    true => reasons.push(reason("server", &text)),
                    false if eager => degraded.push(reason("server", &text)),
                    false => {}
                }
            }
            UpstreamHealth::Down | UpstreamHealth::Failed | UpstreamHealth::Degraded => {
                degraded.push(reason("server", &text));
            }
            // A server that is retried after a failure is still down.
            UpstreamHealth::Starting if status.last_error.is_some() => {
                degraded.push(reason("server", &text));
            }
            UpstreamHealth::Idle
            | UpstreamHealth::Starting
            | UpstreamHealth::Up
            | UpstreamHealth::Closed => {}
        }
    }
    (reasons, degraded)
}

fn reason(code: &str, text: &str) -> Value {
    json!({"code": code, "text": text})
}

impl StoreProbe {
    async fn is_writable(&self, path: PathBuf) -> bool {
        let mut known = self.0.lock().await;
        if let Some((at, writable)) = *known
            && at.elapsed() < PROBE_MAX_AGE
        {
            return writable;
        }
        let probed = tokio::task::spawn_blocking(move || probe(&path)).await;
        let writable = matches!(probed, Ok(Ok(())));
        *known = Some((Instant::now(), writable));
        writable
    }
}

/// Begins a write transaction and writes nothing.
fn probe(path: &std::path::Path) -> Result<(), StoreError> {
    let store = Store::open_existing(path)?.ok_or_else(|| StoreError::Gone {
        path: path.to_owned(),
    })?;
    store.set_busy_timeout(STORE_TIMEOUT)?;
    store.write_transaction(|_| Ok(()))
}
