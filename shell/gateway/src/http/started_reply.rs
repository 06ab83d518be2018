//! The start of a reply: one JSON text, or a stream of events.

use std::pin::Pin;
use std::sync::Arc;

use serde_json::value::RawValue;
use tokio::time::{Instant, sleep_until};

use super::event_stream::KEEP_ALIVE;
use crate::gateway::Gateway;
use crate::request_context::RequestContext;
use crate::response_stream::AgentReceiver;
use crate::router::RpcReply;

/// A reply that is not finished yet.
type PendingReply = Pin<Box<dyn Future<Output = RpcReply> + Send>>;

/// When a reply becomes a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamStart {
    /// Never: the agent accepts none.
    Never,
    /// With the first message before the response, or after a while.
    FirstMessage,
    /// As above, and as soon as the server responds with a stream.
    FirstMessageOrServerStream,
}

/// What is known of a reply once it is clear how it is sent.
pub(super) enum StartedReply {
    /// It is complete, and nothing came before it.
    Complete(RpcReply),
    /// It is a stream: the first message, if there is one yet, and the response.
    Stream(Option<String>, PendingReply),
}

/// Handles a request until it is clear how its reply is sent.
pub(super) async fn start_reply(
    gateway: &Gateway,
    context: &Arc<RequestContext>,
    (method, params): (String, Option<Box<RawValue>>),
    interim: &mut AgentReceiver,
    start: StreamStart,
) -> StartedReply {
    let mut work: PendingReply = Box::pin({
        let (gateway, context) = (gateway.clone(), Arc::clone(context));
        async move {
            gateway
                .handle_request(&context, &method, params.as_deref())
                .await
        }
    });
    if start == StreamStart::Never {
        return StartedReply::Complete(work.await);
    }
    let follows_server = start == StreamStart::FirstMessageOrServerStream;
    let reply = tokio::select! {
        biased;
        reply = &mut work => reply,
        first = interim.begun(follows_server) => return StartedReply::Stream(first, work),
        () = sleep_until(Instant::now() + KEEP_ALIVE) => return StartedReply::Stream(None, work),
    };
    match interim.try_recv() {
        None if !(follows_server && interim.is_streamed()) => StartedReply::Complete(reply),
        first => StartedReply::Stream(first, Box::pin(std::future::ready(reply))),
    }
}
