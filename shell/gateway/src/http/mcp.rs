//! Streamable HTTP: one endpoint for all messages.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::header::{ACCEPT, ALLOW, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep_until};
use toolwarden_guard::RequestedGroups;
use toolwarden_mcp::codes::{INVALID_REQUEST, PARSE_ERROR};
use toolwarden_mcp::protocol::{SESSION_HEADER, STATELESS_VERSION, VERSION_HEADER};
use toolwarden_mcp::serve::handshake::INITIALIZED_VERSIONS;
use toolwarden_mcp::serve::{Sent, answer};
use toolwarden_mcp::{Era, InvalidMessage, Message, RpcError};

use super::body::Pieces;
use super::front::{Front, json, text};
use super::groups::requested;
use super::receive::receive;
use super::revocation::Standing;
use super::stateless;
use super::stream::{self, ALIVE, Place, events, follow, priming};
use crate::agent::Agent;
use crate::blocking::read_messages;
use crate::conversation::Conversation;
use crate::gateway::Gateway;
use crate::identity::Principal;
use crate::in_flight::{RequestBytes, TooMuchInFlight};
use crate::outlet::{Interim, Outlet};
use crate::relay::{Asked, Headers, Reply, shutting_down};
use crate::traces::TRACEPARENT;

/// The first version whose agents understand a stream that begins with an empty event.
const PRIMED_SINCE: &str = "2025-11-25";
/// The header that names the last event that arrived.
const LAST_EVENT: &str = "last-event-id";
/// When a client may try again that came while the gateway was ending.
const RETRY_AFTER_SECONDS: &str = "5";
/// The last version with batches.
const BATCHES_UNTIL: &str = "2025-03-26";

/// What came with a message.
pub(super) struct Came {
    pub(super) principal: Principal,
    pub(super) headers: Arc<HeaderMap>,
    groups: Option<RequestedGroups>,
    bytes: Option<Arc<RequestBytes>>,
}

/// The answer to a request of a principal that has too much under way.
pub(super) fn too_much_in_flight() -> Response {
    let text = "the requests you have under way are too large together (`sessions.in_flight`); wait for some";
    let mut response = refuse(StatusCode::TOO_MANY_REQUESTS, INVALID_REQUEST, text);
    let after = HeaderValue::from_static("1");
    response.headers_mut().insert(RETRY_AFTER, after);
    response
}

pub(super) async fn endpoint(state: State<Front>, request: Request<Body>) -> Response {
    serve(state, None, request).await
}

pub(super) async fn endpoint_with_groups(
    state: State<Front>,
    Path(groups): Path<String>,
    request: Request<Body>,
) -> Response {
    serve(state, Some(groups), request).await
}

async fn serve(
    State(front): State<Front>,
    path: Option<String>,
    request: Request<Body>,
) -> Response {
    let (parts, body) = request.into_parts();
    let principal = match front.admit(&parts).await {
        Ok(principal) => principal,
        Err(refused) => return refused,
    };
    let groups = requested(path.as_deref(), &parts.headers);
    let mut came = Came {
        principal,
        headers: Arc::new(parts.headers),
        groups,
        bytes: None,
    };
    let caller = came.principal.clone();
    let response = match parts.method {
        Method::POST => {
            let settings = front.gateway.settings();
            match receive(body, &settings.listen).await {
                Ok(body) => {
                    let most = settings.session_limits.in_flight_bytes;
                    let in_flight = &front.gateway.shared.in_flight;
                    match in_flight.take(&came.principal.name, body.len(), most) {
                        Ok(bytes) => {
                            came.bytes = bytes;
                            post(&front.gateway, came, &body).await
                        }
                        Err(TooMuchInFlight) => too_much_in_flight(),
                    }
                }
                Err(fault) => refuse(fault.status(), INVALID_REQUEST, &fault.to_string()),
            }
        }
        // A stream that was lost can still be read to its end.
        Method::GET if front.gateway.is_ending() && !came.headers.contains_key(LAST_EVENT) => {
            ending(&null())
        }
        Method::GET => {
            let mut stream = listen(&front.gateway, &came);
            stream.extensions_mut().insert(Standing);
            stream
        }
        Method::DELETE => end(&front.gateway, &came),
        _ => {
            let allowed = HeaderValue::from_static("GET, POST, DELETE");
            (StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, allowed)]).into_response()
        }
    };
    front.while_accepted(&caller, response)
}

async fn post(gateway: &Gateway, came: Came, body: &[u8]) -> Response {
    let is_json = text(&came.headers, CONTENT_TYPE.as_str())
        .is_some_and(|it| it.trim_start().starts_with("application/json"));
    if !is_json {
        let words = "send the message as `Content-Type: application/json`";
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, INVALID_REQUEST, words);
    }
    if !accepts(&came.headers, "application/json") {
        let words = "accept `application/json` and `text/event-stream`";
        return refuse(StatusCode::NOT_ACCEPTABLE, INVALID_REQUEST, words);
    }
    let mut messages = match read_messages(body, &gateway.settings().listen) {
        Ok(messages) => messages,
        Err(invalid) => {
            let code = match &invalid {
                InvalidMessage::Json(error) if !error.is_data() => PARSE_ERROR,
                _ => INVALID_REQUEST,
            };
            return refuse(StatusCode::BAD_REQUEST, code, &invalid.to_string());
        }
    };
    let batch = body.trim_ascii_start().first() == Some(&b'[');
    match (messages.pop(), messages.is_empty(), batch) {
        (Some(message), true, false) => one(gateway, came, message).await,
        (Some(last), _, true) => {
            messages.push(last);
            Box::pin(many(gateway, &came, messages)).await
        }
        _ => refuse(
            StatusCode::BAD_REQUEST,
            INVALID_REQUEST,
            "there is no message",
        ),
    }
}

/// Whether a message is of the stateless era: it says so in a header or in itself.
fn is_stateless(headers: &HeaderMap, message: &Message) -> bool {
    let (method, params) = match message {
        Message::Request { method, params, .. } | Message::Notification { method, params } => {
            (method.as_str(), params.as_deref())
        }
        Message::Response { .. } => ("", None),
    };
    if headers.contains_key(SESSION_HEADER) {
        return false;
    }
    match text(headers, VERSION_HEADER) {
        // Versions that are not known are agreed on; this one has no such method.
        version if method == "initialize" => version == Some(STATELESS_VERSION),
        Some(version) => !INITIALIZED_VERSIONS.contains(&version),
        None => {
            method == "server/discover"
                || params.is_some_and(|it| {
                    it.get()
                        .contains(toolwarden_mcp::protocol::PROTOCOL_VERSION)
                })
        }
    }
}

async fn one(gateway: &Gateway, came: Came, message: Message) -> Response {
    // Answers and notifications belong to calls in flight, which may still end in time.
    if let Message::Request { id, .. } = &message
        && gateway.is_ending()
    {
        return ending(id);
    }
    if is_stateless(&came.headers, &message) {
        return Box::pin(stateless::answer_to(gateway, came, message)).await;
    }
    if let Message::Request { id, method, params } = &message
        && method == "initialize"
    {
        return Box::pin(initialize(gateway, &came, id, params.as_deref())).await;
    }
    let conversation = match conversation(gateway, &came) {
        Ok(conversation) => conversation,
        Err(refused) => return refused,
    };
    match message {
        Message::Request { id, method, params } => {
            request(gateway, &came, conversation, id, method, params).await
        }
        other => {
            let agent = conversation.agent.load_full();
            let asked = asked(&came, &conversation, agent, Outlet::closed(), null());
            Box::pin(gateway.take(&asked, other)).await;
            StatusCode::ACCEPTED.into_response()
        }
    }
}

async fn initialize(
    gateway: &Gateway,
    came: &Came,
    id: &RawValue,
    params: Option<&RawValue>,
) -> Response {
    let principal = &came.principal;
    let begun = gateway
        .initialize(
            &principal.name,
            principal.claims.as_ref(),
            params,
            came.groups.clone(),
        )
        .await;
    match begun {
        Ok(begun) => {
            // It is new, so that there is no other caller who opened it.
            let _opened = begun.conversation.opened_by.set(principal.clone());
            let mut response = json(StatusCode::OK, answer::answer_with(id, &begun.result));
            if let Ok(name) = HeaderValue::from_str(&begun.conversation.id) {
                response.headers_mut().insert(SESSION_HEADER, name);
            }
            response
        }
        Err(error) => json(StatusCode::OK, answer::outcome(id, Err(&error))),
    }
}

/// The conversation a message belongs to. Nobody else's is found.
#[expect(
    clippy::result_large_err,
    reason = "the refusal is the answer, made once and sent"
)]
fn conversation(gateway: &Gateway, came: &Came) -> Result<Arc<Conversation>, Response> {
    let Some(id) = text(&came.headers, SESSION_HEADER) else {
        return Err(refuse(
            StatusCode::BAD_REQUEST,
            INVALID_REQUEST,
            "the header `Mcp-Session-Id` is missing; send `initialize` first",
        ));
    };
    if let Some(version) = text(&came.headers, VERSION_HEADER)
        && !INITIALIZED_VERSIONS.contains(&version)
    {
        return Err(refuse(
            StatusCode::BAD_REQUEST,
            INVALID_REQUEST,
            &format!("the protocol version `{version}` is not spoken in a session"),
        ));
    }
    let found = gateway.conversations().peek(id);
    match found.filter(|it| it.era() == Era::Handshake) {
        Some(found) if gateway.is_of(&came.principal.name, &found.principal) => {
            gateway.keep_alive(&found);
            Ok(found)
        }
        _ => Err(refuse(
            StatusCode::NOT_FOUND,
            INVALID_REQUEST,
            "this session is not known or has ended; send `initialize` again",
        )),
    }
}

pub(super) fn asked(
    came: &Came,
    conversation: &Arc<Conversation>,
    agent: Arc<Agent>,
    outlet: Outlet,
    id: Box<RawValue>,
) -> Arc<Asked> {
    Arc::new(Asked {
        conversation: Arc::clone(conversation),
        agent,
        claims: came.principal.claims.clone(),
        groups: came.groups.clone(),
        outlet,
        id,
        headers: Arc::new(HttpHeaders(Arc::clone(&came.headers))),
        trace: text(&came.headers, TRACEPARENT).map(str::to_owned),
        bytes: came.bytes.clone(),
    })
}

/// Answers a request of the handshake era: in JSON, or as a stream where the server answers by one or
/// something comes before the answer. A stream outlives a lost connection.
async fn request(
    gateway: &Gateway,
    came: &Came,
    conversation: Arc<Conversation>,
    id: Box<RawValue>,
    method: String,
    params: Option<Box<RawValue>>,
) -> Response {
    let streams = accepts(&came.headers, "text/event-stream");
    let (outlet, mut interim) = if streams {
        Outlet::channel()
    } else {
        (Outlet::closed(), Interim::nothing())
    };
    let agent = conversation.agent.load_full();
    let asked = asked(came, &conversation, agent, outlet, id);
    let mut work = Box::pin({
        let (gateway, asked) = (gateway.clone(), Arc::clone(&asked));
        async move { gateway.handle(&asked, &method, params.as_deref()).await }
    });
    let (first, done) = tokio::select! {
        biased;
        reply = &mut work => match interim.try_recv() {
            Some(first) => (Some(first), Some(reply)),
            None if interim.is_streamed() => (None, Some(reply)),
            None => return answered(&reply, &asked.id),
        },
        first = interim.begun(), if streams => (first, None),
        () = sleep_until(Instant::now() + ALIVE), if streams => (None, None),
    };
    let mut work = Box::pin(async move {
        match done {
            Some(reply) => reply,
            None => work.await,
        }
    });
    if !streams {
        let reply = work.await;
        return answered(&reply, &asked.id);
    }
    let replay = gateway.settings().session_limits.replay_bytes;
    let (number, log) = conversation.open_stream(replay);
    log.extend(first);
    let written = Arc::clone(&log);
    let interruption = interim.interruption();
    tokio::spawn(async move {
        let reply = loop {
            tokio::select! {
                biased;
                Some(text) = interim.recv() => written.push(text),
                reply = &mut work => break reply,
            }
        };
        while let Some(text) = interim.try_recv() {
            written.push(text);
        }
        written.extend(reply.text(&asked.id));
        written.end();
    });
    let (pieces, body) = Pieces::channel();
    tokio::spawn(async move {
        let primes = *conversation.agent.load().version >= *PRIMED_SINCE;
        if primes && pieces.send(priming(Some(number), 0)).await.is_err() {
            return;
        }
        let place = Place {
            stream: Some(number),
            after: 0,
        };
        let interruption = async {
            // Only an agent that received the priming event can resume the stream.
            match primes {
                true => interruption.await,
                false => std::future::pending().await,
            }
        };
        let read = follow(log, place, pieces, interruption).await;
        if read {
            conversation.forget_stream(number);
        }
    });
    events(body)
}

pub(super) fn answered(reply: &Reply, id: &RawValue) -> Response {
    match reply.text(id) {
        Some(text) => json(StatusCode::OK, text),
        // The agent gave the request up, and waits for nothing.
        None => StatusCode::ACCEPTED.into_response(),
    }
}

/// Answers the messages of a batch, which only the oldest versions have.
async fn many(gateway: &Gateway, came: &Came, messages: Vec<Message>) -> Response {
    let is_request = |it: &Message| matches!(it, Message::Request { .. });
    if gateway.is_ending() && messages.iter().any(is_request) {
        return ending(&null());
    }
    let conversation = match conversation(gateway, came) {
        Ok(conversation) => conversation,
        Err(refused) => return refused,
    };
    if *conversation.agent.load().version > *BATCHES_UNTIL {
        let words = "batches ended with version 2025-03-26; send one message at a time";
        return refuse(StatusCode::BAD_REQUEST, INVALID_REQUEST, words);
    }
    let mut work = Vec::with_capacity(messages.len());
    for message in messages {
        let id = match &message {
            Message::Request { id, .. } => id.clone(),
            _ => null(),
        };
        let agent = conversation.agent.load_full();
        let asked = asked(came, &conversation, agent, Outlet::closed(), id);
        let gateway = gateway.clone();
        work.push(tokio::spawn(
            async move { gateway.take(&asked, message).await },
        ));
    }
    let mut answers = Vec::new();
    for answer in work {
        answers.extend(answer.await.ok().flatten());
    }
    if answers.is_empty() {
        return StatusCode::ACCEPTED.into_response();
    }
    json(StatusCode::OK, format!("[{}]", answers.join(",")))
}

/// The stream of what is sent without having been asked for, or one that was lost.
fn listen(gateway: &Gateway, came: &Came) -> Response {
    let stateless = text(&came.headers, VERSION_HEADER)
        .is_some_and(|version| !INITIALIZED_VERSIONS.contains(&version));
    if stateless {
        let allowed = HeaderValue::from_static("POST");
        return (StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, allowed)]).into_response();
    }
    let conversation = match conversation(gateway, came) {
        Ok(conversation) => conversation,
        Err(refused) => return refused,
    };
    if !accepts(&came.headers, "text/event-stream") {
        let words = "accept `text/event-stream`";
        return refuse(StatusCode::NOT_ACCEPTABLE, INVALID_REQUEST, words);
    }
    let place = text(&came.headers, LAST_EVENT).and_then(Place::read);
    let primes = *conversation.agent.load().version >= *PRIMED_SINCE;
    match place {
        Some(Place {
            stream: Some(number),
            after,
        }) => {
            let Some(log) = conversation.stream(number) else {
                let words = "this stream was read to its end, or is too old to go on with";
                return refuse(StatusCode::NOT_FOUND, INVALID_REQUEST, words);
            };
            let (pieces, body) = Pieces::channel();
            let place = Place {
                stream: Some(number),
                after,
            };
            tokio::spawn(async move {
                if follow(log, place, pieces, std::future::pending()).await {
                    conversation.forget_stream(number);
                }
            });
            events(body)
        }
        Some(Place {
            stream: None,
            after,
        }) => stream::standing(conversation, Some(after), primes),
        None => stream::standing(conversation, None, primes),
    }
}

fn end(gateway: &Gateway, came: &Came) -> Response {
    match conversation(gateway, came) {
        Ok(conversation) => {
            gateway.close_conversation(&conversation.id);
            StatusCode::OK.into_response()
        }
        Err(refused) => refused,
    }
}

/// Whether an agent takes an answer of a type; one that says nothing takes all.
fn accepts(headers: &HeaderMap, wanted: &str) -> bool {
    let mut values = headers.get_all(ACCEPT).iter().peekable();
    if values.peek().is_none() {
        return true;
    }
    let (family, _) = wanted.split_once('/').unwrap_or((wanted, ""));
    let any_of_family = format!("{family}/*");
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|range| range.split(';').next().unwrap_or_default().trim())
        .any(|range| range == wanted || range == "*/*" || range == any_of_family)
}

/// Refuses a request because the gateway is about to end; another one may be there soon.
pub(super) fn ending(id: &RawValue) -> Response {
    let text = answer::outcome(id, Err(&shutting_down()));
    let mut response = json(StatusCode::SERVICE_UNAVAILABLE, text);
    let wait = HeaderValue::from_static(RETRY_AFTER_SECONDS);
    response.headers_mut().insert(RETRY_AFTER, wait);
    response
}

pub(super) fn refuse(status: StatusCode, code: i64, words: &str) -> Response {
    let error = RpcError {
        code,
        message: words.to_owned(),
        data: None,
    };
    json(status, answer::outcome(&null(), Err(&error)))
}

pub(super) fn null() -> Box<RawValue> {
    RawValue::NULL.to_owned()
}

/// The headers of an HTTP request.
#[derive(Debug)]
struct HttpHeaders(Arc<HeaderMap>);

impl Headers for HttpHeaders {
    fn sent(&self, name: &str) -> Sent<'_> {
        Sent::of(&self.0, name)
    }
}
