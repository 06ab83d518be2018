//! Serves recorded responses over real HTTP, so that a run can be repeated without the providers.

mod event_body;
mod recorded_exchange;
mod recordings;

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
use event_body::EventBody;
use recordings::{Recordings, ReplayRequest};

pub use recorded_exchange::RecordedExchange;

/// The maximum size of a request.
const MAX_REQUEST_BYTES: usize = 64 << 20;

/// Headers that belong to a connection and not to a response, or that the server writes itself.
const CONNECTION_HEADERS: [&str; 7] = [
    "connection",
    "content-length",
    "date",
    "keep-alive",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Serves recordings until `stop` resolves; finishes open responses first.
///
/// A request of a run is answered with the recording of the same request in the same trial, and with
/// nothing else: a run never has more trials than were recorded, nor those of another suite or model.
/// Other clients get the recording of the same request, else the next one of the same path and model,
/// then of the same path. A path that begins with the name of a provider gets only responses of
/// that provider, because two providers may serve the same model.
///
/// # Errors
/// The socket cannot be used.
pub async fn serve(
    recordings: Vec<RecordedExchange>,
    listener: TcpListener,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let recordings = Arc::new(Mutex::new(Recordings::new(recordings)));
    let router = Router::new().fallback(handle).with_state(recordings);
    axum::serve(listener, router)
        .with_graceful_shutdown(stop)
        .await
}

async fn handle(
    State(recordings): State<Arc<Mutex<Recordings>>>,
    request: Request,
) -> Response<Body> {
    let (head, body) = request.into_parts();
    if head.method != Method::POST {
        return error_response(
            StatusCode::NOT_FOUND,
            "only requests for replies are answered",
        );
    }
    let Ok(body) = to_bytes(body, MAX_REQUEST_BYTES).await else {
        return error_response(StatusCode::PAYLOAD_TOO_LARGE, "the request is too large");
    };
    let Ok(body) = serde_json::from_slice::<Value>(&body) else {
        return error_response(StatusCode::BAD_REQUEST, "the request is not JSON");
    };
    let trial = head.headers.get(TRIAL_HEADER);
    let question = ReplayRequest {
        path: path_of(&head.uri),
        body,
        trial: trial.and_then(|it| it.to_str().ok()).map(str::to_owned),
    };
    let found = recordings
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .best_match(&question);
    match found {
        Some(recording) => respond(&recording, question.trial.is_some()),
        None if question.trial.is_some() => {
            error_response(StatusCode::NOT_FOUND, "nothing was recorded for this trial")
        }
        None => error_response(StatusCode::NOT_FOUND, "nothing was recorded for this path"),
    }
}

/// The path with its query.
fn path_of(uri: &Uri) -> String {
    uri.path_and_query()
        .map_or_else(|| uri.path().to_owned(), ToString::to_string)
}

fn respond(recording: &RecordedExchange, to_a_run: bool) -> Response<Body> {
    // Clients other than our runs see a failure as an HTTP status.
    let status = recording.exchange.status.unwrap_or(504);
    let body = if recording.is_stream() {
        Body::new(EventBody::new(recording.exchange.body.clone()))
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
            && !CONNECTION_HEADERS.contains(&name.as_str())
        {
            response.headers_mut().append(name, value);
        }
    }
    let recorded = recording.measurement_header().filter(|_| to_a_run);
    if let Some(value) = recorded.and_then(|it| HeaderValue::try_from(it).ok()) {
        response.headers_mut().insert(RECORDED_HEADER, value);
    }
    response
}

fn error_response(status: StatusCode, message: &str) -> Response<Body> {
    let body = json!({"error": {"message": message, "type": "replay"}});
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
