//! What the gateway says of itself.

use std::collections::BTreeMap;

use serde_json::json;
use toolwarden_mcp::serve::handshake::INITIALIZED_VERSIONS;

use super::answer::Answer;
use super::asking::Asking;
use super::openapi;
use super::route::Handled;
use crate::metrics::{CONTENT_TYPE, TargetReading};

/// `GET /health`
pub(super) async fn health(_asking: Asking) -> Handled {
    Ok(Answer::document("health", json!({"status": "up"})))
}

/// `GET /version`
pub(super) async fn version(_asking: Asking) -> Handled {
    Ok(Answer::document(
        "version",
        json!({
            "name": "toolwarden",
            "version": env!("CARGO_PKG_VERSION"),
            "api": "v1",
            "handshake_versions": INITIALIZED_VERSIONS,
        }),
    ))
}

/// `GET /config`
pub(super) async fn config(asking: Asking) -> Handled {
    let settings = asking.api.masked();
    Ok(Answer::document("config", json!({"settings": settings})))
}

/// `GET /openapi.json`
pub(super) async fn openapi(_asking: Asking) -> Handled {
    Ok(Answer::json(&openapi::document()))
}

/// `GET /metrics`
pub(super) async fn metrics(asking: Asking) -> Handled {
    let status = asking.api.notifier.status().await?;
    let mut targets = BTreeMap::new();
    for target in status.targets {
        let reading = TargetReading {
            delivered: target.delivered,
            failed: target.failed,
            pending: target.pending,
        };
        targets.insert(target.name, reading);
    }
    let text = asking.gateway().metrics_text(targets, status.dropped);
    Ok(Answer::text(CONTENT_TYPE, text))
}
