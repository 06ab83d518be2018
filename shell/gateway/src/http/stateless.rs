//! Messages of the stateless era: each says all there is to say of its agent.

use std::sync::Arc;

use axum::body::Bytes;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use toolwarden_mcp::codes::INVALID_REQUEST;
use toolwarden_mcp::protocol::VERSION_HEADER;
use toolwarden_mcp::serve::ladder::{self, http_status};
use toolwarden_mcp::serve::{Sent, answer, events::comment};
use toolwarden_mcp::{Message, RpcError};

use super::body::Pieces;
use super::front::{json, text};
use super::mcp::{Came, answered, asked, null, refuse};
use super::revocation::Standing;
use super::stream::{ALIVE, events, message};
use crate::agent::Agent;
use crate::gateway::Gateway;
use crate::outlet::{Interim, Outlet};
use crate::relay::Reply;

/// Answers a message of the stateless era. An agent that closes the stream gives the request up.
pub(super) async fn answer_to(gateway: &Gateway, came: Came, received: Message) -> Response {
    let (id, method, params) = match received {
        Message::Request { id, method, params } => (id, method, params),
        Message::Notification { .. } => {
            let version = text(&came.headers, VERSION_HEADER).unwrap_or_default();
            return match ladder::unsupported(version) {
                Some(refusal) => refused_by_ladder(&null(), refusal),
                None => StatusCode::ACCEPTED.into_response(),
            };
        }
        Message::Response { .. } => {
            let words = "this version has no requests of servers, and so no answers to them";
            return refuse(StatusCode::BAD_REQUEST, INVALID_REQUEST, words);
        }
    };
    let headers = Arc::clone(&came.headers);
    let checked = ladder::check(&method, params.as_deref(), |name| Sent::of(&headers, name));
    let envelope = match checked {
        Ok(envelope) => envelope,
        Err(refusal) => return refused_by_ladder(&id, refusal),
    };
    let agent = Agent::of_envelope(envelope);
    let begun = gateway.stateless_conversation(&came.principal.name, params.as_deref(), &agent);
    let conversation = match begun {
        Ok(conversation) => conversation,
        Err(refused) => return error(&id, &refused),
    };
    let stands = method == "subscriptions/listen";
    let (outlet, mut interim) = Outlet::channel();
    let asked = asked(&came, &conversation, Arc::new(agent), outlet, id);
    let mut work = Box::pin({
        let (gateway, asked) = (gateway.clone(), Arc::clone(&asked));
        async move { gateway.handle(&asked, &method, params.as_deref()).await }
    });
    let (first, done) = tokio::select! {
        biased;
        reply = &mut work => match interim.try_recv() {
            Some(first) => (Some(first), Some(reply)),
            None => return answered_with(&reply, &asked.id),
        },
        first = interim.recv() => (first, None),
        () = sleep_until(Instant::now() + ALIVE) => (None, None),
    };
    let mut work = Box::pin(async move {
        match done {
            Some(reply) => reply,
            None => work.await,
        }
    });
    let (pieces, body) = Pieces::channel();
    tokio::spawn(async move {
        let sent = pour(&pieces, first, &mut interim, &mut work).await;
        if let Some(text) = sent.and_then(|reply| reply.text(&asked.id)) {
            drop(pieces.send(message(None, &text)).await);
        }
    });
    let mut stream = events(body);
    if stands {
        stream.extensions_mut().insert(Standing);
    }
    stream
}

/// Sends what comes before the answer; gives the answer, unless the agent is gone.
async fn pour(
    pieces: &mpsc::Sender<Bytes>,
    first: Option<String>,
    interim: &mut Interim,
    work: &mut (impl Future<Output = Reply> + Unpin),
) -> Option<Reply> {
    let opening = first.map_or_else(|| comment("").into(), |text| message(None, &text));
    let mut waiting = Some(opening);
    let reply = loop {
        let is_sent = waiting.is_none();
        tokio::select! {
            biased;
            place = pieces.reserve(), if !is_sent => {
                let place = place.ok()?;
                if let Some(piece) = waiting.take() {
                    place.send(piece);
                }
            }
            Some(text) = interim.recv(), if is_sent => waiting = Some(message(None, &text)),
            // Its time passes whether the agent reads or not.
            reply = &mut *work => break reply,
            () = sleep_until(Instant::now() + ALIVE), if is_sent => waiting = Some(comment("").into()),
            () = pieces.closed() => return None,
        }
    };
    let left = std::iter::from_fn(|| interim.try_recv()).map(|text| message(None, &text));
    for piece in waiting.into_iter().chain(left) {
        pieces.send(piece).await.ok()?;
    }
    Some(reply)
}

fn answered_with(reply: &Reply, id: &RawValue) -> Response {
    match reply {
        Reply::Error(told) => error(id, told),
        reply => answered(reply, id),
    }
}

fn error(id: &RawValue, told: &RpcError) -> Response {
    let status = StatusCode::from_u16(http_status(told.code)).unwrap_or(StatusCode::OK);
    json(status, answer::outcome(id, Err(told)))
}

fn refused_by_ladder(id: &RawValue, refusal: ladder::Refusal) -> Response {
    let status = StatusCode::from_u16(refusal.http_status).unwrap_or(StatusCode::BAD_REQUEST);
    json(status, answer::outcome(id, Err(&refusal.into())))
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn a_call_ends_while_its_agent_does_not_read() {
        let (pieces, _unread) = Pieces::channel();
        let (outlet, mut interim) = Outlet::channel();
        while outlet.send("{}".to_owned()) {}
        let (ends, ended) = oneshot::channel();
        let mut work = Box::pin(async move {
            tokio::task::yield_now().await;
            ends.send(()).unwrap();
            Reply::Nothing
        });
        tokio::select! {
            biased;
            ended = ended => ended.unwrap(),
            _ = pour(&pieces, None, &mut interim, &mut work) => panic!("nobody reads"),
        }
    }
}
