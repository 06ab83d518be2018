//! A gateway with a shop behind it and three callers: an administrator and two agents.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use toolwarden_demo::{DemoServer, ShopOptions};
use toolwarden_gateway::Gateway;
use toolwarden_gateway::api::{ApiParts, openapi_document, router};
use toolwarden_gateway::listener::Shutdown;
use toolwarden_gateway::runtime::{RunningGateway, load_policy};
use toolwarden_settings::Settings;

/// The caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    Anonymous,
    Root,
    Ann,
    Bob,
}

/// A running gateway and its OpenAPI document.
pub(super) struct AllowedHosts {
    pub(super) shop: DemoServer,
    pub(super) gateway: Gateway,
    pub(super) base: String,
    http: reqwest::Client,
    document: Value,
    /// Operations that were asked.
    requested_operations: Mutex<BTreeSet<String>>,
    shutdown: Shutdown,
    serving: Option<JoinHandle<()>>,
    _folder: TempDir,
}

const KEYS: [(&str, &str); 3] = [
    ("root", "root-0123456789-abcdef"),
    ("ann", "ann-0123456789-abcdefg"),
    ("bob", "bob-0123456789-abcdefg"),
];

impl AllowedHosts {
    /// The usual one.
    pub(super) async fn start() -> Self {
        Self::start_with(json!({})).await
    }

    /// One whose settings differ in some members.
    pub(super) async fn start_with(other: Value) -> Self {
        Self::start_patiently(other, Duration::from_secs(600)).await
    }

    /// A site that waits this long for the outcome of calls.
    pub(super) async fn start_patiently(other: Value, call_patience: Duration) -> Self {
        let shop = DemoServer::start(ShopOptions::default()).unwrap();
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("toolwarden.yaml");
        let mut settings = usual(&shop);
        for (name, value) in other.as_object().unwrap() {
            settings[name] = value.clone();
        }
        std::fs::write(&path, settings.to_string()).unwrap();
        let loaded = Settings::read(&path).unwrap();
        let policy = load_policy(&loaded.settings, &path).unwrap();
        let masked = loaded.masked();
        let running = RunningGateway::start(loaded.settings, policy, masked.clone())
            .await
            .unwrap();
        let parts = ApiParts {
            notifier: running.notifier.clone(),
            masked_settings: std::sync::Arc::new(Mutex::new(masked)),
            complete_timeout: call_patience,
        };
        let mcp = toolwarden_gateway::http::router(running.frontend.clone());
        let routes = mcp.merge(router(running.frontend.clone(), parts));
        let base = format!("http://{}", running.address());
        let (gateway, shutdown) = (running.gateway.clone(), running.shutdown());
        let serving = tokio::spawn(async move {
            running.serve(routes).await;
        });
        let allowed_hosts = Self {
            shop,
            gateway,
            http: client(&base),
            base,
            document: openapi_document(),
            requested_operations: Mutex::default(),
            shutdown,
            serving: Some(serving),
            _folder: folder,
        };
        // The first list pins the definitions.
        allowed_hosts.get(Who::Root, "/api/v1/tools?all=true").await;
        allowed_hosts
    }

    pub(super) async fn get(&self, who: Who, path: &str) -> (u16, Value) {
        self.ask(who, "GET", path, None).await
    }

    pub(super) async fn post(&self, who: Who, path: &str, body: Value) -> (u16, Value) {
        self.ask(who, "POST", path, Some(body)).await
    }

    /// The response to an administrator.
    pub(super) async fn root(&self, path: &str) -> Value {
        let (status, answer) = self.get(Who::Root, path).await;
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    /// Sends a request, and checks the response against the document.
    pub(super) async fn ask(
        &self,
        who: Who,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> (u16, Value) {
        let body = body.map(|it| it.to_string());
        let (status, _, text) = self.send(who, method, path, body).await;
        let answer: Value = serde_json::from_str(&text).unwrap_or_else(|_| json!(text));
        self.hold(method, path, status, &answer);
        (status, answer)
    }

    /// Sends any request; returns status, headers and text.
    pub(super) async fn send(
        &self,
        who: Who,
        method: &str,
        path: &str,
        body: Option<String>,
    ) -> (u16, reqwest::header::HeaderMap, String) {
        let method = method.parse().unwrap();
        let request = self.http.request(method, format!("{}{path}", self.base));
        let mut request = request.timeout(Duration::from_secs(30));
        let name = format!("{who:?}").to_lowercase();
        if let Some((_, key)) = KEYS.iter().find(|(principal, _)| *principal == name) {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        if let Some(body) = body {
            request = request
                .header("content-type", "application/json")
                .body(body);
        }
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        (status, headers, response.text().await.unwrap())
    }

    /// Checks a response against the document, and rejects additional members.
    fn hold(&self, method: &str, path: &str, status: u16, answer: &Value) {
        let path = path.split('?').next().unwrap();
        let Some(template) = self.template(path) else {
            assert_eq!(status, 404, "{path} is not in the document");
            return;
        };
        let operation = &self.document["paths"][&template][method.to_lowercase()];
        if operation.is_null() {
            assert_eq!(status, 405, "{method} {path} is not in the document");
            return;
        }
        self.requested_operations
            .lock()
            .unwrap()
            .insert(format!("{method} {template}"));
        let content = &operation["responses"][status.to_string()]["content"];
        let schema = content.as_object().and_then(|it| it.values().next());
        let schema = schema.unwrap_or_else(|| panic!("{method} {path}: {status}: {answer}"));
        let mut schema = schema["schema"].clone();
        schema["components"] = self.document["components"].clone();
        close(&mut schema);
        let validator = jsonschema::options()
            .offline()
            .should_validate_formats(true)
            .build(&schema)
            .unwrap();
        let faults = validator.iter_errors(answer);
        let faults: Vec<String> = faults
            .map(|it| format!("{}: {it}", it.instance_path()))
            .collect();
        assert_eq!(faults, [""; 0], "{method} {path}: {answer:#}");
    }

    /// The path of the document that a path fits.
    fn template(&self, path: &str) -> Option<String> {
        let paths = self.document["paths"].as_object().unwrap();
        if paths.contains_key(path) {
            return Some(path.to_owned());
        }
        let fits = |template: &&String| {
            let (a, b) = (template.split('/'), path.split('/'));
            a.clone().count() == b.clone().count()
                && a.zip(b)
                    .all(|(a, b)| a == b || (a.starts_with('{') && !b.is_empty()))
        };
        paths.keys().find(fits).cloned()
    }

    /// Operations that were asked.
    pub(super) fn asked(&self) -> BTreeSet<String> {
        self.requested_operations.lock().unwrap().clone()
    }

    /// Lets the refund of the shop drift, and waits until that is seen.
    pub(super) async fn drift(&self) -> Value {
        self.shop.shop.drift();
        self.shop.shop.notify_list_changed();
        for _ in 0..200 {
            let alerts = self.root("/api/v1/alerts").await;
            if let Some(alert) = alerts["alerts"].get(0) {
                return alert.clone();
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("the drift was not seen");
    }

    /// Shuts it down gracefully.
    pub(super) async fn stop(mut self) {
        self.shutdown.begin();
        self.serving.take().unwrap().await.unwrap();
    }
}

impl Drop for AllowedHosts {
    fn drop(&mut self) {
        self.shutdown.begin();
    }
}

fn usual(shop: &DemoServer) -> Value {
    let keys = KEYS.map(|(principal, key)| json!({"principal": principal, "key": key}));
    json!({
        "listen": "127.0.0.1:0",
        "store": "store.db",
        "drain": "1s",
        "servers": {"shop": {"url": shop.url}},
        "identity": {"api_keys": keys, "admins": ["root"]},
        "policy": {
            "tools": {
                "shop__search_orders": {"group": ["read"], "state": "found"},
                "shop__refund_order": {"group": ["write"], "available_in_states": ["found"]},
                "shop__echo": {"group": ["read"], "rate_limit": 2},
                "ghost": {"group": ["read"]},
            },
            "principals": {
                "ann": {"groups": ["default", "read", "write"]},
                "bob": {"groups": ["default"]},
                "root": {"groups": ["*"]},
            },
        },
    })
}

/// A client for loopback.
pub(super) fn client(url: &str) -> reqwest::Client {
    let builder = toolwarden_http::client(&url.parse().unwrap()).unwrap();
    builder.build().unwrap()
}

/// Forbids members that are not named.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            for value in members.values_mut() {
                close(value);
            }
            if members.get("properties").is_some_and(Value::is_object)
                && members.get("type") == Some(&json!("object"))
            {
                members.insert("additionalProperties".to_owned(), json!(false));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}
