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

/// `GET /ready`
pub(super) async fn ready(asking: Asking) -> Handled {
    let gateway = asking.gateway();
    let mut reasons = servers(gateway);
    if is_ending(gateway).await {
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
    let answer = Answer::document("ready", json!({"ready": ready, "reasons": reasons}));
    Ok(if ready {
        answer
    } else {
        answer.with_status(StatusCode::SERVICE_UNAVAILABLE)
    })
}

/// Servers that are to be there from the start and are not there yet. One that was there and is away now
/// does not take the others away from everybody.
fn servers(gateway: &Gateway) -> Vec<Value> {
    let upstreams = gateway.upstreams().into_iter();
    let awaited = upstreams.filter(|it| it.settings().start == Start::Eager);
    let missing = awaited.filter_map(|it| {
        let health = it.status().health;
        let settled = matches!(health, Health::Failed | Health::Closed);
        if settled || it.description().is_some() {
            return None;
        }
        let text = format!("server `{}` is {}", it.name(), health.as_str());
        Some(reason("server", &text))
    });
    missing.collect()
}

fn reason(code: &str, text: &str) -> Value {
    json!({"code": code, "text": text})
}

async fn is_ending(gateway: &Gateway) -> bool {
    tokio::select! {
        biased;
        () = gateway.ending() => true,
        () = std::future::ready(()) => false,
    }
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
