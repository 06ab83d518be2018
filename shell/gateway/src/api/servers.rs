//! The servers behind the gateway.

use std::sync::Arc;

use serde_json::{Value, json};
use toolwarden_mcp::{Endpoint, Era};
use toolwarden_warden::inline::Treatment;
use toolwarden_warden::settings::{SessionSharing, Start, bare_url};

use super::answer::{Answer, seconds, time};
use super::asking::Asking;
use super::error::ApiError;
use super::route::Handled;
use crate::catalogue::{Shelf, collision};
use crate::gateway::Gateway;
use crate::upstream::{BreakerStatus, Health};

/// `GET /servers`
pub(super) async fn list(asking: Asking) -> Handled {
    let gateway = asking.gateway();
    let shelves = gateway.shelves();
    let servers = shelves.iter().map(|it| entry(it, asking.is_admin()));
    Ok(Answer::document(
        "servers",
        json!({
            "servers": servers.collect::<Vec<_>>(),
            "collisions": collisions(gateway, None),
        }),
    ))
}

/// `GET /servers/{name}`
pub(super) async fn one(asking: Asking) -> Handled {
    let shelf = named(&asking)?;
    Ok(told(&asking, &shelf))
}

/// `POST /servers/{name}/retry`
pub(super) async fn retry(asking: Asking) -> Handled {
    let shelf = named(&asking)?;
    shelf.upstream.retry();
    asking.gateway().look_soon(Arc::clone(&shelf));
    let server = json!({"server": shelf.upstream.name()});
    asking.did("retried", server).await?;
    Ok(told(&asking, &shelf))
}

fn told(asking: &Asking, shelf: &Shelf) -> Answer {
    let server = shelf.upstream.name();
    Answer::document(
        "server",
        json!({
            "server": entry(shelf, asking.is_admin()),
            "collisions": collisions(asking.gateway(), Some(server)),
        }),
    )
}

fn named(asking: &Asking) -> Result<Arc<Shelf>, ApiError> {
    let name = asking.given.needed("name")?;
    let gateway = asking.gateway();
    gateway.shelf(name).ok_or_else(|| unknown(gateway, name))
}

/// The error of a server that is not there.
pub(super) fn unknown(gateway: &Gateway, name: &str) -> ApiError {
    let shelves = gateway.shelves();
    let known = shelves.iter().map(|it| it.upstream.name());
    let suggestion = toolwarden_model::closest(name, known);
    ApiError::not_found(
        format!("no server is called `{name}`{suggestion}"),
        "`GET /api/v1/servers` lists the servers.",
    )
}

fn collisions(gateway: &Gateway, of: Option<&str>) -> Vec<Value> {
    let directory = gateway.shared.directory.load();
    let collisions = directory.tools.collisions();
    collisions
        .filter(|(_, servers)| of.is_none_or(|of| servers.iter().any(|it| **it == *of)))
        .map(|(name, servers)| {
            let names: Vec<&str> = servers.iter().map(|it| &**it).collect();
            json!({"name": &**name, "servers": names, "text": collision(name, servers)})
        })
        .collect()
}

/// A server. What may hold secrets is for administrators.
fn entry(shelf: &Shelf, admin: bool) -> Value {
    let upstream = &shelf.upstream;
    let (status, settings) = (upstream.status(), upstream.settings());
    let mut entry = json!({
        "name": upstream.name(),
        "health": status.health.as_str(),
        "since": time(status.since),
        "start": match settings.start {
            Start::Eager => "eager",
            Start::Lazy => "lazy",
        },
        "sessions": match settings.sessions {
            SessionSharing::Isolated => "isolated",
            SessionSharing::Shared => "shared",
        },
        "era": status.era.map(era),
        "protocol_version": status.protocol_version,
        "links": status.links,
        "in_flight": status.in_flight,
        "restarts": status.restarts,
        "latency_ms": status.latency.map(|it| seconds(it * 1_000)),
        "breaker": breaker(status.breaker),
        "tools": tools(shelf),
    });
    if let (true, Value::Object(members)) = (admin, &mut entry) {
        members.insert("endpoint".to_owned(), endpoint(&settings.endpoint));
        members.insert("pids".to_owned(), json!(status.pids));
        let error = status.last_error.as_ref();
        let error = error.map(|it| json!({"at": time(it.at), "text": it.text}));
        // What went wrong before a server came up is history, not its state.
        let (current, previous) = match status.health {
            Health::Up => (None, error),
            _ => (error, None),
        };
        members.insert("last_error".to_owned(), json!(current));
        members.insert("previous_error".to_owned(), json!(previous));
    }
    entry
}

pub(super) const fn era(era: Era) -> &'static str {
    match era {
        Era::Handshake => "handshake",
        Era::Stateless => "stateless",
    }
}

fn breaker(breaker: BreakerStatus) -> Value {
    let (word, left) = match breaker {
        BreakerStatus::Closed => ("closed", None),
        BreakerStatus::Open { remaining } => ("open", Some(seconds(remaining))),
        BreakerStatus::HalfOpen => ("half-open", None),
    };
    json!({"status": word, "retry_after": left})
}

/// What is known of its tools; nothing before the first list.
fn tools(shelf: &Shelf) -> Value {
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
        "list_age": seconds(list.age()),
    })
}

/// Where it is, without what may be a secret.
fn endpoint(endpoint: &Endpoint) -> Value {
    match endpoint {
        Endpoint::Command(command) => {
            json!({"kind": "command", "place": command.program})
        }
        Endpoint::Url(url) => json!({"kind": "url", "place": bare_url(&url.url)}),
    }
}
