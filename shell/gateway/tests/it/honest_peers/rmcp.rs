//! The client of the official Rust SDK, which takes those steps of the plan that are requests.
#![expect(
    deprecated,
    reason = "servers of the handshake era still ask for sampling and roots"
)]

use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::{
    ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
    ElicitResult, ErrorData, ListRootsResult, ProtocolVersion,
};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt as _, RequestContext, RunningService, ServiceError,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, RoleClient};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::process::{Child, Command};
use tokio::time::timeout;
use toolwarden_mcp::Era;

use super::compare::differences;
use super::servers::Servers;
use crate::support::http;

/// How long one step may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// The steps that this client takes.
const STEPS: [&str; 4] = ["call", "complete", "prompt", "read"];

/// A client that answers whatever it is asked, and keeps what that was.
#[derive(Clone, Debug, Default)]
struct Peer {
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Peer {
    fn keep(&self, method: &str, params: &impl Serialize) {
        let mut params = serde_json::to_value(params).unwrap();
        if let Some(params) = params.as_object_mut() {
            params.remove("_meta");
        }
        let asked = json!({"method": method, "params": params});
        self.asked.lock().unwrap().push(asked);
    }
}

impl ClientHandler for Peer {
    fn get_info(&self) -> ClientConfig {
        typed(json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"elicitation": {}, "sampling": {}, "roots": {}},
            "clientInfo": {"name": "rust", "version": "1"},
        }))
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.keep("elicitation/create", &params);
        // Fits every form that the servers ask with.
        let content = json!({"name": "Ada", "check": true, "username": "ada",
            "email": "ada@example.com", "color": "red", "context": "x"});
        Ok(typed(json!({"action": "accept", "content": content})))
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.keep("sampling/createMessage", &params);
        let content = json!({"type": "text", "text": "hello"});
        Ok(typed(json!({
            "role": "assistant", "content": content, "model": "fixture",
        })))
    }

    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        let root = json!({"uri": "file:///reports", "name": "reports"});
        Ok(typed(json!({"roots": [root]})))
    }
}

type Client = RunningService<RoleClient, Peer>;

/// A typed value from its JSON.
fn typed<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn plain(value: impl Serialize) -> Value {
    serde_json::to_value(value).unwrap()
}

fn lifecycle(era: Era) -> ClientLifecycleMode {
    match era {
        Era::Handshake => ClientLifecycleMode::Initialize,
        Era::Stateless => ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
    }
}

/// A connection, with the child behind it where there is one.
async fn open(connect: &Value, era: Era) -> Option<(Client, Option<Child>)> {
    let peer = Peer::default();
    if let Some(url) = connect["url"].as_str() {
        let config = StreamableHttpClientTransportConfig::with_uri(url.to_owned());
        let transport = StreamableHttpClientTransport::with_client(http(url), config);
        let client = peer.serve_with_lifecycle(transport, lifecycle(era)).await;
        return client.ok().map(|client| (client, None));
    }
    let args = connect["args"].as_array().unwrap().iter();
    let env = connect["env"].as_object().into_iter().flatten();
    let mut child = Command::new(connect["command"].as_str().unwrap())
        .args(args.map(|it| it.as_str().unwrap()))
        .envs(env.map(|(key, value)| (key, value.as_str().unwrap())))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let streams = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    let connect_request = peer.serve_with_lifecycle(streams, lifecycle(era));
    let client = timeout(LIMIT, connect_request).await.ok()?;
    client.ok().map(|client| (client, Some(child)))
}

async fn take(client: &Client, prefix: &str, step: &Value) -> Result<Value, ServiceError> {
    let named = |key: &str| format!("{prefix}{}", step[key].as_str().unwrap_or_default());
    let arguments = step.get("args").cloned().unwrap_or(json!({}));
    let named_request = json!({"name": named("name"), "arguments": arguments});
    match step["do"].as_str().unwrap() {
        "call" => client.call_tool(typed(named_request)).await.map(plain),
        "prompt" => client.get_prompt(typed(named_request)).await.map(plain),
        "read" => {
            let params = json!({"uri": step["uri"]});
            client.read_resource(typed(params)).await.map(plain)
        }
        _ => {
            let reference = match step.get("template") {
                Some(template) => json!({"type": "ref/resource", "uri": template}),
                None => json!({"type": "ref/prompt", "name": named("prompt")}),
            };
            let mut params = json!({"ref": reference, "argument": step["argument"]});
            if let Some(context) = step.get("context") {
                params["context"] = json!({"arguments": context});
            }
            client.complete(typed(params)).await.map(plain)
        }
    }
}

async fn observe_server(client: &Client, prefix: &str, steps: &Value) -> Vec<Value> {
    let mut seen = Vec::new();
    for step in steps.as_array().unwrap() {
        if !STEPS.contains(&step["do"].as_str().unwrap()) {
            continue;
        }
        let mut observed = json!({"step": step});
        match timeout(LIMIT, take(client, prefix, step)).await {
            Err(_elapsed) => observed["timeout"] = json!(true),
            Ok(Ok(result)) => observed["result"] = result,
            Ok(Err(ServiceError::McpError(error))) => observed["error"] = plain(error),
            Ok(Err(error)) => observed["raised"] = json!(error.to_string()),
        }
        let asked = std::mem::take(&mut *client.service().asked.lock().unwrap());
        if !asked.is_empty() {
            observed["asked"] = json!(asked);
        }
        seen.push(observed);
    }
    seen
}

/// What the client sees on one connection: of these servers, each with its prefix.
async fn observe(client: &Client, servers: &[(&str, String, &Value)]) -> Value {
    // A server need not have every list.
    fn entries<T: Serialize>(list: Result<Vec<T>, ServiceError>) -> Value {
        plain(list.unwrap_or_default())
    }
    let lists = json!({
        "tools": plain(client.list_all_tools().await.unwrap()),
        "prompts": entries(client.list_all_prompts().await),
        "resources": entries(client.list_all_resources().await),
        "resourceTemplates": entries(client.list_all_resource_templates().await),
    });
    let mut seen = Map::new();
    for (name, prefix, steps) in servers {
        let observed = observe_server(client, prefix, steps).await;
        seen.insert((*name).to_owned(), observed.into());
    }
    let version = plain(&client.peer_info().unwrap().protocol_version);
    json!({"version": version, "lists": lists, "servers": seen})
}

async fn check(era: Era, version: &str) {
    let Some(servers) = Servers::installed().await else {
        return;
    };
    let names: Vec<&str> = servers.by_name.iter().map(|(name, _)| *name).collect();
    servers.reset();
    let mut direct = Vec::new();
    for (name, connect) in &servers.by_name {
        // Servers of the handshake era only are compared with what they are in that era.
        let opened = match open(connect, era).await {
            Some(opened) => opened,
            None => open(connect, Era::Handshake).await.unwrap(),
        };
        let alone = [(*name, String::new(), servers.steps(name))];
        direct.push(observe(&opened.0, &alone).await);
        drop(opened.0.cancel().await);
    }
    servers.reset();
    let gateway = servers.gateway().await;
    let (client, _) = open(&json!({"url": gateway.url}), era).await.unwrap();
    let behind = names.iter();
    let behind = behind.map(|name| (*name, format!("{name}__"), servers.steps(name)));
    let through = observe(&client, &behind.collect::<Vec<_>>()).await;
    drop(client.cancel().await);
    gateway.stop().await;
    assert_eq!(through["version"], version);
    let faults = differences(&names, &direct, &through);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn handshake() {
    check(Era::Handshake, "2025-11-25").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stateless() {
    check(Era::Stateless, "2026-07-28").await;
}
