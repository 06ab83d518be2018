//! Endpoints about the gateway itself.

use std::collections::BTreeMap;

use serde_json::json;
use toolwarden_mcp::serve::versions::INITIALIZE_VERSIONS;

use super::openapi;
use super::request::ApiRequest;
use super::response::ApiResponse;
use super::route::HandlerResult;
use crate::metrics::{CONTENT_TYPE, TargetGauges};

/// `GET /health`
pub(super) async fn health(_asking: ApiRequest) -> HandlerResult {
    Ok(ApiResponse::document("health", json!({"status": "up"})))
}

/// `GET /version`
pub(super) async fn version(_asking: ApiRequest) -> HandlerResult {
    Ok(ApiResponse::document(
        "version",
        json!({
            "name": "toolwarden",
            "version": env!("CARGO_PKG_VERSION"),
            "api": "v1",
            "handshake_versions": INITIALIZE_VERSIONS,
        }),
    ))
}

/// `GET /config`
pub(super) async fn config(api_request: ApiRequest) -> HandlerResult {
    let settings = api_request.api.masked_settings();
    Ok(ApiResponse::document(
        "config",
        json!({"settings": settings}),
    ))
}

/// `GET /openapi.json`
pub(super) async fn openapi(_asking: ApiRequest) -> HandlerResult {
    Ok(ApiResponse::json(&openapi::document()))
}

/// `GET /metrics`
pub(super) async fn metrics(api_request: ApiRequest) -> HandlerResult {
    let status = api_request.api.notifier.status().await?;
    let mut targets = BTreeMap::new();
    for target in status.targets {
        let reading = TargetGauges {
            delivered: target.delivered,
            failed: target.failed,
            pending: target.pending,
        };
        targets.insert(target.name, reading);
    }
    let text = api_request.gateway().metrics_text(targets, status.dropped);
    Ok(ApiResponse::text(CONTENT_TYPE, text))
}
