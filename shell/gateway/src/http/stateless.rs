//! Messages of the stateless era: each describes its agent completely.

use std::sync::Arc;

use axum::body::Bytes;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use toolwarden_mcp::error_codes::INVALID_REQUEST;
use toolwarden_mcp::protocol::VERSION_HEADER;
use toolwarden_mcp::serve::request_checks::{self, http_status};
use toolwarden_mcp::serve::{ReceivedHeader, encode, sse_event::comment};
use toolwarden_mcp::{RpcError, RpcMessage};

use super::channel_body::ChannelBody;
use super::event_stream::{KEEP_ALIVE, event_stream_response, message_event};
use super::mcp::{HttpRequestContext, error_response, null_id, reply_response, request_context};
use super::revocation::OpenEndedStream;
use super::router::{header_text, json};
use super::started_reply::{StartedReply, StreamStart, start_reply};
use crate::agent_info::Agent;
use crate::gateway::Gateway;
use crate::response_stream::{AgentReceiver, AgentSender};
use crate::router::RpcReply;

/// Answers a message of the stateless era. An agent cancels the request by closing the stream.
pub(super) async fn handle_stateless_message(
    gateway: &Gateway,
    http_context: HttpRequestContext,
    received: RpcMessage,
) -> Response {
    let (id, method, params) = match received {
        RpcMessage::Request { id, method, params } => (id, method, params),
        RpcMessage::Notification { .. } => {
            let version = header_text(&http_context.headers, VERSION_HEADER).unwrap_or_default();
            return match request_checks::unsupported_version(version) {
                Some(refusal) => check_failure_response(&null_id(), refusal),
                None => StatusCode::ACCEPTED.into_response(),
            };
        }
        RpcMessage::Response { .. } => {
            let words = "this version has no server requests, so it has no responses to them";
            return error_response(StatusCode::BAD_REQUEST, INVALID_REQUEST, words);
        }
    };
    let headers = Arc::clone(&http_context.headers);
    let checked = request_checks::check(&method, params.as_deref(), |name| {
        ReceivedHeader::lookup(&headers, name)
    });
    let envelope = match checked {
        Ok(envelope) => envelope,
        Err(refusal) => return check_failure_response(&id, refusal),
    };
    let agent = Agent::from_envelope(envelope);
    let begun =
        gateway.stateless_conversation(&http_context.principal.name, params.as_deref(), &agent);
    let conversation = match begun {
        Ok(conversation) => conversation,
        Err(refused) => return rpc_error_response(&id, &refused),
    };
    let stands = method == "subscriptions/listen";
    let (outlet, mut interim) = AgentSender::channel();
    let context = request_context(&http_context, &conversation, Arc::new(agent), outlet, id);
    let start = StreamStart::FirstMessage;
    let started = start_reply(gateway, &context, (method, params), &mut interim, start);
    let (first, mut work) = match started.await {
        StartedReply::Complete(reply) => return stateless_response(&reply, &context.id),
        StartedReply::Stream(first, work) => (first, work),
    };
    let (pieces, body) = ChannelBody::channel();
    tokio::spawn(async move {
        let sent = forward_interim_messages(&pieces, first, &mut interim, &mut work).await;
        if let Some(text) = sent.and_then(|reply| reply.text(&context.id)) {
            drop(pieces.send(message_event(None, &text)).await);
        }
    });
    let mut stream = event_stream_response(body);
    if stands {
        stream.extensions_mut().insert(OpenEndedStream);
    }
    stream
}

/// Sends messages that come before the response; returns the response, unless the agent is gone.
async fn forward_interim_messages(
    pieces: &mpsc::Sender<Bytes>,
    first: Option<String>,
    interim: &mut AgentReceiver,
    work: &mut (impl Future<Output = RpcReply> + Unpin),
) -> Option<RpcReply> {
    let connect_request =
        first.map_or_else(|| comment("").into(), |text| message_event(None, &text));
    let mut waiting = Some(connect_request);
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
            Some(text) = interim.recv(), if is_sent => waiting = Some(message_event(None, &text)),
            // The request proceeds whether the agent reads or not.
            reply = &mut *work => break reply,
            () = sleep_until(Instant::now() + KEEP_ALIVE), if is_sent => waiting = Some(comment("").into()),
            () = pieces.closed() => return None,
        }
    };
    let left = std::iter::from_fn(|| interim.try_recv()).map(|text| message_event(None, &text));
    for piece in waiting.into_iter().chain(left) {
        pieces.send(piece).await.ok()?;
    }
    Some(reply)
}

fn stateless_response(reply: &RpcReply, id: &RawValue) -> Response {
    match reply {
        RpcReply::Error(told) => rpc_error_response(id, told),
        reply => reply_response(reply, id),
    }
}

fn rpc_error_response(id: &RawValue, told: &RpcError) -> Response {
    let status = StatusCode::from_u16(http_status(told.code)).unwrap_or(StatusCode::OK);
    json(status, encode::response(id, Err(told)))
}

fn check_failure_response(id: &RawValue, refusal: request_checks::RequestRefusal) -> Response {
    let status = StatusCode::from_u16(refusal.http_status).unwrap_or(StatusCode::BAD_REQUEST);
    json(status, encode::response(id, Err(&refusal.into())))
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn a_call_ends_while_its_agent_does_not_read() {
        let (pieces, _unread) = ChannelBody::channel();
        let (outlet, mut interim) = AgentSender::channel();
        while outlet.send("{}".to_owned()) {}
        let (ends, ended) = oneshot::channel();
        let mut work = Box::pin(async move {
            tokio::task::yield_now().await;
            ends.send(()).unwrap();
            RpcReply::NoReply
        });
        tokio::select! {
            biased;
            ended = ended => ended.unwrap(),
            _ = forward_interim_messages(&pieces, None, &mut interim, &mut work) => panic!("no reader"),
        }
    }
}
