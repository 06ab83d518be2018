//! The servers behind the gateway.

use std::sync::Arc;

use serde_json::{Value, json};
use toolwarden_mcp::{Endpoint, Era};
use toolwarden_model::ServerName;
use toolwarden_settings::{SessionSharing, StartMode, bare_url};
use toolwarden_watch::inline::ToolAction;

use super::error::ApiError;
use super::request::ApiRequest;
use super::response::{ApiResponse, rounded_seconds, time_text};
use super::route::HandlerResult;
use crate::catalog::{ServerCatalog, collision_text};
use crate::gateway::Gateway;
use crate::upstream::{BreakerStatus, UpstreamHealth};

/// `GET /servers`
pub(super) async fn list(api_request: ApiRequest) -> HandlerResult {
    let gateway = api_request.gateway();
    let catalogs = gateway.server_catalogs();
    let servers = catalogs
        .iter()
        .map(|it| server_entry(it, api_request.is_admin()));
    Ok(ApiResponse::document(
        "servers",
        json!({
            "servers": servers.collect::<Vec<_>>(),
            "collisions": collisions(gateway, None),
        }),
    ))
}

/// `GET /servers/{name}`
pub(super) async fn get(api_request: ApiRequest) -> HandlerResult {
    let catalog = find_server(&api_request)?;
    Ok(server_response(&api_request, &catalog))
}

/// `POST /servers/{name}/retry`
pub(super) async fn retry(api_request: ApiRequest) -> HandlerResult {
    let catalog = find_server(&api_request)?;
    catalog.upstream.retry();
    api_request
        .gateway()
        .refresh_in_background(Arc::clone(&catalog));
    let server = json!({"server": catalog.upstream.name()});
    api_request.record_action("retried", server).await?;
    Ok(server_response(&api_request, &catalog))
}

fn server_response(api_request: &ApiRequest, catalog: &ServerCatalog) -> ApiResponse {
    let server = catalog.upstream.name();
    ApiResponse::document(
        "server",
        json!({
            "server": server_entry(catalog, api_request.is_admin()),
            "collisions": collisions(api_request.gateway(), Some(server)),
        }),
    )
}

fn find_server(api_request: &ApiRequest) -> Result<Arc<ServerCatalog>, ApiError> {
    let name = api_request.params.required_text("name")?;
    let gateway = api_request.gateway();
    gateway
        .server_catalog(name)
        .ok_or_else(|| unknown_server(gateway, name))
}

/// The error for an unknown server.
pub(super) fn unknown_server(gateway: &Gateway, name: &str) -> ApiError {
    let catalogs = gateway.server_catalogs();
    let known = catalogs.iter().map(|it| it.upstream.name());
    let suggestion = toolwarden_model::did_you_mean(name, known);
    ApiError::not_found(
        format!("no server is called `{name}`{suggestion}"),
        "`GET /api/v1/servers` lists the servers.",
    )
}

fn collisions(gateway: &Gateway, of: Option<&str>) -> Vec<Value> {
    let directory = gateway.shared.directory.load();
    let collisions = directory.tools.collisions();
    collisions
        .filter(|(_, servers)| of.is_none_or(|of| servers.iter().any(|it| it.as_str() == of)))
        .map(|(name, servers)| {
            let names: Vec<&str> = servers.iter().map(ServerName::as_str).collect();
            json!({"name": name.as_str(), "servers": names, "text": collision_text(name, servers)})
        })
        .collect()
}

/// A server. Fields that may contain secrets are for administrators.
fn server_entry(catalog: &ServerCatalog, admin: bool) -> Value {
    let upstream = &catalog.upstream;
    let (status, settings) = (upstream.status(), upstream.settings());
    let mut entry = json!({
        "name": upstream.name(),
        "health": status.health.as_str(),
        "since": time_text(status.since),
        "start": match settings.start {
            StartMode::Eager => "eager",
            StartMode::Lazy => "lazy",
        },
        "sessions": match settings.sessions {
            SessionSharing::Isolated => "isolated",
            SessionSharing::Shared => "shared",
        },
        "era": status.era.map(era_name),
        "protocol_version": status.protocol_version,
        "links": status.links,
        "in_flight": status.in_flight,
        "restarts": status.restarts,
        "latency_ms": status.latency.map(|it| rounded_seconds(it * 1_000)),
        "breaker": breaker_json(status.breaker),
        "tools": tools_json(catalog),
    });
    if let (true, Value::Object(members)) = (admin, &mut entry) {
        members.insert("endpoint".to_owned(), endpoint_json(&settings.endpoint));
        members.insert("pids".to_owned(), json!(status.pids));
        let error = status.last_error.as_ref();
        let error = error.map(|it| json!({"at": time_text(it.at), "text": it.text}));
        // An error from before the server came up is history, not its status.
        let (current, previous) = match status.health {
            UpstreamHealth::Up => (None, error),
            _ => (error, None),
        };
        members.insert("last_error".to_owned(), json!(current));
        members.insert("previous_error".to_owned(), json!(previous));
    }
    entry
}

pub(super) const fn era_name(era: Era) -> &'static str {
    match era {
        Era::Handshake => "handshake",
        Era::Stateless => "stateless",
    }
}

fn breaker_json(breaker: BreakerStatus) -> Value {
    let (word, left) = match breaker {
        BreakerStatus::Closed => ("closed", None),
        BreakerStatus::Open { remaining } => ("open", Some(rounded_seconds(remaining))),
        BreakerStatus::HalfOpen => ("half-open", None),
    };
    json!({"status": word, "retry_after": left})
}

/// A summary of its tools; null before the first list.
fn tools_json(catalog: &ServerCatalog) -> Value {
    let Some(list) = catalog.last_tools("") else {
        return Value::Null;
    };
    let count = |treated: fn(&ToolAction) -> bool| {
        let tools = list.tools.iter().map(|it| &it.tool_action);
        tools
            .filter(|it| list.blocked.is_none() && treated(it))
            .count()
    };
    json!({
        "listed": list.tools.len(),
        "served": count(ToolAction::is_served),
        "hidden": count(|it| matches!(it, ToolAction::Hide { .. })),
        "quarantined": count(|it| matches!(it, ToolAction::Quarantine { .. })),
        "blocked": list.blocked,
        "list_age": rounded_seconds(list.age()),
    })
}

/// Its endpoint, without parts that may be secret.
fn endpoint_json(endpoint: &Endpoint) -> Value {
    match endpoint {
        Endpoint::Command(command) => {
            json!({"kind": "command", "place": command.program})
        }
        Endpoint::Url(url) => json!({"kind": "url", "place": bare_url(&url.url)}),
    }
}
