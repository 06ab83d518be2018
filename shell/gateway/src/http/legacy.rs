//! The HTTP+SSE transport of 2024-11-05: one stream for everything the gateway says, and an address to
//! post messages to.

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
use toolwarden_mcp::codes::INVALID_REQUEST;
use toolwarden_mcp::serve::answer;
use toolwarden_mcp::serve::events::{OutgoingEvent, comment};
use toolwarden_mcp::{Message, RpcError};
use toolwarden_warden::guard::CallerClaims;

use super::body::Pieces;
use super::front::{Front, json};
use super::groups::requested;
use super::mcp::too_much_in_flight;
use super::receive::receive;
use super::revocation::Standing;
use super::stream::{ALIVE, events, message};
use crate::blocking::read_messages;
use crate::conversation::Conversation;
use crate::in_flight::RequestBytes;
use crate::outlet::{Interim, Outlet};
use crate::relay::{Asked, NoHeaders};

/// The most open streams.
const MOST: usize = 10_000;

/// The open streams by name.
#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<HashMap<String, Arc<Session>>>);

/// One open stream.
#[derive(Debug)]
struct Session {
    principal: Arc<str>,
    groups: Option<toolwarden_guard::RequestedGroups>,
    outlet: Outlet,
    conversation: OnceLock<Arc<Conversation>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Named {
    #[serde(rename = "sessionId")]
    session: String,
}

/// Opens a stream and says where messages go.
pub(super) async fn open(State(front): State<Front>, request: Request<Body>) -> Response {
    let (parts, _) = request.into_parts();
    let principal = match front.admit(&parts).await {
        Ok(principal) => principal,
        Err(refused) => return refused,
    };
    if front.gateway.is_ending() {
        return super::mcp::ending(&super::mcp::null());
    }
    let mut bytes = [0_u8; 16];
    if getrandom::fill(&mut bytes).is_err() || front.legacy.lock().len() >= MOST {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let name: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let (outlet, interim) = Outlet::channel();
    let session = Arc::new(Session {
        principal: Arc::clone(&principal.name),
        groups: requested(None, &parts.headers),
        outlet,
        conversation: OnceLock::new(),
    });
    front
        .legacy
        .lock()
        .insert(name.clone(), Arc::clone(&session));
    let (pieces, body) = Pieces::channel();
    let mut stream = events(body);
    stream.extensions_mut().insert(Standing);
    let stream = front.while_accepted(&principal, stream);
    tokio::spawn(async move {
        let address = format!("/messages?sessionId={name}");
        let endpoint = OutgoingEvent {
            name: Some("endpoint"),
            data: &address,
            ..OutgoingEvent::default()
        };
        if pieces.send(endpoint.text().into()).await.is_ok() {
            speak(&front, &session, interim, &pieces).await;
        }
        front.legacy.lock().remove(&name);
        if let Some(conversation) = session.conversation.get() {
            front.gateway.close_conversation(&conversation.id);
        }
    });
    stream
}

/// Sends answers and what comes without having been asked for, until somebody ends it.
async fn speak(
    front: &Front,
    session: &Session,
    mut interim: Interim,
    pieces: &mpsc::Sender<axum::body::Bytes>,
) {
    let mut after = 0;
    loop {
        let standing = async {
            match session.conversation.get() {
                Some(conversation) => conversation.standing.after(after).await,
                None => std::future::pending().await,
            }
        };
        let piece = tokio::select! {
            Some(text) = interim.recv() => message(None, &text),
            event = standing => match event {
                Some(event) => {
                    after = event.number;
                    message(None, &event.text)
                }
                None => return,
            },
            () = sleep_until(Instant::now() + ALIVE) => comment("").into(),
            () = front.gateway.ending() => return,
            () = pieces.closed() => return,
        };
        if pieces.send(piece).await.is_err() {
            return;
        }
    }
}

/// Takes a message; the answer goes out on the stream.
pub(super) async fn take(
    State(front): State<Front>,
    Query(named): Query<Named>,
    request: Request<Body>,
) -> Response {
    let (parts, body) = request.into_parts();
    let principal = match front.admit(&parts).await {
        Ok(principal) => principal,
        Err(refused) => return refused,
    };
    let session = front.legacy.lock().get(&named.session).cloned();
    let session = session.filter(|it| front.gateway.is_of(&principal.name, &it.principal));
    let Some(session) = session else {
        let text = "this session is not known or has ended; open `/sse` again";
        return json(StatusCode::NOT_FOUND, text.to_owned());
    };
    let settings = front.gateway.settings();
    let body = match receive(body, &settings.listen).await {
        Ok(body) => body,
        Err(fault) => return (fault.status(), fault.to_string()).into_response(),
    };
    let most = settings.session_limits.in_flight_bytes;
    let in_flight = &front.gateway.shared.in_flight;
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
            let (front, session, claims) = (front.clone(), Arc::clone(&session), claims.clone());
            let bytes = bytes.clone();
            if matches!(&message, Message::Request { method, .. } if method == "initialize") {
                respond(&front, &session, claims, (message, bytes)).await;
            } else {
                tokio::spawn(
                    async move { respond(&front, &session, claims, (message, bytes)).await },
                );
            }
        }
    });
    StatusCode::ACCEPTED.into_response()
}

async fn respond(
    front: &Front,
    session: &Session,
    claims: Option<Arc<CallerClaims>>,
    (message, bytes): (Message, Option<Arc<RequestBytes>>),
) {
    let gateway = &front.gateway;
    let text = match (message, session.conversation.get()) {
        (Message::Request { id, method, .. }, Some(_)) if method == "initialize" => {
            let again = RpcError {
                code: INVALID_REQUEST,
                message: "this stream has a session already; open `/sse` again".to_owned(),
                data: None,
            };
            Some(answer::outcome(&id, Err(&again)))
        }
        (Message::Request { id, method, params }, _) if method == "initialize" => {
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
                    answer::answer_with(&id, &begun.result)
                }
                Err(error) => answer::outcome(&id, Err(&error)),
            })
        }
        (message, Some(conversation)) => {
            let id = match &message {
                Message::Request { id, .. } => id.clone(),
                _ => RawValue::NULL.to_owned(),
            };
            let asked = Arc::new(Asked {
                conversation: Arc::clone(conversation),
                agent: conversation.agent.load_full(),
                claims,
                groups: session.groups.clone(),
                outlet: session.outlet.clone(),
                id,
                headers: Arc::new(NoHeaders),
                trace: None,
                bytes,
            });
            gateway.keep_alive(conversation);
            gateway.take(&asked, message).await
        }
        (_, None) => None,
    };
    if let Some(text) = text {
        session.outlet.answer(text);
    }
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        // A map that is changed in one step is whole after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
