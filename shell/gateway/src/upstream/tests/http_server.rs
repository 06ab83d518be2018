use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use toolwarden_mcp::{Endpoint, ServerUrl};

use crate::upstream::task::OwnedTask;

/// An HTTP server with sessions, on a free port, as long as the value lives.
#[derive(Debug)]
pub(super) struct TestHttpServer {
    pub(super) behavior: Arc<ServerBehavior>,
    port: u16,
    _task: OwnedTask,
}

/// The controls of the server, and what it received.
#[derive(Debug, Default)]
pub(super) struct ServerBehavior {
    /// It speaks the stateless era.
    pub(super) stateless: AtomicBool,
    /// Calls are never answered.
    pub(super) hangs: AtomicBool,
    /// No session is known, not even a new one.
    pub(super) forgets: AtomicBool,
    /// The status of every answer, where it is not 0.
    pub(super) refuses: AtomicU32,
    /// How long calls take.
    pub(super) millis: AtomicU64,
    /// The most calls that were in flight at a time.
    pub(super) most: AtomicU32,
    now: AtomicU32,
    opened: AtomicU32,
    sessions: Mutex<BTreeSet<String>>,
    methods: Mutex<Vec<String>>,
}

impl TestHttpServer {
    pub(super) async fn open() -> Self {
        let desk = Arc::new(ServerBehavior::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let router = Router::new()
            .route("/mcp", post(take).delete(end))
            .with_state(Arc::clone(&desk));
        let serve = async move { axum::serve(listener, router).await.unwrap() };
        Self {
            behavior: desk,
            port,
            _task: OwnedTask(tokio::spawn(serve)),
        }
    }

    pub(super) fn endpoint(&self) -> Endpoint {
        Endpoint::Url(ServerUrl {
            url: format!("http://127.0.0.1:{}/mcp", self.port),
            headers: Vec::new(),
        })
    }
}

impl ServerBehavior {
    /// Forgets all sessions.
    pub(super) fn expire(&self) {
        self.sessions.lock().unwrap().clear();
    }

    pub(super) fn open_sessions(&self) -> usize {
        self.sessions.lock().unwrap().len()
    }

    /// How often a method came.
    pub(super) fn count(&self, method: &str) -> usize {
        let methods = self.methods.lock().unwrap();
        methods.iter().filter(|it| *it == method).count()
    }
}

async fn end(State(desk): State<Arc<ServerBehavior>>, headers: HeaderMap) -> StatusCode {
    desk.sessions.lock().unwrap().remove(&session(&headers));
    StatusCode::OK
}

async fn take(
    State(desk): State<Arc<ServerBehavior>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let message: Value = serde_json::from_slice(&body).unwrap();
    let method = message["method"].as_str().unwrap_or_default();
    desk.methods.lock().unwrap().push(method.to_owned());
    let status = u16::try_from(desk.refuses.load(Ordering::Acquire)).unwrap();
    if status != 0 {
        return StatusCode::from_u16(status).unwrap().into_response();
    }
    let stateless = desk.stateless.load(Ordering::Acquire);
    let id = message["id"].clone();
    match method {
        "server/discover" if stateless => result(
            &id,
            &json!({"supportedVersions": ["2026-07-28"], "capabilities": {}, "resultType": "complete"}),
        ),
        "server/discover" => StatusCode::BAD_REQUEST.into_response(),
        "initialize" => {
            let number = desk.opened.fetch_add(1, Ordering::AcqRel) + 1;
            let session = format!("session-{number}");
            if !desk.forgets.load(Ordering::Acquire) {
                desk.sessions.lock().unwrap().insert(session.clone());
            }
            let connect_request = json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {},
                "serverInfo": {"name": "site", "version": "1"},
            });
            ([("mcp-session-id", session)], result(&id, &connect_request)).into_response()
        }
        _ if !stateless && !desk.sessions.lock().unwrap().contains(&session(&headers)) => {
            StatusCode::NOT_FOUND.into_response()
        }
        "tools/call" => {
            desk.work().await;
            result(&id, &json!({"session": session(&headers)}))
        }
        _ if id.is_null() => StatusCode::ACCEPTED.into_response(),
        _ => {
            answer(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no"}}))
        }
    }
}

impl ServerBehavior {
    async fn work(&self) {
        let now = self.now.fetch_add(1, Ordering::AcqRel) + 1;
        self.most.fetch_max(now, Ordering::AcqRel);
        if self.hangs.load(Ordering::Acquire) {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(Duration::from_millis(self.millis.load(Ordering::Acquire))).await;
        self.now.fetch_sub(1, Ordering::AcqRel);
    }
}

fn session(headers: &HeaderMap) -> String {
    let session = headers.get("mcp-session-id");
    session.map_or_else(String::new, |it| it.to_str().unwrap().to_owned())
}

fn result(id: &Value, result: &Value) -> Response {
    answer(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn answer(message: &Value) -> Response {
    ([("content-type", "application/json")], message.to_string()).into_response()
}
