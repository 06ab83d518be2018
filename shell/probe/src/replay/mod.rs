//! Recorded answers, served over real HTTP, so that a run can be repeated without the providers.

mod body;
mod recording;
mod shelf;

use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, HeaderValue, Method, Response, StatusCode, Uri};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::exchange::{RECORDED_HEADER, TRIAL_HEADER};
use body::Events;
use shelf::{Question, Shelf};

pub use recording::Recording;

/// The largest request that is read.
const REQUEST_BYTES: usize = 64 << 20;

/// Headers that belong to a connection and not to an answer, or that the server writes itself.
const OF_THE_CONNECTION: [&str; 7] = [
    "connection",
    "content-length",
    "date",
    "keep-alive",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Serves recordings until `stop` is done; open answers are finished first.
///
/// A request is answered with the recording of the same request. One that was never recorded gets
/// the next recording of the same path and model, then of the same path, so that other clients can
/// talk to the server too. A path that begins with the name of a provider gets answers of that one
/// only: two may serve the same model.
///
/// # Errors
/// The socket cannot be used.
pub async fn serve(
    recordings: Vec<Recording>,
    listener: TcpListener,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let shelf = Arc::new(Mutex::new(Shelf::new(recordings)));
    let router = Router::new().fallback(answer).with_state(shelf);
    axum::serve(listener, router)
        .with_graceful_shutdown(stop)
        .await
}

async fn answer(State(shelf): State<Arc<Mutex<Shelf>>>, request: Request) -> Response<Body> {
    let (head, body) = request.into_parts();
    if head.method != Method::POST {
        return refused(
            StatusCode::NOT_FOUND,
            "only requests for replies are answered",
        );
    }
    let Ok(body) = to_bytes(body, REQUEST_BYTES).await else {
        return refused(StatusCode::PAYLOAD_TOO_LARGE, "the request is too large");
    };
    let Ok(body) = serde_json::from_slice::<Value>(&body) else {
        return refused(StatusCode::BAD_REQUEST, "the request is not JSON");
    };
    let trial = head.headers.get(TRIAL_HEADER);
    let question = Question {
        path: path_of(&head.uri),
        body,
        trial: trial.and_then(|it| it.to_str().ok()).map(str::to_owned),
    };
    let found = shelf
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take(&question);
    match found {
        Some(recording) => respond(&recording, question.trial.is_some()),
        None => refused(StatusCode::NOT_FOUND, "nothing was recorded for this path"),
    }
}

/// The path below any version, with its query.
fn path_of(uri: &Uri) -> String {
    uri.path_and_query()
        .map_or_else(|| uri.path().to_owned(), ToString::to_string)
}

fn respond(recording: &Recording, to_a_run: bool) -> Response<Body> {
    // Who is not one of our runs is told of a failure by a status.
    let status = recording.exchange.status.unwrap_or(504);
    let body = if recording.is_stream() {
        Body::new(Events::new(recording.exchange.body.clone()))
    } else {
        Body::from(recording.exchange.body.clone())
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    for (name, value) in &recording.exchange.headers {
        // A repeated run need not wait again.
        if to_a_run && name == "retry-after" {
            continue;
        }
        let header = HeaderName::try_from(name).ok();
        let header = header.zip(HeaderValue::try_from(value).ok());
        if let Some((name, value)) = header
            && !OF_THE_CONNECTION.contains(&name.as_str())
        {
            response.headers_mut().append(name, value);
        }
    }
    let recorded = recording.recorded().filter(|_| to_a_run);
    if let Some(value) = recorded.and_then(|it| HeaderValue::try_from(it).ok()) {
        response.headers_mut().insert(RECORDED_HEADER, value);
    }
    response
}

fn refused(status: StatusCode, message: &str) -> Response<Body> {
    let body = json!({"error": {"message": message, "type": "replay"}});
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
