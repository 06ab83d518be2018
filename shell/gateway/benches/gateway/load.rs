//! Clients that call a tool again as soon as they have their answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::bytes_body::{BytesBody, read};
use super::echo::tool;
use super::warden::KEY;

/// The version clients ask for.
const VERSION: &str = "2025-11-25";
const STATELESS: &str = "2026-07-28";
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The ids of requests: no two are alike.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Which calls are made.
pub(crate) struct LoadCalls {
    names: Vec<String>,
    /// The text of the argument, in JSON.
    text: String,
    is_stateless: bool,
}

impl LoadCalls {
    /// Calls tools in turns, each with a text of this many bytes.
    pub(crate) fn new(prefix: &str, tools: usize, bytes: usize, is_stateless: bool) -> Self {
        let line = r"The quick brown fox jumps over the lazy dog, and says 42 times: no.\n";
        let mut text = String::with_capacity(bytes + 2);
        text.push('"');
        while text.len() + line.len() < bytes {
            text.push_str(line);
        }
        while text.len() < bytes {
            text.push('.');
        }
        text.push('"');
        Self {
            names: (0..tools)
                .map(|it| format!("{prefix}{}", tool(it)))
                .collect(),
            text,
            is_stateless,
        }
    }

    fn name(&self, id: u64) -> &str {
        let at = usize::try_from(id).unwrap() % self.names.len();
        &self.names[at]
    }

    fn body(&self, id: u64) -> String {
        let (name, text) = (self.name(id), &self.text);
        let meta = if self.is_stateless {
            r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#
        } else {
            ""
        };
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{name}","arguments":{{"text":{text},"limit":10,"tags":["a","b"]}}{meta}}}}}"#
        )
    }
}

/// Clients that are connected and have sessions.
pub(crate) struct ClientPool {
    clients: Vec<Client>,
}

struct Client {
    sender: SendRequest<BytesBody>,
    path: Uri,
    /// The headers of each of its sessions.
    sessions: Vec<HeaderMap>,
    turn: usize,
}

/// The outcome of some calls.
#[derive(Default)]
pub(crate) struct LoadResult {
    pub(crate) took: Duration,
    /// How long each call took, in nanoseconds, sorted.
    pub(crate) latencies: Vec<u64>,
}

impl LoadResult {
    pub(crate) fn calls(&self) -> f64 {
        self.latencies.len() as f64
    }

    /// The time, in milliseconds, within which such a share of the calls was answered.
    pub(crate) fn within(&self, share: f64) -> f64 {
        let last = self.latencies.len() - 1;
        let at = (last as f64 * share).round() as usize;
        self.latencies[at] as f64 / 1e6
    }
}

impl ClientPool {
    /// Connects clients, each with this many sessions.
    pub(crate) async fn open(url: &str, clients: usize, sessions: usize) -> Self {
        let connect_request = (0..clients).map(|_| {
            let url: Uri = url.parse().unwrap();
            tokio::spawn(async move {
                let mut client = Client::connect(&url).await;
                for _ in 0..sessions {
                    client.open_session().await;
                }
                client
            })
        });
        Self::gather(connect_request.collect()).await
    }

    /// Connects clients that have one session together.
    pub(crate) async fn open_shared(url: &str, clients: usize) -> Self {
        let mut crowd = Self::open(url, 1, 1).await;
        let shared = crowd.clients[0].sessions.clone();
        let more = Self::open(url, clients - 1, 0).await;
        crowd.clients.extend(more.clients);
        for client in &mut crowd.clients {
            client.sessions.clone_from(&shared);
        }
        crowd
    }

    /// Connects clients of the era without sessions.
    pub(crate) async fn open_stateless(url: &str, clients: usize) -> Self {
        let mut crowd = Self::open(url, clients, 0).await;
        for client in &mut crowd.clients {
            let mut headers = client.headers();
            headers.insert("mcp-protocol-version", HeaderValue::from_static(STATELESS));
            headers.insert("mcp-method", HeaderValue::from_static("tools/call"));
            client.sessions.push(headers);
        }
        crowd
    }

    async fn gather(connect_request: Vec<tokio::task::JoinHandle<Client>>) -> Self {
        let mut clients = Vec::with_capacity(connect_request.len());
        for client in connect_request {
            clients.push(client.await.unwrap());
        }
        Self { clients }
    }

    /// Calls once, and returns whether it succeeded.
    pub(crate) async fn try_once(&mut self, calls: &LoadCalls) -> Result<(), String> {
        self.clients[0].call(calls).await
    }

    /// Calls until the first call goes well: a gateway may still look at its servers.
    pub(crate) async fn until_ready(&mut self, calls: &LoadCalls) {
        let began = Instant::now();
        while let Err(told) = self.try_once(calls).await {
            assert!(began.elapsed() < PATIENCE, "calls never go well: {told}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// All clients call for a while.
    pub(crate) async fn run(&mut self, calls: &Arc<LoadCalls>, time: Duration) -> LoadResult {
        let began = Instant::now();
        let until = began + time;
        let running: Vec<_> = std::mem::take(&mut self.clients)
            .into_iter()
            .map(|mut client| {
                let calls = Arc::clone(calls);
                tokio::spawn(async move {
                    let mut latencies = Vec::new();
                    let mut now = Instant::now();
                    while now < until || latencies.is_empty() {
                        client.call(&calls).await.unwrap();
                        let then = Instant::now();
                        let took = then.duration_since(now).as_nanos();
                        latencies.push(u64::try_from(took).unwrap());
                        now = then;
                    }
                    (client, latencies)
                })
            })
            .collect();
        let mut ran = LoadResult::default();
        for client in running {
            let (client, latencies) = client.await.unwrap();
            self.clients.push(client);
            ran.latencies.extend(latencies);
        }
        ran.took = began.elapsed();
        ran.latencies.sort_unstable();
        ran
    }
}

impl Client {
    async fn connect(url: &Uri) -> Self {
        Self {
            sender: connected(url).await,
            path: url.clone(),
            sessions: Vec::new(),
            turn: 0,
        }
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let host = self.path.authority().unwrap().as_str();
        headers.insert(HOST, HeaderValue::try_from(host).unwrap());
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let both = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(ACCEPT, both);
        let key = format!("Bearer {KEY}");
        headers.insert(AUTHORIZATION, HeaderValue::try_from(key).unwrap());
        headers.insert("toolwarden-groups", HeaderValue::from_static("bench"));
        headers
    }

    async fn open_session(&mut self) {
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let initialize = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"initialize","params":{{"protocolVersion":"{VERSION}","capabilities":{{}},"clientInfo":{{"name":"bench","version":"1"}}}}}}"#
        );
        let mut headers = self.headers();
        let (status, answered, body) = self.post(headers.clone(), initialize).await;
        let body = String::from_utf8_lossy(&body);
        assert_eq!(status, StatusCode::OK, "{body}");
        if let Some(session) = answered.get("mcp-session-id") {
            headers.insert("mcp-session-id", session.clone());
        }
        let version = body.split_once("\"protocolVersion\":");
        let Some((_, version)) = version else {
            panic!("no session is opened: {body}");
        };
        let version = version.split('"').nth(1).unwrap();
        headers.insert(
            "mcp-protocol-version",
            HeaderValue::try_from(version).unwrap(),
        );
        let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        self.post(headers.clone(), initialized.to_owned()).await;
        self.sessions.push(headers);
    }

    async fn call(&mut self, calls: &LoadCalls) -> Result<(), String> {
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        self.turn = (self.turn + 1) % self.sessions.len();
        let mut headers = self.sessions[self.turn].clone();
        if calls.is_stateless {
            let name = HeaderValue::try_from(calls.name(id)).unwrap();
            headers.insert("mcp-name", name);
        }
        let (status, _, body) = self.post(headers, calls.body(id)).await;
        // An error response is shorter than the request.
        if status == StatusCode::OK && body.len() > calls.text.len() {
            return Ok(());
        }
        let start = body.get(..body.len().min(400)).unwrap_or_default();
        Err(format!("{status} {}", String::from_utf8_lossy(start)))
    }

    async fn post(&mut self, headers: HeaderMap, text: String) -> (StatusCode, HeaderMap, Bytes) {
        let request = || {
            let mut request = Request::new(BytesBody::new(text.clone()));
            *request.method_mut() = Method::POST;
            *request.uri_mut() = Uri::from_static("/mcp");
            *request.headers_mut() = headers.clone();
            request
        };
        let answered = async {
            // Some programs close connections that were idle for five seconds, possibly just now.
            if self.sender.ready().await.is_err() {
                self.sender = connected(&self.path).await;
            }
            let response = match self.sender.send_request(request()).await {
                Err(error) if error.is_canceled() => {
                    self.sender = connected(&self.path).await;
                    self.sender.send_request(request()).await.unwrap()
                }
                sent => sent.unwrap(),
            };
            let (parts, body) = response.into_parts();
            (parts.status, parts.headers, read(body).await.unwrap())
        };
        tokio::time::timeout(PATIENCE, answered).await.unwrap()
    }
}

async fn connected(url: &Uri) -> SendRequest<BytesBody> {
    let authority = url.authority().unwrap().as_str();
    let stream = TcpStream::connect(authority).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(async move { drop(connection.await) });
    sender
}
