//! Handles the messages of agents: answers them or forwards them to servers.

mod attributes;
mod call;
mod call_route;
mod call_trace;
mod duplicate_members;
mod error_replies;
mod extensions;
mod features;
mod forward;
mod initialize;
mod input_required;
mod known_feature;
mod listen;
mod lists;
mod metrics_recorder;
mod notify_agent;
mod other_methods;
mod resource_subscriptions;
mod resources;
mod result_kind;
mod server_access;
mod server_messages;
mod server_subscriptions;
mod session_groups;
mod session_restore;
mod skill_files;
mod tasks;
mod tool_directory;

use std::sync::Arc;

use serde_json::value::RawValue;
use toolwarden_mcp::error_codes::{INVALID_REQUEST, METHOD_NOT_FOUND};
use toolwarden_mcp::serve::encode;
use toolwarden_mcp::{Era, RawObject, RpcError, RpcMessage};

use crate::catalog::ListKind;
use crate::gateway::Gateway;
use crate::request_context::RequestContext;

use duplicate_members::parse_params;
pub(crate) use error_replies::shutdown_error;
pub use initialize::InitializeOutcome;
use result_kind::with_result_type;
pub use server_messages::GatewayUpstreamObserver;

/// The reply to an agent's request.
#[derive(Debug)]
pub enum RpcReply {
    /// The text of the result.
    Result(String),
    /// An error.
    Error(RpcError),
    /// Nothing: the agent cancelled the request.
    NoReply,
}

impl RpcReply {
    fn from_raw(result: Box<RawValue>) -> Self {
        Self::Result(String::from(Box::<str>::from(result)))
    }

    pub(crate) fn error(code: i64, message: impl Into<String>) -> Self {
        Self::Error(RpcError {
            code,
            message: message.into(),
            data: None,
        })
    }
}

/// An empty result.
const EMPTY: &str = "{}";
/// Methods that the stateless era removed. A server behind the gateway may still answer them.
const REMOVED_METHODS: [&str; 7] = [
    "initialize",
    "logging/setLevel",
    "ping",
    "resources/subscribe",
    "resources/unsubscribe",
    "tasks/list",
    "tasks/result",
];

impl Gateway {
    /// Answers a request of an agent.
    pub async fn handle_request(
        &self,
        context: &Arc<RequestContext>,
        method: &str,
        params: Option<&RawValue>,
    ) -> RpcReply {
        let began = self.now();
        // Over HTTP a stateless agent cancels by closing the stream, which drops this future.
        let most = self.settings().session_limits.requests;
        let Some(under_way) = context.conversation.begin(context.id.get(), most) else {
            let text = format!(
                "this conversation has {most} requests in flight already (`sessions.max_requests`); wait for \
                 some of them"
            );
            return RpcReply::error(INVALID_REQUEST, text);
        };
        let reply = tokio::select! {
            reply = self.dispatch(context, method, params) => reply,
            () = under_way.cancelled() => RpcReply::NoReply,
        }
        .for_era(context.agent.era);
        let took = self.now().saturating_sub(began);
        self.count_response(method, context.agent.era, &reply, took);
        reply
    }

    async fn dispatch(
        &self,
        context: &Arc<RequestContext>,
        method: &str,
        params: Option<&RawValue>,
    ) -> RpcReply {
        // A call parses its parameters itself, only once.
        if method != "tools/call"
            && let Some(Err(reply)) = params.map(parse_params)
        {
            return reply;
        }
        if context.agent.era == Era::Stateless && REMOVED_METHODS.contains(&method) {
            return unknown_method(method);
        }
        if method == "tools/call" {
            return self.call_tool_traced(context, params).await;
        }
        // Other requests are rare compared with calls; boxing keeps the future of a call small.
        Box::pin(self.dispatch_other(context, method, params)).await
    }

    async fn dispatch_other(
        &self,
        context: &Arc<RequestContext>,
        method: &str,
        params: Option<&RawValue>,
    ) -> RpcReply {
        match method {
            "tools/list" => self.list(context, ListKind::Tools, params).await,
            "prompts/list" => self.list(context, ListKind::Prompts, params).await,
            "resources/list" => self.list(context, ListKind::Resources, params).await,
            "resources/templates/list" => self.list(context, ListKind::Templates, params).await,
            "ping" => RpcReply::Result(EMPTY.to_owned()),
            "server/discover" => self.discover(context).await,
            "prompts/get" => self.get_prompt(context, params).await,
            "resources/read" => self.read_resource(context, params).await,
            "resources/directory/read" => self.forward_to_owner(context, method, params).await,
            "skills/list" => self.list(context, ListKind::Skills, params).await,
            "skills/get" => self.forward_to_owner(context, method, params).await,
            "resources/subscribe" | "resources/unsubscribe" => {
                self.subscribe(context, method, params).await
            }
            "completion/complete" => self.complete(context, params).await,
            "logging/setLevel" => self.set_log_level(context, params).await,
            "subscriptions/listen" if context.agent.era == Era::Stateless => {
                self.listen(context, params).await
            }
            "initialize" => RpcReply::error(INVALID_REQUEST, "this session is initialized already"),
            "tasks/list" | "tasks/get" | "tasks/result" | "tasks/cancel" | "tasks/update" => {
                self.handle_task_request(context, method, params).await
            }
            method => self.forward_unknown_method(context, method, params).await,
        }
    }

    /// Handles a notification of an agent.
    pub async fn handle_notification(
        &self,
        context: &Arc<RequestContext>,
        method: &str,
        params: Option<&RawValue>,
    ) {
        match method {
            "notifications/cancelled" => {
                let params = RawObject::parse_optional(params);
                if let Some(id) = params.get("requestId") {
                    context.conversation.cancel(id);
                }
            }
            // The gateway notified the servers when it connected to them.
            "notifications/initialized" => {}
            // Cancellation and progress of server requests belong to the agent's responses. A request without an id
            // is not a notification, and the guard has not authorized it.
            method
                if method.starts_with("notifications/")
                    && !matches!(params.map(parse_params), Some(Err(_))) =>
            {
                self.forward_notification(context, method, params).await;
            }
            _ => {}
        }
    }

    /// Handles an agent's response to a request of a server.
    pub fn handle_response(
        &self,
        context: &RequestContext,
        id: &RawValue,
        answer: crate::conversation::AgentResponse,
    ) {
        context.conversation.handle_response(id, answer);
    }

    /// Handles any message of an agent; returns the text of the response if there is one.
    pub async fn take(&self, context: &Arc<RequestContext>, message: RpcMessage) -> Option<String> {
        match message {
            RpcMessage::Request { id, method, params } => {
                let reply = self
                    .handle_request(context, &method, params.as_deref())
                    .await;
                reply.text(&id)
            }
            RpcMessage::Notification { method, params } => {
                self.handle_notification(context, &method, params.as_deref())
                    .await;
                None
            }
            RpcMessage::Response { id, outcome } => {
                self.handle_response(context, &id, outcome);
                None
            }
        }
    }
}

impl RpcReply {
    /// The reply as the agent's era requires it. Every result passes here, whichever part made it: the official
    /// clients reject a stateless result without its type.
    fn for_era(self, era: Era) -> Self {
        match (self, era) {
            (Self::Result(result), Era::Stateless) => Self::Result(with_result_type(result)),
            (reply, _) => reply,
        }
    }

    /// The text of the response to a request.
    #[must_use]
    pub fn text(&self, id: &RawValue) -> Option<String> {
        match self {
            Self::Result(result) => Some(encode::result_response(id, result)),
            Self::Error(error) => Some(encode::response(id, Err(error))),
            Self::NoReply => None,
        }
    }
}

fn unknown_method(method: &str) -> RpcReply {
    RpcReply::error(
        METHOD_NOT_FOUND,
        format!("no server behind this gateway offers `{method}`"),
    )
}
