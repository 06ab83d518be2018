//! A running gateway, and agents that speak raw JSON to it.

mod agent;
mod http_exchange;

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use toolwarden_demo::{DemoServer, ShopOptions, SupportedEras};
use toolwarden_gateway::runtime::{RunningGateway, load_policy};
use toolwarden_mcp::Era;
use toolwarden_settings::Settings;

pub(crate) use agent::{Agent, EVERYTHING};
pub(crate) use http_exchange::Exchange;

/// How long anything may take on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// A gateway on a free port; it ends with this value.
pub(crate) struct TestGateway {
    pub(crate) url: String,
    pub(crate) gateway: toolwarden_gateway::Gateway,
    pub(crate) folder: TempDir,
    shutdown: toolwarden_gateway::listener::Shutdown,
    serving: JoinHandle<()>,
}

impl TestGateway {
    /// Starts a gateway from the text of its settings; `listen`, `store` and an anonymous principal are
    /// added where they are not said.
    pub(crate) async fn start(settings: &Value) -> Self {
        let folder = TempDir::new().unwrap();
        Self::start_in(settings, folder).await
    }

    pub(crate) async fn start_in(settings: &Value, folder: TempDir) -> Self {
        let loaded = settings_in(settings, folder.path());
        let policy = load_policy(&loaded, &folder.path().join("toolwarden.yaml")).unwrap();
        let running = RunningGateway::start(loaded, policy, Value::Null)
            .await
            .unwrap();
        let url = format!("http://{}/mcp", running.address());
        let gateway = running.gateway.clone();
        let shutdown = running.shutdown();
        let router = running.router();
        let serving = tokio::spawn(async move {
            running.serve(router).await;
        });
        Self {
            url,
            gateway,
            folder,
            shutdown,
            serving,
        }
    }

    /// A gateway before these servers, by name.
    pub(crate) async fn before(servers: &[(&str, &DemoServer)]) -> Self {
        Self::before_with(servers, json!({})).await
    }

    /// As [`Self::before`], with more settings.
    pub(crate) async fn before_with(servers: &[(&str, &DemoServer)], mut settings: Value) -> Self {
        let entries = servers
            .iter()
            .map(|(name, server)| ((*name).to_owned(), at(server)));
        settings["servers"] = Value::Object(entries.collect());
        Self::start(&settings).await
    }

    /// The address without the path of the endpoint.
    pub(crate) fn root(&self) -> &str {
        self.url.trim_end_matches("/mcp")
    }

    /// Ends it in order.
    pub(crate) async fn stop(self) -> TempDir {
        self.shutdown.begin();
        self.serving.await.unwrap();
        self.folder
    }
}

pub(crate) fn settings_in(settings: &Value, folder: &Path) -> Settings {
    let mut settings = settings.clone();
    let members = settings.as_object_mut().unwrap();
    members.entry("listen").or_insert(json!("127.0.0.1:0"));
    members.entry("store").or_insert(json!("store.db"));
    members.entry("drain").or_insert(json!("1s"));
    members
        .entry("identity")
        .or_insert(json!({"anonymous": "agent"}));
    let path = folder.join("toolwarden.yaml");
    std::fs::write(&path, settings.to_string()).unwrap();
    Settings::read(&path).unwrap().settings
}

/// A client for addresses like this one.
pub(crate) fn http(url: &str) -> reqwest::Client {
    let url = url.parse().unwrap();
    toolwarden_http::client(&url).unwrap().build().unwrap()
}

/// A server entry for a demo server.
pub(crate) fn at(server: &DemoServer) -> Value {
    json!({"url": server.url})
}

/// A demo server of one era.
pub(crate) fn shop_of(era: Era) -> DemoServer {
    let eras = match era {
        Era::Handshake => SupportedEras::Handshake,
        Era::Stateless => SupportedEras::Stateless,
    };
    DemoServer::start(ShopOptions {
        eras,
        ..ShopOptions::default()
    })
    .unwrap()
}

/// Every pair of the era of an agent and the era of a server.
pub(crate) const PAIRS: [(Era, Era); 4] = [
    (Era::Handshake, Era::Handshake),
    (Era::Handshake, Era::Stateless),
    (Era::Stateless, Era::Handshake),
    (Era::Stateless, Era::Stateless),
];

/// Waits until something is so.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    until_async(what, || std::future::ready(is_so())).await;
}

/// Like [`until`], for an asynchronous condition.
pub(crate) async fn until_async<F: Future<Output = bool>>(what: &str, is_so: impl Fn() -> F) {
    let began = std::time::Instant::now();
    while !is_so().await {
        assert!(began.elapsed() < SOON, "it never happens: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
