//! A provider on loopback that follows a script, over real HTTP.
//!
//! Everything it serves is synthetic: written by hand from reports about real providers.

mod chunked_body;
mod misbehaviours;
mod provider_response;
mod quirks;
mod weather;
mod wire_replies;

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use serde_json::Value;
use tokio::sync::oneshot;

pub use misbehaviours::{Misbehaviour, misbehaviours};
pub use provider_response::ProviderResponse;
pub use quirks::{Quirk, quirks};
pub use weather::{chat_completion, event_stream, good, streamed_completion, tool_call};
pub use wire_replies::{WireReplies, wire_replies};

/// The maximum size of a request.
const MAX_REQUEST_BYTES: usize = 64 << 20;

/// How a provider answers: a function of the request and the number of earlier requests.
#[derive(Clone)]
pub struct Script(Arc<ScriptFn>);

type ScriptFn = dyn Fn(&RecordedRequest, usize) -> ProviderResponse + Send + Sync;

impl Script {
    /// The same response to every request.
    #[must_use]
    pub fn always(answer: ProviderResponse) -> Self {
        Self::by(move |_, _| answer.clone())
    }

    /// One response after another; the last one repeats.
    ///
    /// # Panics
    /// A request arrives and the script has no response.
    #[must_use]
    #[expect(
        clippy::expect_used,
        reason = "a script without answers is a broken test"
    )]
    pub fn in_turn(answers: Vec<ProviderResponse>) -> Self {
        Self::by(move |_, before| {
            let answer = answers.get(before).or(answers.last());
            answer.expect("the script has an answer").clone()
        })
    }

    /// One response to requests for a whole reply, another to requests for a stream.
    #[must_use]
    pub fn by_mode(nonstream: ProviderResponse, stream: ProviderResponse) -> Self {
        Self::by(move |seen, _| {
            if seen.wants_stream() {
                stream.clone()
            } else {
                nonstream.clone()
            }
        })
    }

    /// A function of the request and the number of earlier requests.
    #[must_use]
    pub fn by(
        answer: impl Fn(&RecordedRequest, usize) -> ProviderResponse + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(answer))
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Script")
    }
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct RecordedRequest {
    /// The time of arrival.
    pub at: Instant,
    /// The path, with its query.
    pub path: String,
    /// The headers.
    pub headers: Vec<(String, String)>,
    /// The body, null if it is not JSON.
    pub body: Value,
}

impl RecordedRequest {
    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(it, _)| it == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Whether the request asks for a stream.
    #[must_use]
    pub fn wants_stream(&self) -> bool {
        self.body.get("stream") == Some(&Value::Bool(true))
            || self.path.contains(":streamGenerateContent")
    }
}

/// A provider on a free port of 127.0.0.1. Dropping it ends the provider.
#[derive(Debug)]
pub struct FakeProvider {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<RecordedRequest>>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl FakeProvider {
    /// Starts the provider.
    ///
    /// # Panics
    /// The machine has no free port or cannot start a thread.
    #[must_use]
    #[expect(
        clippy::expect_used,
        reason = "a provider that cannot start must fail the test"
    )]
    pub fn start(script: Script) -> Self {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        listener
            .set_nonblocking(true)
            .expect("a socket that does not block");
        let address = listener.local_addr().expect("the address of the socket");
        let requests = Arc::default();
        let (stop, stopped) = oneshot::channel();
        let serving = ProviderState {
            script,
            requests: Arc::clone(&requests),
        };
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(serve(listener, serving, stopped));
            // Responses that hang are not awaited.
            runtime.shutdown_background();
        });
        Self {
            address,
            requests,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Its address, without a path.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far, in the order they arrived.
    #[must_use]
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Drop for FakeProvider {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was already reported.
            let _panicked = thread.join();
        }
    }
}

#[derive(Clone, Debug)]
struct ProviderState {
    script: Script,
    requests: Arc<Mutex<Vec<RecordedRequest>>>,
}

#[expect(
    clippy::expect_used,
    reason = "a provider that cannot start must fail the test"
)]
async fn serve(
    listener: std::net::TcpListener,
    serving: ProviderState,
    stopped: oneshot::Receiver<()>,
) {
    let listener = tokio::net::TcpListener::from_std(listener).expect("a socket of the runtime");
    let router = Router::new().fallback(respond).with_state(serving);
    tokio::select! {
        served = axum::serve(listener, router) => served.expect("the server runs"),
        _dropped = stopped => {}
    }
}

async fn respond(State(serving): State<ProviderState>, request: Request) -> Response<Body> {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, MAX_REQUEST_BYTES).await.unwrap_or_default();
    let headers = head.headers.iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        (name.as_str().to_owned(), value)
    });
    let seen = RecordedRequest {
        at: Instant::now(),
        path: head.uri.to_string(),
        headers: headers.collect(),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    };
    let before = {
        let mut all = serving
            .requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        all.push(seen.clone());
        all.len() - 1
    };
    (serving.script.0)(&seen, before).respond().await
}
