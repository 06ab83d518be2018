//! Streamable HTTP: one endpoint for all messages.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::header::{ACCEPT, ALLOW, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde_json::value::RawValue;
use toolwarden_guard::RequestedGroups;
use toolwarden_mcp::error_codes::{INVALID_REQUEST, PARSE_ERROR};
use toolwarden_mcp::protocol::{SESSION_HEADER, STATELESS_VERSION, VERSION_HEADER};
use toolwarden_mcp::serve::versions::INITIALIZE_VERSIONS;
use toolwarden_mcp::serve::{ReceivedHeader, encode};
use toolwarden_mcp::{Era, InvalidMessage, RpcError, RpcMessage};

use super::channel_body::ChannelBody;
use super::event_stream::{self, EventPosition, event_stream_response, priming_event, send_events};
use super::groups::requested_groups;
use super::request_body::receive_body;
use super::revocation::OpenEndedStream;
use super::router::{HttpFrontend, header_text, json};
use super::started_reply::{StartedReply, StreamStart, start_reply};
use super::stateless;
use crate::agent_info::Agent;
use crate::blocking::read_messages;
use crate::conversation::Conversation;
use crate::gateway::Gateway;
use crate::identity::Principal;
use crate::request_bytes::{RequestBytes, TooMuchInFlight};
use crate::request_context::{RequestContext, RequestHeaders};
use crate::response_stream::{AgentReceiver, AgentSender};
use crate::router::{RpcReply, shutdown_error};
use crate::traces::TRACEPARENT;

/// The first version whose agents understand a stream that begins with an empty event.
const PRIMED_SINCE: &str = "2025-11-25";
/// The header that names the last event that the agent received.
const LAST_EVENT: &str = "last-event-id";
/// When a client may retry that sent a request while the gateway was shutting down.
const RETRY_AFTER_SECONDS: &str = "5";
/// The last version with batches.
const BATCHES_UNTIL: &str = "2025-03-26";

/// The context of a message.
pub(super) struct HttpRequestContext {
    pub(super) principal: Principal,
    pub(super) headers: Arc<HeaderMap>,
    groups: Option<RequestedGroups>,
    bytes: Option<Arc<RequestBytes>>,
}

/// The response if a principal has too many bytes in flight.
pub(super) fn too_much_in_flight() -> Response {
    let text =
        "your requests in flight are too large together (`sessions.in_flight`); wait for some";
    let mut response = error_response(StatusCode::TOO_MANY_REQUESTS, INVALID_REQUEST, text);
    let after = HeaderValue::from_static("1");
    response.headers_mut().insert(RETRY_AFTER, after);
    response
}

pub(super) async fn endpoint(state: State<HttpFrontend>, request: Request<Body>) -> Response {
    serve(state, None, request).await
}

pub(super) async fn endpoint_with_groups(
    state: State<HttpFrontend>,
    Path(groups): Path<String>,
    request: Request<Body>,
) -> Response {
    serve(state, Some(groups), request).await
}

async fn serve(
    State(frontend): State<HttpFrontend>,
    path: Option<String>,
    request: Request<Body>,
) -> Response {
    let (parts, body) = request.into_parts();
    let principal = match frontend.authenticate(&parts).await {
        Ok(principal) => principal,
        Err(refused) => return refused,
    };
    let groups = requested_groups(path.as_deref(), &parts.headers);
    let mut http_context = HttpRequestContext {
        principal,
        headers: Arc::new(parts.headers),
        groups,
        bytes: None,
    };
    let caller = http_context.principal.clone();
    let response = match parts.method {
        Method::POST => {
            let settings = frontend.gateway.settings();
            match receive_body(body, &settings.listen).await {
                Ok(body) => {
                    let most = settings.session_limits.in_flight_bytes;
                    let in_flight = &frontend.gateway.shared.in_flight;
                    match in_flight.take(&http_context.principal.name, body.len(), most) {
                        Ok(bytes) => {
                            http_context.bytes = bytes;
                            post(&frontend.gateway, http_context, &body).await
                        }
                        Err(TooMuchInFlight) => too_much_in_flight(),
                    }
                }
                Err(fault) => error_response(fault.status(), INVALID_REQUEST, &fault.to_string()),
            }
        }
        // A lost stream can still be read to its end.
        Method::GET
            if frontend.gateway.is_shutting_down()
                && !http_context.headers.contains_key(LAST_EVENT) =>
        {
            shutting_down_response(&null_id())
        }
        Method::GET => {
            let mut stream = open_event_stream(&frontend.gateway, &http_context);
            stream.extensions_mut().insert(OpenEndedStream);
            stream
        }
        Method::DELETE => end_session(&frontend.gateway, &http_context),
        _ => {
            let allowed = HeaderValue::from_static("GET, POST, DELETE");
            (StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, allowed)]).into_response()
        }
    };
    frontend.end_on_revocation(&caller, response)
}

async fn post(gateway: &Gateway, http_context: HttpRequestContext, body: &[u8]) -> Response {
    let is_json = header_text(&http_context.headers, CONTENT_TYPE.as_str())
        .is_some_and(|it| it.trim_start().starts_with("application/json"));
    if !is_json {
        let words = "send the message as `Content-Type: application/json`";
        return error_response(StatusCode::UNSUPPORTED_MEDIA_TYPE, INVALID_REQUEST, words);
    }
    if !accepts(&http_context.headers, "application/json") {
        let words = "accept `application/json` and `text/event-stream`";
        return error_response(StatusCode::NOT_ACCEPTABLE, INVALID_REQUEST, words);
    }
    let mut messages = match read_messages(body, &gateway.settings().listen) {
        Ok(messages) => messages,
        Err(invalid) => {
            let code = match &invalid {
                InvalidMessage::Json(error) if !error.is_data() => PARSE_ERROR,
                _ => INVALID_REQUEST,
            };
            return error_response(StatusCode::BAD_REQUEST, code, &invalid.to_string());
        }
    };
    let batch = body.trim_ascii_start().first() == Some(&b'[');
    match (messages.pop(), messages.is_empty(), batch) {
        (Some(message), true, false) => handle_message(gateway, http_context, message).await,
        (Some(last), _, true) => {
            messages.push(last);
            Box::pin(handle_batch(gateway, &http_context, messages)).await
        }
        _ => error_response(
            StatusCode::BAD_REQUEST,
            INVALID_REQUEST,
            "there is no message",
        ),
    }
}

/// Whether a message is of the stateless era: a header or the message itself says so.
fn is_stateless(headers: &HeaderMap, message: &RpcMessage) -> bool {
    let (method, params) = match message {
        RpcMessage::Request { method, params, .. }
        | RpcMessage::Notification { method, params } => (method.as_str(), params.as_deref()),
        RpcMessage::Response { .. } => ("", None),
    };
    if headers.contains_key(SESSION_HEADER) {
        return false;
    }
    match header_text(headers, VERSION_HEADER) {
        // Unknown versions are negotiated; the stateless version has no `initialize`.
        version if method == "initialize" => version == Some(STATELESS_VERSION),
        Some(version) => !INITIALIZE_VERSIONS.contains(&version),
        None => {
            method == "server/discover"
                || params.is_some_and(|it| {
                    it.get()
                        .contains(toolwarden_mcp::protocol::PROTOCOL_VERSION)
                })
        }
    }
}

async fn handle_message(
    gateway: &Gateway,
    http_context: HttpRequestContext,
    message: RpcMessage,
) -> Response {
    // Responses and notifications belong to calls in flight, which may still finish in time.
    if let RpcMessage::Request { id, .. } = &message
        && gateway.is_shutting_down()
    {
        return shutting_down_response(id);
    }
    if is_stateless(&http_context.headers, &message) {
        return Box::pin(stateless::handle_stateless_message(
            gateway,
            http_context,
            message,
        ))
        .await;
    }
    if let RpcMessage::Request { id, method, params } = &message
        && method == "initialize"
    {
        return Box::pin(initialize(gateway, &http_context, id, params.as_deref())).await;
    }
    let conversation = match find_conversation(gateway, &http_context) {
        Ok(conversation) => conversation,
        Err(refused) => return refused,
    };
    match message {
        RpcMessage::Request { id, method, params } => {
            handle_request(gateway, &http_context, conversation, id, method, params).await
        }
        other => {
            let agent = conversation.agent.load_full();
            let context = request_context(
                &http_context,
                &conversation,
                agent,
                AgentSender::closed(),
                null_id(),
            );
            Box::pin(gateway.take(&context, other)).await;
            StatusCode::ACCEPTED.into_response()
        }
    }
}

async fn initialize(
    gateway: &Gateway,
    http_context: &HttpRequestContext,
    id: &RawValue,
    params: Option<&RawValue>,
) -> Response {
    let principal = &http_context.principal;
    let begun = gateway
        .initialize(
            &principal.name,
            principal.claims.as_ref(),
            params,
            http_context.groups.clone(),
        )
        .await;
    match begun {
        Ok(begun) => {
            // The conversation is new, so no other caller has opened it.
            let _opened = begun.conversation.opened_by.set(principal.clone());
            let mut response = json(StatusCode::OK, encode::result_response(id, &begun.result));
            if let Ok(name) = HeaderValue::from_str(&begun.conversation.id) {
                response.headers_mut().insert(SESSION_HEADER, name);
            }
            response
        }
        Err(error) => json(StatusCode::OK, encode::response(id, Err(&error))),
    }
}

/// The conversation a message belongs to. Conversations of other principals are not found.
#[expect(
    clippy::result_large_err,
    reason = "the refusal is the answer, made once and sent"
)]
fn find_conversation(
    gateway: &Gateway,
    http_context: &HttpRequestContext,
) -> Result<Arc<Conversation>, Response> {
    let Some(id) = header_text(&http_context.headers, SESSION_HEADER) else {
        return Err(error_response(
            StatusCode::BAD_REQUEST,
            INVALID_REQUEST,
            "the header `Mcp-Session-Id` is missing; send `initialize` first",
        ));
    };
    if let Some(version) = header_text(&http_context.headers, VERSION_HEADER)
        && !INITIALIZE_VERSIONS.contains(&version)
    {
        return Err(error_response(
            StatusCode::BAD_REQUEST,
            INVALID_REQUEST,
            &format!("the protocol version `{version}` is not supported in a session"),
        ));
    }
    let found = gateway.conversations().peek(id);
    match found.filter(|it| it.era() == Era::Handshake) {
        Some(found) if gateway.check_owner(&http_context.principal.name, &found.principal) => {
            gateway.keep_alive(&found);
            Ok(found)
        }
        _ => Err(error_response(
            StatusCode::NOT_FOUND,
            INVALID_REQUEST,
            "this session is not known or has ended; send `initialize` again",
        )),
    }
}

pub(super) fn request_context(
    http_context: &HttpRequestContext,
    conversation: &Arc<Conversation>,
    agent: Arc<Agent>,
    outlet: AgentSender,
    id: Box<RawValue>,
) -> Arc<RequestContext> {
    Arc::new(RequestContext {
        conversation: Arc::clone(conversation),
        agent,
        claims: http_context.principal.claims.clone(),
        groups: http_context.groups.clone(),
        sender: outlet,
        id,
        headers: Arc::new(HttpHeaders(Arc::clone(&http_context.headers))),
        trace: header_text(&http_context.headers, TRACEPARENT).map(str::to_owned),
        bytes: http_context.bytes.clone(),
    })
}

/// Answers a request of the handshake era: in JSON, or as a stream if the server responds with one or a message
/// comes before the response. A stream outlives a lost connection.
async fn handle_request(
    gateway: &Gateway,
    http_context: &HttpRequestContext,
    conversation: Arc<Conversation>,
    id: Box<RawValue>,
    method: String,
    params: Option<Box<RawValue>>,
) -> Response {
    let streams = accepts(&http_context.headers, "text/event-stream");
    let (outlet, mut interim) = if streams {
        AgentSender::channel()
    } else {
        (AgentSender::closed(), AgentReceiver::closed())
    };
    let agent = conversation.agent.load_full();
    let context = request_context(http_context, &conversation, agent, outlet, id);
    let start = match streams {
        true => StreamStart::FirstMessageOrServerStream,
        false => StreamStart::Never,
    };
    let started = start_reply(gateway, &context, (method, params), &mut interim, start);
    let (first, mut work) = match started.await {
        StartedReply::Complete(reply) => return reply_response(&reply, &context.id),
        StartedReply::Stream(first, work) => (first, work),
    };
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
        written.extend(reply.text(&context.id));
        written.end();
    });
    let (pieces, body) = ChannelBody::channel();
    tokio::spawn(async move {
        let primes = *conversation.agent.load().version >= *PRIMED_SINCE;
        if primes && pieces.send(priming_event(Some(number), 0)).await.is_err() {
            return;
        }
        let place = EventPosition {
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
        let read = send_events(log, place, pieces, interruption).await;
        if read {
            conversation.forget_stream(number);
        }
    });
    event_stream_response(body)
}

pub(super) fn reply_response(reply: &RpcReply, id: &RawValue) -> Response {
    match reply.text(id) {
        Some(text) => json(StatusCode::OK, text),
        // The agent cancelled the request and waits for nothing.
        None => StatusCode::ACCEPTED.into_response(),
    }
}

/// Answers the messages of a batch, which only the oldest versions have.
async fn handle_batch(
    gateway: &Gateway,
    http_context: &HttpRequestContext,
    messages: Vec<RpcMessage>,
) -> Response {
    let is_request = |it: &RpcMessage| matches!(it, RpcMessage::Request { .. });
    if gateway.is_shutting_down() && messages.iter().any(is_request) {
        return shutting_down_response(&null_id());
    }
    let conversation = match find_conversation(gateway, http_context) {
        Ok(conversation) => conversation,
        Err(refused) => return refused,
    };
    if *conversation.agent.load().version > *BATCHES_UNTIL {
        let words = "version 2025-03-26 was the last with batches; send one message at a time";
        return error_response(StatusCode::BAD_REQUEST, INVALID_REQUEST, words);
    }
    let mut work = Vec::with_capacity(messages.len());
    for message in messages {
        let id = match &message {
            RpcMessage::Request { id, .. } => id.clone(),
            _ => null_id(),
        };
        let agent = conversation.agent.load_full();
        let context = request_context(
            http_context,
            &conversation,
            agent,
            AgentSender::closed(),
            id,
        );
        let gateway = gateway.clone();
        work.push(tokio::spawn(async move {
            gateway.take(&context, message).await
        }));
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

/// The stream of messages that belong to no request, or a lost stream that the agent resumes.
fn open_event_stream(gateway: &Gateway, http_context: &HttpRequestContext) -> Response {
    let stateless = header_text(&http_context.headers, VERSION_HEADER)
        .is_some_and(|version| !INITIALIZE_VERSIONS.contains(&version));
    if stateless {
        let allowed = HeaderValue::from_static("POST");
        return (StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, allowed)]).into_response();
    }
    let conversation = match find_conversation(gateway, http_context) {
        Ok(conversation) => conversation,
        Err(refused) => return refused,
    };
    if !accepts(&http_context.headers, "text/event-stream") {
        let words = "accept `text/event-stream`";
        return error_response(StatusCode::NOT_ACCEPTABLE, INVALID_REQUEST, words);
    }
    let place = header_text(&http_context.headers, LAST_EVENT).and_then(EventPosition::parse);
    let primes = *conversation.agent.load().version >= *PRIMED_SINCE;
    match place {
        Some(EventPosition {
            stream: Some(number),
            after,
        }) => {
            let Some(log) = conversation.stream(number) else {
                let words = "this stream was read to its end, or is too old to resume";
                return error_response(StatusCode::NOT_FOUND, INVALID_REQUEST, words);
            };
            let (pieces, body) = ChannelBody::channel();
            let place = EventPosition {
                stream: Some(number),
                after,
            };
            tokio::spawn(async move {
                if send_events(log, place, pieces, std::future::pending()).await {
                    conversation.forget_stream(number);
                }
            });
            event_stream_response(body)
        }
        Some(EventPosition {
            stream: None,
            after,
        }) => event_stream::standalone_stream(conversation, Some(after), primes),
        None => event_stream::standalone_stream(conversation, None, primes),
    }
}

fn end_session(gateway: &Gateway, http_context: &HttpRequestContext) -> Response {
    match find_conversation(gateway, http_context) {
        Ok(conversation) => {
            gateway.close_conversation(&conversation.id);
            StatusCode::OK.into_response()
        }
        Err(refused) => refused,
    }
}

/// Whether an agent accepts a media type; an agent without an `Accept` header accepts all.
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

/// Refuses a request because the gateway is shutting down; another instance may be available soon.
pub(super) fn shutting_down_response(id: &RawValue) -> Response {
    let text = encode::response(id, Err(&shutdown_error()));
    let mut response = json(StatusCode::SERVICE_UNAVAILABLE, text);
    let wait = HeaderValue::from_static(RETRY_AFTER_SECONDS);
    response.headers_mut().insert(RETRY_AFTER, wait);
    response
}

pub(super) fn error_response(status: StatusCode, code: i64, words: &str) -> Response {
    let error = RpcError {
        code,
        message: words.to_owned(),
        data: None,
    };
    json(status, encode::response(&null_id(), Err(&error)))
}

pub(super) fn null_id() -> Box<RawValue> {
    RawValue::NULL.to_owned()
}

/// The headers of an HTTP request.
#[derive(Debug)]
struct HttpHeaders(Arc<HeaderMap>);

impl RequestHeaders for HttpHeaders {
    fn sent(&self, name: &str) -> ReceivedHeader<'_> {
        ReceivedHeader::lookup(&self.0, name)
    }
}
