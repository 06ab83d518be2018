//! The servers behind the gateway.

use std::sync::Arc;

use serde_json::{Value, json};
use toolwarden_mcp::{Endpoint, Era};
use toolwarden_model::ServerName;
use toolwarden_settings::{SessionSharing, StartMode, bare_url};
use toolwarden_watch::inline::Treatment;

use super::error::ApiError;
use super::request::ApiRequest;
use super::response::{ApiResponse, rounded_seconds, time_text};
use super::route::HandlerResult;
use crate::catalog::{ServerCatalog, collision_text};
use crate::gateway::Gateway;
use crate::upstream::{BreakerStatus, UpstreamHealth};

/// `GET /servers`
pub(super) async fn list(asking: ApiRequest) -> HandlerResult {
    let gateway = asking.gateway();
    let shelves = gateway.server_catalogs();
    let servers = shelves.iter().map(|it| server_entry(it, asking.is_admin()));
    Ok(ApiResponse::document(
        "servers",
        json!({
            "servers": servers.collect::<Vec<_>>(),
            "collisions": collisions(gateway, None),
        }),
    ))
}

/// `GET /servers/{name}`
pub(super) async fn get(asking: ApiRequest) -> HandlerResult {
    let shelf = find_server(&asking)?;
    Ok(server_response(&asking, &shelf))
}

/// `POST /servers/{name}/retry`
pub(super) async fn retry(asking: ApiRequest) -> HandlerResult {
    let shelf = find_server(&asking)?;
    shelf.upstream.retry();
    asking.gateway().refresh_in_background(Arc::clone(&shelf));
    let server = json!({"server": shelf.upstream.name()});
    asking.record_action("retried", server).await?;
    Ok(server_response(&asking, &shelf))
}

fn server_response(asking: &ApiRequest, shelf: &ServerCatalog) -> ApiResponse {
    let server = shelf.upstream.name();
    ApiResponse::document(
        "server",
        json!({
            "server": server_entry(shelf, asking.is_admin()),
            "collisions": collisions(asking.gateway(), Some(server)),
        }),
    )
}

fn find_server(asking: &ApiRequest) -> Result<Arc<ServerCatalog>, ApiError> {
    let name = asking.params.required_text("name")?;
    let gateway = asking.gateway();
    gateway
        .server_catalog(name)
        .ok_or_else(|| unknown_server(gateway, name))
}

/// The error for an unknown server.
pub(super) fn unknown_server(gateway: &Gateway, name: &str) -> ApiError {
    let shelves = gateway.server_catalogs();
    let known = shelves.iter().map(|it| it.upstream.name());
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
fn server_entry(shelf: &ServerCatalog, admin: bool) -> Value {
    let upstream = &shelf.upstream;
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
        "tools": tools_json(shelf),
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
fn tools_json(shelf: &ServerCatalog) -> Value {
    let Some(list) = shelf.last_tools("") else {
        return Value::Null;
    };
    let count = |treated: fn(&Treatment) -> bool| {
        let tools = list.tools.iter().map(|it| &it.treatment);
        tools
            .filter(|it| list.blocked.is_none() && treated(it))
            .count()
    };
    json!({
        "listed": list.tools.len(),
        "served": count(Treatment::is_served),
        "hidden": count(|it| matches!(it, Treatment::Hide { .. })),
        "quarantined": count(|it| matches!(it, Treatment::Quarantine { .. })),
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
