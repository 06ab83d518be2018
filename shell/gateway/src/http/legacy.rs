//! The HTTP+SSE transport of 2024-11-05: one stream for all messages of the gateway, and a URL to post messages
//! to.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use axum::body::Body;
use axum::extract::{Query, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use hashbrown::HashMap;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use toolwarden_live_guard::CallerClaims;
use toolwarden_mcp::error_codes::INVALID_REQUEST;
use toolwarden_mcp::serve::encode;
use toolwarden_mcp::serve::sse_event::{SseEvent, comment};
use toolwarden_mcp::{RpcError, RpcMessage};

use super::channel_body::ChannelBody;
use super::event_stream::{KEEP_ALIVE, event_stream_response, message_event};
use super::groups::requested_groups;
use super::mcp::too_much_in_flight;
use super::request_body::receive_body;
use super::revocation::OpenEndedStream;
use super::router::{HttpFrontend, json};
use crate::blocking::read_messages;
use crate::conversation::Conversation;
use crate::request_bytes::RequestBytes;
use crate::request_context::{NoHeaders, RequestContext};
use crate::response_stream::{AgentReceiver, AgentSender};

/// The most open streams.
const MAX_SESSIONS: usize = 10_000;

/// The open streams by name.
#[derive(Debug, Default)]
pub(super) struct LegacySessions(Mutex<HashMap<String, Arc<LegacySession>>>);

/// One open stream.
#[derive(Debug)]
struct LegacySession {
    principal: Arc<str>,
    groups: Option<toolwarden_guard::RequestedGroups>,
    sender: AgentSender,
    conversation: OnceLock<Arc<Conversation>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct LegacySessionQuery {
    #[serde(rename = "sessionId")]
    session: String,
}

/// Opens a stream and announces the URL for messages.
pub(super) async fn open_stream(
    State(frontend): State<HttpFrontend>,
    request: Request<Body>,
) -> Response {
    let (parts, _) = request.into_parts();
    let principal = match frontend.authenticate(&parts).await {
        Ok(principal) => principal,
        Err(refused) => return refused,
    };
    if frontend.gateway.is_shutting_down() {
        return super::mcp::shutting_down_response(&super::mcp::null_id());
    }
    let mut bytes = [0_u8; 16];
    if getrandom::fill(&mut bytes).is_err() || frontend.legacy_sessions.lock().len() >= MAX_SESSIONS
    {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let name: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let (outlet, interim) = AgentSender::channel();
    let session = Arc::new(LegacySession {
        principal: Arc::clone(&principal.name),
        groups: requested_groups(None, &parts.headers),
        sender: outlet,
        conversation: OnceLock::new(),
    });
    frontend
        .legacy_sessions
        .lock()
        .insert(name.clone(), Arc::clone(&session));
    let (pieces, body) = ChannelBody::channel();
    let mut stream = event_stream_response(body);
    stream.extensions_mut().insert(OpenEndedStream);
    let stream = frontend.end_on_revocation(&principal, stream);
    tokio::spawn(async move {
        let address = format!("/messages?sessionId={name}");
        let endpoint = SseEvent {
            name: Some("endpoint"),
            data: &address,
            ..SseEvent::default()
        };
        if pieces.send(endpoint.text().into()).await.is_ok() {
            write_events(&frontend, &session, interim, &pieces).await;
        }
        frontend.legacy_sessions.lock().remove(&name);
        if let Some(conversation) = session.conversation.get() {
            frontend.gateway.close_conversation(&conversation.id);
        }
    });
    stream
}

/// Sends responses and other messages until the stream ends.
async fn write_events(
    frontend: &HttpFrontend,
    session: &LegacySession,
    mut interim: AgentReceiver,
    pieces: &mpsc::Sender<axum::body::Bytes>,
) {
    let mut after = 0;
    loop {
        let standing = async {
            match session.conversation.get() {
                Some(conversation) => conversation.standalone_stream.next_after(after).await,
                None => std::future::pending().await,
            }
        };
        let piece = tokio::select! {
            Some(text) = interim.recv() => message_event(None, &text),
            event = standing => match event {
                Some(event) => {
                    after = event.number;
                    message_event(None, &event.text)
                }
                None => return,
            },
            () = sleep_until(Instant::now() + KEEP_ALIVE) => comment("").into(),
            () = frontend.gateway.wait_for_shutdown() => return,
            () = pieces.closed() => return,
        };
        if pieces.send(piece).await.is_err() {
            return;
        }
    }
}

/// Accepts a message; the response is sent on the stream.
pub(super) async fn post_message(
    State(frontend): State<HttpFrontend>,
    Query(named): Query<LegacySessionQuery>,
    request: Request<Body>,
) -> Response {
    let (parts, body) = request.into_parts();
    let principal = match frontend.authenticate(&parts).await {
        Ok(principal) => principal,
        Err(refused) => return refused,
    };
    let session = frontend.legacy_sessions.lock().get(&named.session).cloned();
    let session = session.filter(|it| frontend.gateway.check_owner(&principal.name, &it.principal));
    let Some(session) = session else {
        let text = "this session is not known or has ended; open `/sse` again";
        return json(StatusCode::NOT_FOUND, text.to_owned());
    };
    let settings = frontend.gateway.settings();
    let body = match receive_body(body, &settings.listen).await {
        Ok(body) => body,
        Err(fault) => return (fault.status(), fault.to_string()).into_response(),
    };
    let most = settings.session_limits.in_flight_bytes;
    let in_flight = &frontend.gateway.shared.in_flight;
    let Ok(bytes) = in_flight.take(&principal.name, body.len(), most) else {
        return too_much_in_flight();
    };
    let claims = principal.claims;
    let messages = match read_messages(&body, &settings.listen) {
        Ok(messages) => messages,
        Err(invalid) => return (StatusCode::BAD_REQUEST, invalid.to_string()).into_response(),
    };
    tokio::spawn(async move {
        for message in messages {
            let (frontend, session, claims) =
                (frontend.clone(), Arc::clone(&session), claims.clone());
            let bytes = bytes.clone();
            if matches!(&message, RpcMessage::Request { method, .. } if method == "initialize") {
                handle_message(&frontend, &session, claims, (message, bytes)).await;
            } else {
                tokio::spawn(async move {
                    handle_message(&frontend, &session, claims, (message, bytes)).await
                });
            }
        }
    });
    StatusCode::ACCEPTED.into_response()
}

async fn handle_message(
    frontend: &HttpFrontend,
    session: &LegacySession,
    claims: Option<Arc<CallerClaims>>,
    (message, bytes): (RpcMessage, Option<Arc<RequestBytes>>),
) {
    let gateway = &frontend.gateway;
    let text = match (message, session.conversation.get()) {
        (RpcMessage::Request { id, method, .. }, Some(_)) if method == "initialize" => {
            let again = RpcError {
                code: INVALID_REQUEST,
                message: "this stream has a session already; open `/sse` again".to_owned(),
                data: None,
            };
            Some(encode::response(&id, Err(&again)))
        }
        (RpcMessage::Request { id, method, params }, _) if method == "initialize" => {
            let groups = session.groups.clone();
            let begun = gateway
                .initialize(
                    &session.principal,
                    claims.as_ref(),
                    params.as_deref(),
                    groups,
                )
                .await;
            Some(match begun {
                Ok(begun) => {
                    // A second `initialize` keeps the first conversation.
                    let _first = session.conversation.set(begun.conversation);
                    encode::result_response(&id, &begun.result)
                }
                Err(error) => encode::response(&id, Err(&error)),
            })
        }
        (message, Some(conversation)) => {
            let id = match &message {
                RpcMessage::Request { id, .. } => id.clone(),
                _ => RawValue::NULL.to_owned(),
            };
            let context = Arc::new(RequestContext {
                conversation: Arc::clone(conversation),
                agent: conversation.agent.load_full(),
                claims,
                groups: session.groups.clone(),
                sender: session.sender.clone(),
                id,
                headers: Arc::new(NoHeaders),
                trace: None,
                bytes,
            });
            gateway.keep_alive(conversation);
            gateway.take(&context, message).await
        }
        (_, None) => None,
    };
    if let Some(text) = text {
        session.sender.answer(text);
    }
}

impl LegacySessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<LegacySession>>> {
        // The map changes in one step, so it is consistent after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
