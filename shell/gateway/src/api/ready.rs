//! Whether the gateway can do its work.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use toolwarden_store::{Store, StoreError};
use toolwarden_warden::settings::Start;

use super::answer::Answer;
use super::asking::Asking;
use super::route::Handled;
use crate::gateway::Gateway;
use crate::upstream::Health;

/// How long an answer of the store holds: whoever asks need not be known, and must not keep it busy.
const HOLDS: Duration = Duration::from_secs(2);
/// How long is waited for whoever writes.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether the store can be written, as it was found a moment ago.
#[derive(Debug, Default)]
pub(super) struct StoreProbe(Mutex<Option<(Instant, bool)>>);

/// How long the gateway waits for the first answers of eager servers before it is ready without them.
const STARTUP: Duration = Duration::from_secs(30);

/// `GET /ready`
///
/// Ready means that this gateway can serve: its store and its log can be written, the first attempt to
/// reach every eager server is over, and it is not about to end. A server that is down makes the gateway
/// degraded, not unready: the other servers still work.
pub(super) async fn ready(asking: Asking) -> Handled {
    let gateway = asking.gateway();
    let (mut reasons, mut degraded) = servers(gateway, asking.api.started.elapsed());
    if let Some(usage) = gateway
        .guard()
        .log()
        .usage()
        .filter(|it| it.is_nearly_full())
    {
        let text = format!(
            "the store takes {} of the {} bytes it may (`store_quota`)",
            usage.used, usage.quota
        );
        degraded.push(reason("store_quota", &text));
    }
    if gateway.is_ending() {
        reasons.push(reason("ending", "the gateway is about to end"));
    }
    let health = gateway.guard().log().health();
    if health.is_some_and(|it| it.failure.is_some()) {
        reasons.push(reason("audit", "audit records cannot be written"));
    }
    let store = gateway.settings().store.clone();
    if !asking.api.store.is_writable(store).await {
        reasons.push(reason("store", "the store cannot be written"));
    }
    let ready = reasons.is_empty();
    let body = json!({"ready": ready, "reasons": reasons, "degraded": degraded});
    let answer = Answer::document("ready", body);
    Ok(if ready {
        answer
    } else {
        answer.with_status(StatusCode::SERVICE_UNAVAILABLE)
    })
}

/// Servers that keep the gateway from being ready, and those that only degrade it.
fn servers(gateway: &Gateway, running_for: Duration) -> (Vec<Value>, Vec<Value>) {
    let (mut reasons, mut degraded) = (Vec::new(), Vec::new());
    for upstream in gateway.upstreams() {
        let status = upstream.status();
        let (name, word) = (upstream.name(), status.health.as_str());
        let text = format!("server `{name}` is {word}");
        let never_tried = upstream.description().is_none() && status.last_error.is_none();
        match status.health {
            Health::Idle | Health::Starting if never_tried => {
                let eager = upstream.settings().start == Start::Eager;
                match eager && running_for < STARTUP {
                    true => reasons.push(reason("server", &text)),
                    false if eager => degraded.push(reason("server", &text)),
                    false => {}
                }
            }
            Health::Down | Health::Failed | Health::Degraded => {
                degraded.push(reason("server", &text));
            }
            // One that is tried again after a failure is still away.
            Health::Starting if status.last_error.is_some() => {
                degraded.push(reason("server", &text));
            }
            Health::Idle | Health::Starting | Health::Up | Health::Closed => {}
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
            && at.elapsed() < HOLDS
        {
            return writable;
        }
        let probed = tokio::task::spawn_blocking(move || probe(&path)).await;
        let writable = matches!(probed, Ok(Ok(())));
        *known = Some((Instant::now(), writable));
        writable
    }
}

/// Begins to write, and writes nothing.
fn probe(path: &std::path::Path) -> Result<(), StoreError> {
    let store = Store::open_existing(path)?.ok_or_else(|| StoreError::Gone {
        path: path.to_owned(),
    })?;
    store.set_patience(PATIENCE)?;
    store.write(|_| Ok(()))
}
