//! Settings that change while calls are in flight.

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use toolwarden_gateway::listener::ServeSummary;
use toolwarden_gateway::runtime::{RunningGateway, StartError, load_policy};
use toolwarden_mcp::Era;
use toolwarden_settings::{Settings, SettingsChanges};

use super::{agent_of, at_with, code, identity, rows, worked};
use crate::support::{Agent, settings_in, shop_of, until, until_async};

pub(crate) struct Live {
    pub(crate) running: Arc<RunningGateway>,
    folder: TempDir,
    pub(crate) url: String,
    serving: JoinHandle<ServeSummary>,
}

impl Live {
    pub(crate) async fn start(settings: &Value) -> Self {
        let folder = TempDir::new().unwrap();
        let loaded = settings_in(settings, folder.path());
        let policy = load_policy(&loaded, &folder.path().join("toolwarden.yaml")).unwrap();
        let running = RunningGateway::start(loaded, policy, Value::Null)
            .await
            .unwrap();
        let url = format!("http://{}/mcp", running.address());
        let running = Arc::new(running);
        let serving = tokio::spawn({
            let running = Arc::clone(&running);
            async move { running.serve(running.router()).await }
        });
        Self {
            running,
            folder,
            url,
            serving,
        }
    }

    pub(crate) async fn reload(&self, settings: &Value) -> Result<SettingsChanges, StartError> {
        let loaded = settings_in(settings, self.folder.path());
        let path = self.folder.path().join("toolwarden.yaml");
        let policy = load_policy(&loaded, &path)?;
        self.running.reload(loaded, policy, Value::Null).await
    }

    pub(crate) async fn stop(self) -> ServeSummary {
        self.running.shutdown().begin();
        self.serving.await.unwrap()
    }
}

fn slow() -> Value {
    json!({"name": "a__export_report", "arguments": {"steps": 20, "pause_ms": 100}})
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_under_way_end_and_new_ones_meet_what_is_new() {
    let (a, b) = (shop_of(Era::Handshake), shop_of(Era::Stateless));
    let mut settings = json!({
        "servers": {"a": at_with(&a, json!({}))},
        "identity": identity(&["ada"]),
        "policy": {"tools": {"a__echo": {}}},
        "drain": "100ms",
    });
    let live = Live::start(&settings).await;
    let ada = Arc::new(agent_of(Era::Handshake, &live.url, "ada", &[]).await);
    assert_eq!(ada.tools().await.len(), 7);
    let under_way = tokio::spawn({
        let ada = Arc::clone(&ada);
        async move { ada.ask("tools/call", slow()).await }
    });
    until("it is in flight", || {
        a.shop.seen().calls_of("export_report") == 1
    })
    .await;
    // One server is removed and another added; a former caller is unknown now, and an allowed call is denied.
    settings["servers"] = json!({"b": at_with(&b, json!({}))});
    settings["identity"] = identity(&["ada", "ben"]);
    settings["policy"] = json!({"tools": {"b__echo": {"required_permissions": ["a:b"]}}});
    let changes = live.reload(&settings).await.unwrap();
    assert_eq!(
        (changes.added, changes.removed),
        (vec!["b".to_owned()], vec!["a".to_owned()])
    );
    let answer = ada.call("a__echo", json!({})).await;
    assert_eq!(code(&answer), Some("unknown_tool"), "{answer}");
    let answer = ada.call("b__echo", json!({})).await;
    assert_eq!(code(&answer), Some("missing_permissions"), "{answer}");
    let ben = agent_of(Era::Stateless, &live.url, "ben", &[]).await;
    let tools = ben.tools().await;
    assert_eq!(tools.len(), 6, "{tools:?}");
    assert!(tools.iter().all(|it| it.starts_with("b__")));
    assert!(!under_way.is_finished(), "the slow one is still in flight");
    let answer = under_way.await.unwrap();
    assert!(worked(&answer), "{answer}");
    assert_eq!(
        answer["result"]["content"][0]["text"],
        "the report is written"
    );
    until("the old one is let go", || a.shop.open_sessions() == 0).await;
    let rows = rows(&live.running.gateway);
    let outcome = rows.iter().find(|row| row.kind == "outcome").unwrap();
    assert_eq!(
        (outcome.code.as_str(), outcome.tool.as_str()),
        ("succeeded", "a__export_report")
    );
    assert!(rows.iter().any(|row| row.word() == "policy exchanged"));
    live.stop().await;
}

/// A server with changed settings keeps its tools before any agent lists them again.
#[tokio::test(flavor = "multi_thread")]
async fn a_changed_server_answers_the_next_call() {
    let a = shop_of(Era::Handshake);
    let mut settings = json!({"servers": {"a": at_with(&a, json!({"start": "lazy"}))}});
    let live = Live::start(&settings).await;
    let agent = Agent::of(Era::Handshake, &live.url, "{}").await;
    assert!(worked(&agent.call("a__echo", json!({})).await));
    for concurrency in [3, 5, 7] {
        settings["servers"]["a"]["concurrency"] = json!(concurrency);
        let changes = live.reload(&settings).await.unwrap();
        assert_eq!(changes.changed, ["a"]);
        let answer = agent.call("a__echo", json!({})).await;
        assert!(worked(&answer), "{answer}");
        assert_eq!(agent.tools().await.len(), 7);
    }
    // Sessions keep their state.
    assert_eq!(live.running.gateway.conversations().len(), 1);
    live.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_used_changes_nothing() {
    let a = shop_of(Era::Handshake);
    let good = json!({"servers": {"a": at_with(&a, json!({}))}});
    let live = Live::start(&good).await;
    let agent = Agent::of(Era::Handshake, &live.url, "{}").await;
    let with = |key: &str, value: Value| {
        let mut settings = good.clone();
        settings[key] = value;
        settings
    };
    let path = live.folder.path().join("toolwarden.yaml");
    for text in [
        "policy: {tools: {x: {grup: 1}}}",
        "servers: {a: {url: 'http://h', tool_defaults: {rate_limit: x}}}",
        "servers: [",
        "servers: {a: 7}",
        "sevrers: {}",
        "identity: {anonymous: '${NOPE_X}'}",
    ] {
        let refused = Settings::of_text(text, &path, &|_| None);
        assert!(refused.is_err(), "{text}");
    }
    for (settings, why) in [
        (
            with("identity", json!({})),
            "no caller could use the gateway",
        ),
        (
            with(
                "identity",
                json!({"jwt": [{"audience": "a", "public_key": "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"}]}),
            ),
            "key",
        ),
    ] {
        let before = live.running.gateway.settings();
        let error = live.reload(&settings).await.unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
        assert!(
            Arc::ptr_eq(&before, &live.running.gateway.settings()),
            "{why}"
        );
        assert!(worked(&agent.call("a__echo", json!({})).await), "{why}");
    }
    live.running.refused();
    live.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_waits_for_calls_under_way() {
    let a = shop_of(Era::Handshake);
    let settings = json!({"servers": {"a": at_with(&a, json!({}))}, "drain": "20s"});
    let live = Live::start(&settings).await;
    let agent = Arc::new(Agent::of(Era::Handshake, &live.url, "{}").await);
    agent.tools().await;
    let under_way = tokio::spawn({
        let agent = Arc::clone(&agent);
        async move { agent.ask("tools/call", slow()).await }
    });
    until("it is in flight", || {
        a.shop.seen().calls_of("export_report") == 1
    })
    .await;
    let store = live.running.gateway.settings().store.clone();
    let url = live.url.clone();
    live.running.shutdown().begin();
    until_async("no connection is let in", async || {
        let client = super::client();
        client
            .get(&url)
            .timeout(Duration::from_secs(1))
            .send()
            .await
            .is_err()
    })
    .await;
    let answer = under_way.await.unwrap();
    assert!(worked(&answer), "{answer}");
    let served = live.serving.await.unwrap();
    assert_eq!(served.aborted_connections, 0);
    drop(live.running);
    assert_eq!(a.shop.open_sessions(), 0, "sessions are ended, not left");
    until("all is written", || {
        super::rows_in(&store)
            .iter()
            .any(|row| row.word() == "outcome succeeded")
    })
    .await;
}

/// Whether the gateway shows a certificate, which is its own authority.
async fn shows(live: &Live, certificate: &CertificateDer<'static>) -> bool {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(live.running.address()).await.unwrap();
    let name = "localhost".try_into().unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, stream).await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn renewed_certificates_are_taken_over() {
    let certificates = TempDir::new().unwrap();
    let renew = || {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let file = |name: &str, text: String| {
            let path = certificates.path().join(name);
            std::fs::write(path, text).unwrap();
        };
        file("gateway.pem", made.cert.pem());
        file("gateway.key", made.signing_key.serialize_pem());
        made.cert.der().clone()
    };
    let first = renew();
    let settings = json!({
        "servers": {},
        "identity": identity(&["ada"]),
        "listen": {"address": "127.0.0.1:0", "tls": {
            "certificate": certificates.path().join("gateway.pem"),
            "key": certificates.path().join("gateway.key"),
        }},
    });
    let live = Live::start(&settings).await;
    assert!(shows(&live, &first).await);
    let second = renew();
    assert!(shows(&live, &first).await, "not reloaded yet");
    let changes = live.reload(&settings).await.unwrap();
    assert!(changes.need_restart.is_empty(), "{changes:?}");
    assert!(shows(&live, &second).await);
    assert!(!shows(&live, &first).await);

    // Invalid settings change nothing.
    std::fs::write(certificates.path().join("gateway.pem"), "broken").unwrap();
    live.reload(&settings).await.unwrap_err();
    assert!(shows(&live, &second).await);
    live.stop().await;
}
