//! What becomes of the messages of agents.

mod asked;
mod attributes;
mod call;
mod denial;
mod exchange;
mod extensions;
mod features;
mod flights;
mod hearing;
mod holding;
mod known_feature;
mod listen;
mod lists;
mod opening;
mod parking;
mod pass;
mod reach;
mod readable;
mod resources;
mod restoring;
mod result;
mod session_groups;
mod skill_files;
mod subscriptions;
mod task_ids;
mod tell;
mod traced;

use std::sync::Arc;

use serde_json::value::RawValue;
use toolwarden_mcp::codes::{INVALID_REQUEST, METHOD_NOT_FOUND};
use toolwarden_mcp::serve::answer;
use toolwarden_mcp::{Era, Members, Message, RpcError};

use crate::catalogue::Kind;
use crate::gateway::Gateway;

pub use asked::{Asked, Headers, NoHeaders};
pub(crate) use denial::shutting_down;
pub(crate) use flights::Flights;
pub use hearing::GatewayHearing;
pub use opening::Initialized;
pub use parking::Parking;
use readable::readable;
use result::typed;

/// What an agent gets for a request.
#[derive(Debug)]
pub enum Reply {
    /// The text of the result.
    Result(String),
    /// An error.
    Error(RpcError),
    /// Nothing: it gave the request up.
    Nothing,
}

impl Reply {
    fn raw(result: Box<RawValue>) -> Self {
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
/// Methods that the stateless era took away. A server behind us may still answer them.
const REMOVED: [&str; 7] = [
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
    pub async fn handle(
        &self,
        asked: &Arc<Asked>,
        method: &str,
        params: Option<&RawValue>,
    ) -> Reply {
        let began = self.now();
        // Over HTTP a stateless agent gives up by closing the stream, which drops this work.
        let most = self.settings().session_limits.requests;
        let Some(under_way) = asked.conversation.begin(asked.id.get(), most) else {
            let text = format!(
                "this conversation has {most} requests in flight already (`sessions.max_requests`); wait for \
                 some of them"
            );
            return Reply::error(INVALID_REQUEST, text);
        };
        let reply = tokio::select! {
            reply = self.answer(asked, method, params) => reply,
            () = under_way.cancelled() => Reply::Nothing,
        }
        .for_era(asked.agent.era);
        let took = self.now().saturating_sub(began);
        self.count_answered(method, asked.agent.era, &reply, took);
        reply
    }

    async fn answer(&self, asked: &Arc<Asked>, method: &str, params: Option<&RawValue>) -> Reply {
        // A call reads its parameters itself, and once.
        if method != "tools/call"
            && let Some(Err(reply)) = params.map(readable)
        {
            return reply;
        }
        if asked.agent.era == Era::Stateless && REMOVED.contains(&method) {
            return unknown_method(method);
        }
        if method == "tools/call" {
            return self.traced_call(asked, params).await;
        }
        // All else is rare beside calls; on the heap it does not make their future larger.
        Box::pin(self.answer_other(asked, method, params)).await
    }

    async fn answer_other(
        &self,
        asked: &Arc<Asked>,
        method: &str,
        params: Option<&RawValue>,
    ) -> Reply {
        match method {
            "tools/list" => self.list(asked, Kind::Tools, params).await,
            "prompts/list" => self.list(asked, Kind::Prompts, params).await,
            "resources/list" => self.list(asked, Kind::Resources, params).await,
            "resources/templates/list" => self.list(asked, Kind::Templates, params).await,
            "ping" => Reply::Result(EMPTY.to_owned()),
            "server/discover" => self.discover(asked).await,
            "prompts/get" => self.get_prompt(asked, params).await,
            "resources/read" => self.read_resource(asked, params).await,
            "resources/directory/read" => self.ask_owner(asked, method, params).await,
            "skills/list" => self.list(asked, Kind::Skills, params).await,
            "skills/get" => self.ask_owner(asked, method, params).await,
            "resources/subscribe" | "resources/unsubscribe" => {
                self.subscribe(asked, method, params).await
            }
            "completion/complete" => self.complete(asked, params).await,
            "logging/setLevel" => self.set_level(asked, params).await,
            "subscriptions/listen" if asked.agent.era == Era::Stateless => {
                self.listen(asked, params).await
            }
            "initialize" => Reply::error(INVALID_REQUEST, "this session is initialized already"),
            "tasks/list" | "tasks/get" | "tasks/result" | "tasks/cancel" | "tasks/update" => {
                self.task(asked, method, params).await
            }
            method => self.pass_unknown(asked, method, params).await,
        }
    }

    /// Takes a notification of an agent.
    pub async fn notified(&self, asked: &Arc<Asked>, method: &str, params: Option<&RawValue>) {
        match method {
            "notifications/cancelled" => {
                let params = Members::of_optional(params);
                if let Some(id) = params.get("requestId") {
                    asked.conversation.cancel(id);
                }
            }
            // Servers were told when they were reached.
            "notifications/initialized" => {}
            // Cancellation and progress of what servers asked belong to the answers of the agent. A
            // request without an id is no notification, and nobody decided it.
            method
                if method.starts_with("notifications/")
                    && !matches!(params.map(readable), Some(Err(_))) =>
            {
                self.pass_notification(asked, method, params).await;
            }
            _ => {}
        }
    }

    /// Takes what an agent answers to a request of a server.
    pub fn answered(&self, asked: &Asked, id: &RawValue, answer: crate::conversation::AgentAnswer) {
        asked.conversation.answered(id, answer);
    }

    /// Takes any message of an agent; gives the text of the answer where there is one.
    pub async fn take(&self, asked: &Arc<Asked>, message: Message) -> Option<String> {
        match message {
            Message::Request { id, method, params } => {
                let reply = self.handle(asked, &method, params.as_deref()).await;
                reply.text(&id)
            }
            Message::Notification { method, params } => {
                self.notified(asked, &method, params.as_deref()).await;
                None
            }
            Message::Response { id, outcome } => {
                self.answered(asked, &id, outcome);
                None
            }
        }
    }
}

impl Reply {
    /// The reply as the agent's era requires it. Every result passes here, whichever part made it: a
    /// stateless result without its type is refused by the official clients.
    fn for_era(self, era: Era) -> Self {
        match (self, era) {
            (Self::Result(result), Era::Stateless) => Self::Result(typed(result)),
            (reply, _) => reply,
        }
    }

    /// The text of the answer to a request.
    #[must_use]
    pub fn text(&self, id: &RawValue) -> Option<String> {
        match self {
            Self::Result(result) => Some(answer::answer_with(id, result)),
            Self::Error(error) => Some(answer::outcome(id, Err(error))),
            Self::Nothing => None,
        }
    }
}

fn unknown_method(method: &str) -> Reply {
    Reply::error(
        METHOD_NOT_FOUND,
        format!("no server behind this gateway offers `{method}`"),
    )
}
