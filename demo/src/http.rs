//! The shop over streamable HTTP.

use std::fmt::Write as _;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use toolwarden_mcp::{Era, RawObject, RpcMessage};

use super::deferred_work::DeferredWork;
use super::dispatch::{DemoResponse, dispatch};
use super::events::DemoEventStream;
use super::initialize::STATELESS_VERSION;
use super::messages::{self, DemoError};
use super::request::DemoRequest;
use super::shop::{SessionMode, Shop, SupportedEras};
use super::stateless;
use super::stdio::{forward_events, handle_cancellation};

/// The largest request that is read.
const REQUEST_BYTES: usize = 256 << 20;
/// Messages for one stream.
const MAX_QUEUED_MESSAGES: usize = 64;

const SESSION: &str = "mcp-session-id";

/// The endpoint at `/mcp`.
pub(super) fn router(shop: Shop) -> Router {
    Router::new()
        .route("/mcp", post(post_message).get(listen).delete(end_session))
        .layer(DefaultBodyLimit::max(REQUEST_BYTES))
        .with_state(shop)
}

async fn post_message(State(shop): State<Shop>, headers: HeaderMap, body: Bytes) -> Response {
    shop.ready().await;
    let mut messages = match RpcMessage::parse_all(&body) {
        Ok(messages) => messages,
        Err(invalid) => return error_response(400, &DemoError::new(-32700, invalid.to_string())),
    };
    let message = messages.pop();
    if !messages.is_empty() {
        return error_response(400, &DemoError::new(-32600, "batches are not taken"));
    }
    match message {
        Some(RpcMessage::Request { id, method, params }) => {
            handle_request(&shop, headers, id, method, params)
        }
        Some(RpcMessage::Notification { method, params }) => {
            let session = session_header(&headers);
            shop.record(|seen| seen.count(&method));
            if method == "notifications/cancelled" {
                handle_cancellation(&shop, &session, params.as_deref());
            }
            StatusCode::ACCEPTED.into_response()
        }
        Some(RpcMessage::Response { id, outcome }) => {
            shop.resolve_reply(&id, outcome);
            StatusCode::ACCEPTED.into_response()
        }
        None => error_response(400, &DemoError::new(-32600, "there is no message")),
    }
}

fn handle_request(
    shop: &Shop,
    headers: HeaderMap,
    id: Box<RawValue>,
    method: String,
    params: Option<Box<RawValue>>,
) -> Response {
    let said = headers.get("mcp-protocol-version");
    let stateless = said.is_some_and(|version| version == STATELESS_VERSION)
        || (method != "initialize"
            && stateless::is_stateless(&RawObject::parse_optional(params.as_deref())));
    let mut asked = DemoRequest {
        era: if stateless {
            Era::Stateless
        } else {
            Era::Handshake
        },
        id,
        method,
        params,
        session: session_header(&headers),
    };
    let admitted = check_request(shop, &mut asked, &headers);
    shop.record(|seen| seen.keep_headers(headers));
    if let Err((status, refusal)) = admitted {
        return json_response(status, messages::response(&asked.id, &Err(refusal)));
    }
    match dispatch(shop, &asked) {
        DemoResponse::Ready(outcome) => {
            let status = match &outcome {
                Err(refusal) if stateless => refusal.status(),
                Ok(_) | Err(_) => 200,
            };
            let mut response = json_response(status, messages::response(&asked.id, &outcome));
            let opened = asked.method == "initialize" && outcome.is_ok();
            if opened
                && !asked.session.is_empty()
                && let Ok(id) = HeaderValue::from_str(&asked.session)
            {
                response.headers_mut().insert(SESSION, id);
            }
            shop.record(|seen| seen.last_params = asked.params);
            response
        }
        DemoResponse::Deferred(work) => run_deferred(shop, asked, work),
    }
}

/// Refuses what the era does not permit, and returns the session of a handshake request.
fn check_request(
    shop: &Shop,
    asked: &mut DemoRequest,
    headers: &HeaderMap,
) -> Result<(), (u16, DemoError)> {
    let options = shop.options();
    if asked.era == Era::Stateless {
        if options.eras == SupportedEras::Handshake {
            return Err((
                400,
                DemoError::new(-32600, "the protocol version is not supported"),
            ));
        }
        let checked = stateless::check(shop, asked, Some(headers));
        return checked.map_err(|refusal| (refusal.status(), refusal));
    }
    if asked.method == "initialize" {
        asked.session = match options.sessions {
            SessionMode::Required => new_id(),
            SessionMode::None => String::new(),
        };
        return Ok(());
    }
    match session_status(shop, &asked.session) {
        Some(status) => Err((status, DemoError::new(-32001, "there is no such session"))),
        None if options.eras == SupportedEras::Stateless => {
            let refusal = DemoError::unsupported_version("2025-11-25", &[STATELESS_VERSION]);
            Err((400, refusal))
        }
        None => Ok(()),
    }
}

/// Works on a request while its client reads the messages sent meanwhile.
fn run_deferred(shop: &Shop, asked: DemoRequest, work: DeferredWork) -> Response {
    let (out, messages) = mpsc::channel(MAX_QUEUED_MESSAGES);
    shop.record(|seen| seen.last_params.clone_from(&asked.params));
    let key = asked.running_key();
    let task = tokio::spawn({
        let shop = shop.clone();
        async move { work.run(&shop, &asked, &out).await }
    });
    shop.set_running(key, task.abort_handle());
    DemoEventStream::new(messages, task).into_response()
}

/// The stream for messages that belong to no request.
async fn listen(State(shop): State<Shop>, headers: HeaderMap) -> Response {
    shop.ready().await;
    if shop.options().eras == SupportedEras::Stateless {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let session = session_header(&headers);
    let status = session_status(&shop, &session);
    let (None, Some(mut life)) = (status, shop.session_end(&session)) else {
        return error_response(
            status.unwrap_or(400),
            &DemoError::new(-32001, "there is no such session"),
        );
    };
    shop.record(|seen| seen.keep_headers(headers));
    let (out, messages) = mpsc::channel(MAX_QUEUED_MESSAGES);
    // The subscription begins before the response, so that no later notification is missed.
    let news = shop.subscribe_events();
    let mut closed = shop.closed();
    let task = tokio::spawn(async move {
        tokio::select! {
            () = forward_events(&shop, &session, news, &out) => {}
            _ended = life.changed() => {}
            _closed = closed.changed() => {}
        }
    });
    DemoEventStream::new(messages, task).into_response()
}

async fn end_session(State(shop): State<Shop>, headers: HeaderMap) -> StatusCode {
    shop.ready().await;
    if shop.end_session(&session_header(&headers)) {
        StatusCode::OK
    } else {
        StatusCode::NOT_FOUND
    }
}

/// The status for a session that cannot be used; `None` for one that can.
fn session_status(shop: &Shop, session: &str) -> Option<u16> {
    if shop.options().sessions == SessionMode::None || shop.has_session(session) {
        return None;
    }
    Some(if session.is_empty() { 400 } else { 404 })
}

fn session_header(headers: &HeaderMap) -> String {
    let id = headers.get(SESSION).and_then(|id| id.to_str().ok());
    id.unwrap_or_default().to_owned()
}

fn new_id() -> String {
    let mut bytes = [0_u8; 16];
    // Without randomness the id is still usable for a demo on loopback.
    let _none = getrandom::fill(&mut bytes);
    bytes.iter().fold(String::new(), |mut id, byte| {
        // Writing to a string cannot fail.
        let _written = write!(id, "{byte:02x}");
        id
    })
}

fn error_response(status: u16, refusal: &DemoError) -> Response {
    json_response(
        status,
        messages::response(RawValue::NULL, &Err(refusal.clone())),
    )
}

fn json_response(status: u16, text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
