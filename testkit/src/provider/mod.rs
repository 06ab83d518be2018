//! A provider on loopback that answers what a script says, over real HTTP.
//!
//! Everything it serves is synthetic: written by hand after what providers were reported to do.

mod answer;
mod basic;
mod pieces;
mod quirks;
mod weather;

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

pub use answer::Answer;
pub use basic::{Basic, basic};
pub use quirks::{Quirk, quirks};
pub use weather::{event_stream, good, streamed, tool_call, whole};

/// The most bytes of a request that are read.
const REQUEST_BYTES: usize = 64 << 20;

/// What a provider answers: a function of the request and of how many came before.
#[derive(Clone)]
pub struct Script(Arc<Lines>);

type Lines = dyn Fn(&Seen, usize) -> Answer + Send + Sync;

impl Script {
    /// The same answer to everyone.
    #[must_use]
    pub fn always(answer: Answer) -> Self {
        Self::by(move |_, _| answer.clone())
    }

    /// One answer after the other; the last one stays.
    ///
    /// # Panics
    /// When a request comes and there is no answer.
    #[must_use]
    #[expect(
        clippy::expect_used,
        reason = "a script without answers is a broken test"
    )]
    pub fn in_turn(answers: Vec<Answer>) -> Self {
        Self::by(move |_, before| {
            let answer = answers.get(before).or(answers.last());
            answer.expect("the script has an answer").clone()
        })
    }

    /// One answer to requests for a whole reply, another to requests for a stream.
    #[must_use]
    pub fn by_mode(nonstream: Answer, stream: Answer) -> Self {
        Self::by(move |seen, _| {
            if seen.wants_stream() {
                stream.clone()
            } else {
                nonstream.clone()
            }
        })
    }

    /// Whatever a function of the request and of the number of earlier ones says.
    #[must_use]
    pub fn by(answer: impl Fn(&Seen, usize) -> Answer + Send + Sync + 'static) -> Self {
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
pub struct Seen {
    /// When.
    pub at: Instant,
    /// The path, with its query.
    pub path: String,
    /// The headers.
    pub headers: Vec<(String, String)>,
    /// The body, null if it is not JSON.
    pub body: Value,
}

impl Seen {
    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(it, _)| it == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Whether a stream is asked for.
    #[must_use]
    pub fn wants_stream(&self) -> bool {
        self.body.get("stream") == Some(&Value::Bool(true))
            || self.path.contains(":streamGenerateContent")
    }
}

/// A provider on a free port of 127.0.0.1. It is gone when it is dropped.
#[derive(Debug)]
pub struct FakeProvider {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl FakeProvider {
    /// Starts it.
    ///
    /// # Panics
    /// When the machine gives no port or no thread.
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
        let seen = Arc::default();
        let (stop, stopped) = oneshot::channel();
        let serving = Serving {
            script,
            seen: Arc::clone(&seen),
        };
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(serve(listener, serving, stopped));
            // Answers that hang are not waited for.
            runtime.shutdown_background();
        });
        Self {
            address,
            seen,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Where it is, without a path.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far, in the order they arrived.
    #[must_use]
    pub fn requests(&self) -> Vec<Seen> {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Drop for FakeProvider {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            let _panicked = thread.join();
        }
    }
}

#[derive(Clone, Debug)]
struct Serving {
    script: Script,
    seen: Arc<Mutex<Vec<Seen>>>,
}

#[expect(
    clippy::expect_used,
    reason = "a provider that cannot start must fail the test"
)]
async fn serve(listener: std::net::TcpListener, serving: Serving, stopped: oneshot::Receiver<()>) {
    let listener = tokio::net::TcpListener::from_std(listener).expect("a socket of the runtime");
    let router = Router::new().fallback(answer).with_state(serving);
    tokio::select! {
        served = axum::serve(listener, router) => served.expect("the server runs"),
        _dropped = stopped => {}
    }
}

async fn answer(State(serving): State<Serving>, request: Request) -> Response<Body> {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, REQUEST_BYTES).await.unwrap_or_default();
    let headers = head.headers.iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        (name.as_str().to_owned(), value)
    });
    let seen = Seen {
        at: Instant::now(),
        path: head.uri.to_string(),
        headers: headers.collect(),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    };
    let before = {
        let mut all = serving.seen.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(seen.clone());
        all.len() - 1
    };
    (serving.script.0)(&seen, before).respond().await
}
