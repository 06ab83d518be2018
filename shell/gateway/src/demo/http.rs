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
use toolwarden_mcp::{Era, Members, Message};

use super::answer::{Answer, Asked, answer};
use super::events::Events;
use super::opening::STATELESS_VERSION;
use super::page::{self, Refusal};
use super::shop::{Eras, Sessions, Shop};
use super::stateless;
use super::stdio::{cancelled, tell_news};
use super::work::Work;

/// The largest request that is read.
const REQUEST_BYTES: usize = 256 << 20;
/// Messages on the way to one stream.
const ON_THE_WAY: usize = 64;

const SESSION: &str = "mcp-session-id";

/// The endpoint at `/mcp`.
pub(super) fn router(shop: Shop) -> Router {
    Router::new()
        .route("/mcp", post(take).get(listen).delete(end))
        .layer(DefaultBodyLimit::max(REQUEST_BYTES))
        .with_state(shop)
}

async fn take(State(shop): State<Shop>, headers: HeaderMap, body: Bytes) -> Response {
    shop.ready().await;
    let mut messages = match Message::parse_all(&body) {
        Ok(messages) => messages,
        Err(invalid) => return refused(400, &Refusal::new(-32700, invalid.to_string())),
    };
    let message = messages.pop();
    if !messages.is_empty() {
        return refused(400, &Refusal::new(-32600, "batches are not taken"));
    }
    match message {
        Some(Message::Request { id, method, params }) => {
            take_request(&shop, headers, id, method, params)
        }
        Some(Message::Notification { method, params }) => {
            let session = session_of(&headers);
            shop.note(|seen| seen.count(&method));
            if method == "notifications/cancelled" {
                cancelled(&shop, &session, params.as_deref());
            }
            StatusCode::ACCEPTED.into_response()
        }
        Some(Message::Response { id, outcome }) => {
            shop.settle(&id, outcome);
            StatusCode::ACCEPTED.into_response()
        }
        None => refused(400, &Refusal::new(-32600, "there is no message")),
    }
}

fn take_request(
    shop: &Shop,
    headers: HeaderMap,
    id: Box<RawValue>,
    method: String,
    params: Option<Box<RawValue>>,
) -> Response {
    let said = headers.get("mcp-protocol-version");
    let stateless = said.is_some_and(|version| version == STATELESS_VERSION)
        || (method != "initialize"
            && stateless::is_stateless(&Members::of_optional(params.as_deref())));
    let mut asked = Asked {
        era: if stateless {
            Era::Stateless
        } else {
            Era::Handshake
        },
        id,
        method,
        params,
        session: session_of(&headers),
    };
    let admitted = admit(shop, &mut asked, &headers);
    shop.note(|seen| seen.keep_headers(headers));
    if let Err((status, refusal)) = admitted {
        return reply(status, page::answer(&asked.id, &Err(refusal)));
    }
    match answer(shop, &asked) {
        Answer::Now(outcome) => {
            let status = match &outcome {
                Err(refusal) if stateless => refusal.status(),
                Ok(_) | Err(_) => 200,
            };
            let mut response = reply(status, page::answer(&asked.id, &outcome));
            let opened = asked.method == "initialize" && outcome.is_ok();
            if opened
                && !asked.session.is_empty()
                && let Ok(id) = HeaderValue::from_str(&asked.session)
            {
                response.headers_mut().insert(SESSION, id);
            }
            shop.note(|seen| seen.last_params = asked.params);
            response
        }
        Answer::Later(work) => later(shop, asked, work),
    }
}

/// Refuses what the era does not permit, and names the session of a handshake.
fn admit(shop: &Shop, asked: &mut Asked, headers: &HeaderMap) -> Result<(), (u16, Refusal)> {
    let options = shop.options();
    if asked.era == Era::Stateless {
        if options.eras == Eras::Handshake {
            return Err((
                400,
                Refusal::new(-32600, "the protocol version is not supported"),
            ));
        }
        let checked = stateless::check(shop, asked, Some(headers));
        return checked.map_err(|refusal| (refusal.status(), refusal));
    }
    if asked.method == "initialize" {
        asked.session = match options.sessions {
            Sessions::Required => new_id(),
            Sessions::None => String::new(),
        };
        return Ok(());
    }
    match known(shop, &asked.session) {
        Some(status) => Err((status, Refusal::new(-32001, "there is no such session"))),
        None if options.eras == Eras::Stateless => {
            let refusal = Refusal::unsupported_version("2025-11-25", &[STATELESS_VERSION]);
            Err((400, refusal))
        }
        None => Ok(()),
    }
}

/// Works on a request while its client reads what is said meanwhile.
fn later(shop: &Shop, asked: Asked, work: Work) -> Response {
    let (out, messages) = mpsc::channel(ON_THE_WAY);
    shop.note(|seen| seen.last_params.clone_from(&asked.params));
    let key = running_key(&asked.session, &asked.id);
    let task = tokio::spawn({
        let shop = shop.clone();
        async move { work.run(&shop, &asked, &out).await }
    });
    shop.set_running(key, task.abort_handle());
    Events::new(messages, task).into_response()
}

/// The stream on which the server speaks by itself.
async fn listen(State(shop): State<Shop>, headers: HeaderMap) -> Response {
    shop.ready().await;
    if shop.options().eras == Eras::Stateless {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let session = session_of(&headers);
    let status = known(&shop, &session);
    let (None, Some(mut life)) = (status, shop.life(&session)) else {
        return refused(
            status.unwrap_or(400),
            &Refusal::new(-32001, "there is no such session"),
        );
    };
    shop.note(|seen| seen.keep_headers(headers));
    let (out, messages) = mpsc::channel(ON_THE_WAY);
    // The subscription begins before the answer, so that nothing told after it is missed.
    let news = shop.news();
    let mut closed = shop.closed();
    let task = tokio::spawn(async move {
        tokio::select! {
            () = tell_news(&shop, &session, news, &out) => {}
            _ended = life.changed() => {}
            _closed = closed.changed() => {}
        }
    });
    Events::new(messages, task).into_response()
}

async fn end(State(shop): State<Shop>, headers: HeaderMap) -> StatusCode {
    shop.ready().await;
    if shop.end_session(&session_of(&headers)) {
        StatusCode::OK
    } else {
        StatusCode::NOT_FOUND
    }
}

/// The status for a session that cannot be used, none for one that can.
fn known(shop: &Shop, session: &str) -> Option<u16> {
    if shop.options().sessions == Sessions::None || shop.has_session(session) {
        return None;
    }
    Some(if session.is_empty() { 400 } else { 404 })
}

/// What tells a running request from all others.
pub(super) fn running_key(session: &str, id: &RawValue) -> String {
    format!("{session}/{}", id.get())
}

fn session_of(headers: &HeaderMap) -> String {
    let id = headers.get(SESSION).and_then(|id| id.to_str().ok());
    id.unwrap_or_default().to_owned()
}

fn new_id() -> String {
    let mut bytes = [0_u8; 16];
    // Without randomness the id is still one, for a demo on loopback.
    let _none = getrandom::fill(&mut bytes);
    bytes.iter().fold(String::new(), |mut id, byte| {
        // Writing to a string cannot fail.
        let _written = write!(id, "{byte:02x}");
        id
    })
}

fn refused(status: u16, refusal: &Refusal) -> Response {
    reply(status, page::answer(RawValue::NULL, &Err(refusal.clone())))
}

fn reply(status: u16, text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
