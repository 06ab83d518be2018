//! Workflow sessions.

use std::collections::HashMap;

use serde_json::{Value, json};
use toolwarden_mcp::{Era, Members};
use toolwarden_warden::guard::{RequestLog, SessionSummary};

use super::answer::Answer;
use super::asking::Asking;
use super::error::{ApiError, ErrorKind};
use super::page::page;
use super::route::Handled;
use super::servers::era;
use crate::conversation::Conversation;
use crate::gateway::Gateway;

/// Names a principal's own session, which has no name.
const OWN: &str = "~";

/// `GET /sessions`
pub(super) async fn list(asking: Asking) -> Handled {
    let sessions = theirs(&asking)?;
    let conversations = asking.gateway().conversations().all();
    let count = sessions.len();
    let key = |it: &SessionSummary| format!("{}/{}", it.principal, it.session);
    let (sessions, next) = page(sessions, &asking.given, key)?;
    let mut by_session: HashMap<(&str, &str), Vec<&Conversation>> = HashMap::new();
    for conversation in &conversations {
        let name = conversation.session.as_deref().unwrap_or_default();
        let of_session = by_session.entry((&conversation.principal, name));
        of_session.or_default().push(conversation);
    }
    let entries = sessions.iter().map(|session| {
        let of_session = by_session.get(&(session.principal.as_str(), session.session.as_str()));
        let of_session = of_session.into_iter().flatten();
        let conversations: Vec<Value> = of_session.map(|it| conversation(it)).collect();
        let mut entry = session.document();
        if let Value::Object(members) = &mut entry {
            members.insert("id".to_owned(), id(&session.session).into());
            members.insert("conversations".to_owned(), conversations.into());
        }
        entry
    });
    let entries: Vec<Value> = entries.collect();
    Ok(Answer::document(
        "sessions",
        json!({"sessions": entries, "count": count, "next": next}),
    ))
}

/// `GET /sessions/{id}`
pub(super) async fn one(asking: Asking) -> Handled {
    let session = named(&asking)?;
    let guard = asking.gateway().guard();
    let log = guard.request_log(&session.principal, &session.session);
    let log = log.ok_or_else(|| unknown(id(&session.session)))?;
    Ok(told(&session, &log))
}

/// `DELETE /sessions/{id}`
pub(super) async fn end(asking: Asking) -> Handled {
    let session = named(&asking)?;
    let gateway = asking.gateway();
    let guard = gateway.guard();
    let log = guard.close_session(&session.principal, &session.session);
    let log = log.ok_or_else(|| unknown(id(&session.session)))?;
    // Agents that go on have to begin anew.
    for conversation in gateway.conversations().all() {
        if belongs(&conversation, &session) {
            gateway.close_conversation(&conversation.id);
        }
    }
    let whose = json!({"principal": session.principal, "session": id(&session.session)});
    asking.did("session_ended", whose).await?;
    Ok(told(&session, &log))
}

fn told(session: &SessionSummary, log: &RequestLog) -> Answer {
    let state = &*log.session.state;
    Answer::document(
        "session",
        json!({"principal": session.principal, "state": state, "log": log.document()}),
    )
}

/// The state a session is in.
pub(super) fn state(gateway: &Gateway, principal: &str, session: Option<&str>) -> String {
    let session = gateway
        .guard()
        .session(principal, session.unwrap_or_default());
    session.map_or_else(
        || gateway.guard().initial_state(principal).to_string(),
        |it| it.state.to_string(),
    )
}

/// The sessions a caller may look at: their own, or for administrators all.
fn theirs(asking: &Asking) -> Result<Vec<SessionSummary>, ApiError> {
    let caller = asking.caller()?;
    let mut sessions = asking.gateway().guard().sessions();
    match asking.given.text("principal") {
        Some(_) => {
            let principal = asking.about("look at sessions")?;
            sessions.retain(|it| *it.principal == *principal);
        }
        None if caller.admin => {}
        None => sessions.retain(|it| *it.principal == *caller.name),
    }
    Ok(sessions)
}

fn named(asking: &Asking) -> Result<SessionSummary, ApiError> {
    let wanted = asking.given.needed("id")?;
    let mut sessions = theirs(asking)?;
    sessions.retain(|it| id(&it.session) == wanted);
    match (sessions.pop(), sessions.pop()) {
        (Some(session), None) => Ok(session),
        (None, _) => Err(unknown(wanted)),
        (Some(one), Some(other)) => Err(ApiError::new(
            ErrorKind::Conflict,
            format!(
                "`{}` and `{}` both have a session `{wanted}`",
                other.principal, one.principal
            ),
            "Say whose with `?principal=`.",
        )),
    }
}

fn id(session: &str) -> &str {
    if session.is_empty() { OWN } else { session }
}

fn unknown(id: &str) -> ApiError {
    ApiError::not_found(
        format!("there is no session `{id}`"),
        "`GET /api/v1/sessions` lists the sessions; those that nobody used for long are forgotten.",
    )
}

fn belongs(conversation: &Conversation, session: &SessionSummary) -> bool {
    let name = conversation.session.as_deref().unwrap_or_default();
    *conversation.principal == *session.principal && name == session.session
}

fn conversation(conversation: &Conversation) -> Value {
    let agent = conversation.agent.load();
    let info = Members::of(&agent.face.info).ok();
    let client = info.and_then(|it| it.text("name").map(|name| name.into_owned()));
    json!({
        "era": era(agent.era),
        "protocol_version": agent.version,
        "client": client,
        // The name of a stateless one is made of what it says, and means nothing to anybody.
        "mcp_session_id": (agent.era == Era::Handshake).then_some(&*conversation.id),
        "listening": conversation.is_listening() || !conversation.listeners().is_empty(),
    })
}
