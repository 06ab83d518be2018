//! Server requests that an agent has not answered yet.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use hashbrown::HashMap;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use toolwarden_mcp::RpcError;
use toolwarden_mcp::serve::encode::request;

use super::{Conversation, lock};
use crate::response_stream::AgentSender;

/// An agent's response.
pub type AgentResponse = Result<Box<RawValue>, RpcError>;

/// The requests sent to one agent, by the id that the gateway gave them.
#[derive(Debug)]
pub(super) struct AgentRequests {
    pending: Mutex<HashMap<i64, oneshot::Sender<AgentResponse>>>,
    next: AtomicI64,
}

impl Default for AgentRequests {
    fn default() -> Self {
        Self {
            pending: Mutex::default(),
            next: AtomicI64::new(1),
        }
    }
}

impl AgentRequests {
    pub(super) fn cancel_all(&self) {
        lock(&self.pending).clear();
    }
}

/// A pending response. Dropping it stops the wait.
#[derive(Debug)]
pub struct PendingAgentResponse {
    conversation: Arc<Conversation>,
    id: i64,
    receiver: oneshot::Receiver<AgentResponse>,
}

impl Conversation {
    /// Sends a server's request to the agent: on the stream of the request it belongs to, otherwise on the standing
    /// stream.
    pub fn ask(
        self: &Arc<Self>,
        outlet: Option<&AgentSender>,
        method: &str,
        params: Option<&RawValue>,
    ) -> PendingAgentResponse {
        let id = self.agent_requests.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        lock(&self.agent_requests.pending).insert(id, sender);
        let text = request(&id.to_string(), method, params);
        let taken = outlet.is_some_and(|outlet| outlet.send(text.clone()));
        if !taken {
            self.standalone_stream.push(text);
        }
        PendingAgentResponse {
            conversation: Arc::clone(self),
            id,
            receiver: answer,
        }
    }

    /// Accepts the agent's response to a request. Returns whether a server waited for it.
    pub fn handle_response(&self, id: &RawValue, answer: AgentResponse) -> bool {
        let Ok(id) = id.get().parse::<i64>() else {
            return false;
        };
        let waiting = lock(&self.agent_requests.pending).remove(&id);
        waiting.is_some_and(|sender| sender.send(answer).is_ok())
    }
}

impl PendingAgentResponse {
    /// The id that the agent sees.
    #[must_use]
    pub const fn id(&self) -> i64 {
        self.id
    }

    /// The response; `None` if the conversation ended first.
    pub async fn answer(mut self) -> Option<AgentResponse> {
        (&mut self.receiver).await.ok()
    }
}

impl Drop for PendingAgentResponse {
    fn drop(&mut self) {
        lock(&self.conversation.agent_requests.pending).remove(&self.id);
    }
}
