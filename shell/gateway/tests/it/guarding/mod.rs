//! What the gateway allows and denies, and what it reports and records about both.

mod approvals;
mod attributes;
mod default_groups;
mod denials;
mod denied_traffic;
mod drain;
mod drift_actions;
mod escalation;
mod faults;
mod features;
mod first_sight;
mod health_alerts;
mod hostile;
mod identity;
mod mutations;
mod records;
mod reload;
mod results;
mod rug_pull;
mod rule_identity;
mod session_groups;
mod store;
mod tunnels;
mod visibility;
mod workflow;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use toolwarden_demo::DemoServer;
use toolwarden_gateway::Gateway;
use toolwarden_live_guard::AuditLog;
use toolwarden_live_guard::audit::verify;
use toolwarden_mcp::Era;
use toolwarden_store::{RecordFilter, Store};
use toolwarden_watch::inline::ApprovalRequest;
use toolwarden_watch::{ApprovalSelection, ApprovedItem};

use crate::support::{Agent, at};

pub(crate) use reload::Live;

const ERAS: [Era; 2] = [Era::Handshake, Era::Stateless];

/// A new HTTP client.
fn client() -> reqwest::Client {
    // The first test installs it.
    drop(rustls::crypto::ring::default_provider().install_default());
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// The key of a principal.
fn key(principal: &str) -> String {
    format!("{principal}-0123456789abcdef0123456789abcdef")
}

/// The header of a caller with a key.
pub(crate) fn bearer_of(principal: &str) -> String {
    format!("Bearer {}", key(principal))
}

/// Callers with keys.
pub(crate) fn identity(principals: &[&str]) -> Value {
    let keys = principals.iter().map(|principal| {
        let digest = Sha256::digest(key(principal));
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        json!({"principal": principal, "sha256": digest})
    });
    json!({"api_keys": keys.collect::<Vec<_>>()})
}

/// An agent with the key of a principal, and further headers.
pub(crate) async fn agent_of(
    era: Era,
    url: &str,
    principal: &str,
    headers: &[(&str, &str)],
) -> Agent {
    let bearer = format!("Bearer {}", key(principal));
    let mut all = vec![("authorization", bearer.as_str())];
    all.extend_from_slice(headers);
    match era {
        Era::Handshake => Agent::open_with(url, &json!({}), &all).await,
        Era::Stateless => Agent::stateless_with(url, &json!({}), &all),
    }
}

/// Tools that echo what they are called with.
fn echoing(names: &[&str]) -> Vec<Value> {
    let tools = names.iter().map(|name| {
        json!({"name": name, "description": format!("Does {name}."), "inputSchema": {"type": "object"}})
    });
    tools.collect()
}

/// A server entry with more settings.
fn at_with(server: &DemoServer, more: Value) -> Value {
    let mut entry = at(server);
    if let (Value::Object(members), Value::Object(more)) = (&mut entry, more) {
        members.extend(more);
    }
    entry
}

/// The code of a denial in a tool result; `None` if there is none.
pub(crate) fn code(answer: &Value) -> Option<&str> {
    let result = &answer["result"];
    let denial = &result["_meta"]["toolwarden/denial"];
    assert_eq!(denial.is_object(), result["isError"] == true, "{answer}");
    denial["code"].as_str()
}

/// Whether a tool was called and succeeded.
pub(crate) fn worked(answer: &Value) -> bool {
    answer["result"].is_object() && answer["result"]["isError"] != true
}

/// One record of the log.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AuditRow {
    pub(crate) kind: String,
    pub(crate) code: String,
    pub(crate) principal: String,
    pub(crate) tool: String,
    pub(crate) session: String,
    pub(crate) allowed: Option<bool>,
    pub(crate) body: Value,
}

impl AuditRow {
    /// The source that vouched for the principal.
    pub(crate) fn issuer(&self) -> String {
        self.body["issuer"].as_str().unwrap_or_default().to_owned()
    }

    /// A member of the body.
    pub(crate) fn said(&self, name: &str) -> Value {
        self.body[name].clone()
    }

    pub(crate) fn word(&self) -> String {
        format!("{} {}", self.kind, self.code)
    }
}

/// All records of a running gateway; verifies the chain.
pub(crate) fn rows(gateway: &Gateway) -> Vec<AuditRow> {
    if let AuditLog::Stored(writer) = gateway.guard().log() {
        writer.flush().unwrap();
    }
    rows_in(&gateway.settings().store)
}

fn rows_in(path: &Path) -> Vec<AuditRow> {
    let store = Store::open(path).unwrap();
    let verification = verify(&store, None).unwrap();
    assert!(verification.chain.is_ok(), "{verification:?}");
    let mut rows = Vec::new();
    let each = |row: &toolwarden_store::RecordRow<'_>| {
        let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
        rows.push(AuditRow {
            kind: row.kind.to_owned(),
            code: row.code.to_owned(),
            principal: text(row.principal),
            tool: text(row.tool),
            session: text(row.session),
            allowed: row.allowed,
            body: serde_json::from_str(row.body).unwrap(),
        });
        ControlFlow::Continue(())
    };
    store.records(&RecordFilter::default(), each).unwrap();
    rows
}

/// The records of these kinds, as text.
fn words(rows: &[AuditRow], kinds: &[&str]) -> Vec<String> {
    let wanted = rows.iter().filter(|row| kinds.contains(&row.kind.as_str()));
    wanted.map(AuditRow::word).collect()
}

/// The value of a counter; `None` if it was never incremented.
fn counted(gateway: &Gateway, series: &str) -> Option<u64> {
    let text = gateway.metrics_text(Default::default(), 0);
    let line = text.lines().find(|line| line.starts_with(series))?;
    line.rsplit(' ').next()?.parse().ok()
}

/// Approves all pending changes.
pub(crate) async fn approve_all(gateway: &Gateway) -> Vec<ApprovedItem> {
    let approving = ApprovalRequest {
        selection: ApprovalSelection {
            all: true,
            ..ApprovalSelection::default()
        },
        by: "ada".to_owned(),
        ..ApprovalRequest::default()
    };
    gateway.watch().approve(approving).await.unwrap()
}

/// A webhook that stores what it receives.
#[derive(Clone, Default)]
struct Hook {
    got: Arc<Mutex<Vec<(HeaderMap, Value)>>>,
}

impl Hook {
    async fn start() -> (Self, String) {
        let hook = Self::default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let take = |State(hook): State<Self>, headers: HeaderMap, body: String| async move {
            let body = serde_json::from_str(&body).unwrap();
            hook.got.lock().unwrap().push((headers, body));
        };
        let router = Router::new().fallback(take).with_state(hook.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        (hook, url)
    }

    /// The notices of a kind that it received.
    fn of_kind(&self, kind: &str) -> Vec<Value> {
        let got = self.got.lock().unwrap();
        let bodies = got.iter().map(|(_, body)| body.clone());
        bodies.filter(|body| body["kind"] == kind).collect()
    }
}
