use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};

/// A server that stores what it receives, and gives the scripted responses; it repeats the last one.
#[derive(Clone)]
pub(super) struct WebhookReceiver {
    pub(super) url: String,
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    answers: VecDeque<ScriptedReply>,
    got: Vec<ReceivedPost>,
}

#[derive(Clone)]
pub(super) struct ScriptedReply {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, &'static str)>,
    pub(super) body: &'static str,
}

/// A received request.
#[derive(Clone, Debug)]
pub(super) struct ReceivedPost {
    pub(super) uri: String,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
}

pub(super) fn answer(status: u16, body: &'static str) -> ScriptedReply {
    ScriptedReply {
        status,
        headers: Vec::new(),
        body,
    }
}

impl WebhookReceiver {
    pub(super) async fn start(answers: &[ScriptedReply]) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Mutex::new(Shared {
            answers: answers.to_vec().into(),
            got: Vec::new(),
        }));
        let router = Router::new()
            .fallback(handle)
            .with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, shared }
    }

    /// The host as messages show it.
    pub(super) fn host(&self) -> String {
        self.url.trim_start_matches("http://").to_owned()
    }

    pub(super) fn received(&self) -> Vec<ReceivedPost> {
        self.shared.lock().unwrap().got.clone()
    }
}

async fn handle(
    State(shared): State<Arc<Mutex<Shared>>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mut shared = shared.lock().unwrap();
    shared.got.push(ReceivedPost {
        uri: uri.to_string(),
        headers,
        body: String::from_utf8(body.to_vec()).unwrap(),
    });
    let answer = if shared.answers.len() > 1 {
        shared.answers.pop_front().unwrap()
    } else {
        shared.answers[0].clone()
    };
    let status = StatusCode::from_u16(answer.status).unwrap();
    let mut response = (status, answer.body).into_response();
    for (name, value) in answer.headers {
        response.headers_mut().insert(name, value.parse().unwrap());
    }
    response
}
