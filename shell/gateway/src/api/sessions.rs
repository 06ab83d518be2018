//! Workflow sessions.

use std::collections::HashMap;

use serde_json::{Value, json};
use toolwarden_live_guard::{RequestLog, SessionSummary};
use toolwarden_mcp::{Era, RawObject};
use toolwarden_model::StateName;

use super::error::{ApiError, ApiErrorKind};
use super::page::paginate;
use super::request::ApiRequest;
use super::response::ApiResponse;
use super::route::HandlerResult;
use super::servers::era_name;
use crate::conversation::Conversation;
use crate::gateway::Gateway;

/// Names a principal's own session, which has no name.
const UNNAMED_SESSION: &str = "~";

/// `GET /sessions`
pub(super) async fn list(api_request: ApiRequest) -> HandlerResult {
    let sessions = visible_sessions(&api_request)?;
    let conversations = api_request.gateway().conversations().all();
    let count = sessions.len();
    let key = |it: &SessionSummary| format!("{}/{}", it.principal, it.session);
    let (sessions, next) = paginate(sessions, &api_request.params, key)?;
    let mut by_session: HashMap<(&str, &str), Vec<&Conversation>> = HashMap::new();
    for conversation in &conversations {
        let name = conversation.session.as_deref().unwrap_or_default();
        let of_session = by_session.entry((&conversation.principal, name));
        of_session.or_default().push(conversation);
    }
    let entries = sessions.iter().map(|session| {
        let of_session = by_session.get(&(session.principal.as_str(), session.session.as_str()));
        let of_session = of_session.into_iter().flatten();
        let conversations: Vec<Value> = of_session.map(|it| conversation_entry(it)).collect();
        let mut entry = session.document();
        if let Value::Object(members) = &mut entry {
            members.insert("id".to_owned(), session_id(&session.session).into());
            members.insert("conversations".to_owned(), conversations.into());
        }
        entry
    });
    let entries: Vec<Value> = entries.collect();
    Ok(ApiResponse::document(
        "sessions",
        json!({"sessions": entries, "count": count, "next": next}),
    ))
}

/// `GET /sessions/{id}`
pub(super) async fn get(api_request: ApiRequest) -> HandlerResult {
    let session = find_session(&api_request)?;
    let guard = api_request.gateway().guard();
    let log = guard.request_log(&session.principal, &session.session);
    let log = log.ok_or_else(|| unknown_session(session_id(&session.session)))?;
    Ok(session_response(&session, &log))
}

/// `DELETE /sessions/{id}`
pub(super) async fn end(api_request: ApiRequest) -> HandlerResult {
    let session = find_session(&api_request)?;
    let gateway = api_request.gateway();
    let guard = gateway.guard();
    let log = guard.close_session(&session.principal, &session.session);
    let log = log.ok_or_else(|| unknown_session(session_id(&session.session)))?;
    // Agents that continue must open a new conversation.
    for conversation in gateway.conversations().all() {
        if is_in_session(&conversation, &session) {
            gateway.close_conversation(&conversation.id);
        }
    }
    let whose = json!({"principal": session.principal, "session": session_id(&session.session)});
    api_request.record_action("session_ended", whose).await?;
    Ok(session_response(&session, &log))
}

fn session_response(session: &SessionSummary, log: &RequestLog) -> ApiResponse {
    let state = &log.session.state;
    ApiResponse::document(
        "session",
        json!({"principal": session.principal, "state": state, "log": log.document()}),
    )
}

/// The current state of a session.
pub(super) fn session_state(
    gateway: &Gateway,
    principal: &str,
    session: Option<&str>,
) -> StateName {
    let session = gateway
        .guard()
        .session(principal, session.unwrap_or_default());
    session.map_or_else(|| gateway.guard().initial_state(principal), |it| it.state)
}

/// The sessions a caller may see: its own, or all for administrators.
fn visible_sessions(api_request: &ApiRequest) -> Result<Vec<SessionSummary>, ApiError> {
    let caller = api_request.caller()?;
    let mut sessions = api_request.gateway().guard().sessions();
    match api_request.params.text("principal") {
        Some(_) => {
            let principal = api_request.subject("look at sessions")?;
            sessions.retain(|it| *it.principal == *principal);
        }
        None if caller.admin => {}
        None => sessions.retain(|it| *it.principal == *caller.name),
    }
    Ok(sessions)
}

fn find_session(api_request: &ApiRequest) -> Result<SessionSummary, ApiError> {
    let wanted = api_request.params.required_text("id")?;
    let mut sessions = visible_sessions(api_request)?;
    sessions.retain(|it| session_id(&it.session) == wanted);
    match (sessions.pop(), sessions.pop()) {
        (Some(session), None) => Ok(session),
        (None, _) => Err(unknown_session(wanted)),
        (Some(one), Some(other)) => Err(ApiError::new(
            ApiErrorKind::Conflict,
            format!(
                "`{}` and `{}` both have a session `{wanted}`",
                other.principal, one.principal
            ),
            "Say whose with `?principal=`.",
        )),
    }
}

fn session_id(session: &str) -> &str {
    if session.is_empty() {
        UNNAMED_SESSION
    } else {
        session
    }
}

fn unknown_session(id: &str) -> ApiError {
    ApiError::not_found(
        format!("there is no session `{id}`"),
        "`GET /api/v1/sessions` lists the sessions; sessions that are idle for long expire.",
    )
}

fn is_in_session(conversation: &Conversation, session: &SessionSummary) -> bool {
    let name = conversation.session.as_deref().unwrap_or_default();
    *conversation.principal == *session.principal && name == session.session
}

fn conversation_entry(conversation: &Conversation) -> Value {
    let agent = conversation.agent.load();
    let info = RawObject::parse(&agent.client_info.info).ok();
    let client = info.and_then(|it| it.text("name").map(|name| name.into_owned()));
    json!({
        "era": era_name(agent.era),
        "protocol_version": agent.version,
        "client": client,
        // The id of a stateless conversation is derived from its content and means nothing to clients.
        "mcp_session_id": (agent.era == Era::Handshake).then_some(&*conversation.id),
        "listening": conversation.is_listening() || !conversation.notification_streams().is_empty(),
    })
}
