//! Requests of servers that an agent has not answered yet.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use hashbrown::HashMap;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use toolwarden_mcp::RpcError;
use toolwarden_mcp::serve::answer::request;

use super::{Conversation, lock};
use crate::outlet::Outlet;

/// What an agent answered.
pub type AgentAnswer = Result<Box<RawValue>, RpcError>;

/// The requests put to one agent, by the id they were given on the way.
#[derive(Debug)]
pub(super) struct Asks {
    open: Mutex<HashMap<i64, oneshot::Sender<AgentAnswer>>>,
    next: AtomicI64,
}

impl Default for Asks {
    fn default() -> Self {
        Self {
            open: Mutex::default(),
            next: AtomicI64::new(1),
        }
    }
}

impl Asks {
    pub(super) fn give_up(&self) {
        lock(&self.open).clear();
    }
}

/// An answer that is waited for. Dropping it stops the wait.
#[derive(Debug)]
pub struct PendingAnswer {
    conversation: Arc<Conversation>,
    id: i64,
    answer: oneshot::Receiver<AgentAnswer>,
}

impl Conversation {
    /// Puts a request of a server to the agent: on the stream of the request it belongs to, else on the
    /// standing one.
    pub fn ask(
        self: &Arc<Self>,
        outlet: Option<&Outlet>,
        method: &str,
        params: Option<&RawValue>,
    ) -> PendingAnswer {
        let id = self.asks.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        lock(&self.asks.open).insert(id, sender);
        let text = request(&id.to_string(), method, params);
        let taken = outlet.is_some_and(|outlet| outlet.send(text.clone()));
        if !taken {
            self.standing.push(text);
        }
        PendingAnswer {
            conversation: Arc::clone(self),
            id,
            answer,
        }
    }

    /// Takes the agent's answer to a request that was put to it. Says whether somebody waited.
    pub fn answered(&self, id: &RawValue, answer: AgentAnswer) -> bool {
        let Ok(id) = id.get().parse::<i64>() else {
            return false;
        };
        let waiting = lock(&self.asks.open).remove(&id);
        waiting.is_some_and(|sender| sender.send(answer).is_ok())
    }
}

impl PendingAnswer {
    /// The id the request has on the way to the agent.
    #[must_use]
    pub const fn id(&self) -> i64 {
        self.id
    }

    /// The answer; none when the conversation ended first.
    pub async fn answer(mut self) -> Option<AgentAnswer> {
        (&mut self.answer).await.ok()
    }
}

impl Drop for PendingAnswer {
    fn drop(&mut self) {
        lock(&self.conversation.asks.open).remove(&self.id);
    }
}
