//! All conversations.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hashbrown::HashMap;
use thiserror::Error;
use toolwarden_guard::RequestedGroups;

use super::{Conversation, lock};
use crate::agent_info::Agent;

/// The most conversations at a time.
const MAX_CONVERSATIONS: usize = 100_000;
/// The fraction of them that one principal may have, so that no principal locks the others out.
const PRINCIPAL_SHARE: usize = 4;
const SHARDS: usize = 64;

/// All conversations by id.
#[derive(Debug)]
pub struct Conversations {
    shards: Vec<Mutex<HashMap<Arc<str>, Arc<Conversation>>>>,
    count: AtomicUsize,
    by_principal: Mutex<HashMap<Arc<str>, usize>>,
    capacity: usize,
}

/// The parameters of a new conversation.
#[derive(Clone, Debug)]
pub struct NewConversation {
    /// The owner.
    pub principal: Arc<str>,
    /// Its workflow session; `None` is the principal's own.
    pub session: Option<Arc<str>>,
    /// The requested groups.
    pub groups: Option<RequestedGroups>,
    /// The agent's protocol version and capabilities.
    pub agent: Agent,
}

/// The limit of conversations is reached.
#[derive(Debug, Error)]
#[error("{session_key} {most} conversations already; end some, or shorten `sessions.idle`")]
pub struct TooManyConversations {
    session_key: &'static str,
    most: usize,
}

impl Default for Conversations {
    fn default() -> Self {
        Self::with_capacity(MAX_CONVERSATIONS)
    }
}

impl Conversations {
    /// A table for at most this many conversations.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            shards: std::iter::repeat_with(Mutex::default)
                .take(SHARDS)
                .collect(),
            count: AtomicUsize::new(0),
            by_principal: Mutex::default(),
            capacity,
        }
    }

    /// Opens a conversation under an id.
    ///
    /// # Errors
    /// The limit of conversations is reached.
    pub fn open(
        &self,
        id: Arc<str>,
        with: NewConversation,
        now: u64,
    ) -> Result<Arc<Conversation>, TooManyConversations> {
        let NewConversation {
            principal,
            session,
            groups,
            agent,
        } = with;
        if self.count.load(Ordering::Acquire) >= self.capacity {
            let session_key = "the gateway holds";
            let most = self.capacity;
            return Err(TooManyConversations { session_key, most });
        }
        let most = (self.capacity / PRINCIPAL_SHARE).max(1);
        if lock(&self.by_principal)
            .get(&principal)
            .is_some_and(|held| *held >= most)
        {
            let session_key = "you have";
            return Err(TooManyConversations { session_key, most });
        }
        let owner = Arc::clone(&principal);
        let made = Conversation::new(Arc::clone(&id), principal, session, groups, agent, now);
        let made = Arc::new(made);
        if let Some(shard) = self.shard(&id)
            && lock(shard).insert(id, Arc::clone(&made)).is_none()
        {
            self.count.fetch_add(1, Ordering::AcqRel);
            *lock(&self.by_principal).entry(owner).or_default() += 1;
        }
        Ok(made)
    }

    /// An open conversation; marks it as used now.
    #[must_use]
    pub fn find(&self, id: &str, now: u64) -> Option<Arc<Conversation>> {
        self.peek(id).inspect(|found| found.touch(now))
    }

    /// An open conversation, without a check of its owner and without marking it as used.
    #[must_use]
    pub fn peek(&self, id: &str) -> Option<Arc<Conversation>> {
        lock(self.shard(id)?).get(id).cloned()
    }

    /// Ends a conversation and returns it, if it exists.
    pub fn close(&self, id: &str) -> Option<Arc<Conversation>> {
        let gone = lock(self.shard(id)?).remove(id)?;
        self.release(&gone);
        Some(gone)
    }

    /// Ends conversations that were idle for too long, and returns them.
    pub fn expire(&self, now: u64, idle: Duration) -> Vec<Arc<Conversation>> {
        let idle = u64::try_from(idle.as_nanos()).unwrap_or(u64::MAX);
        let unused = |it: &Conversation| now.saturating_sub(it.last_used()) > idle && !it.is_busy();
        let mut gone = Vec::new();
        for shard in &self.shards {
            let mut shard = lock(shard);
            let expired = shard.extract_if(|_, it| unused(it));
            gone.extend(expired.map(|(_, it)| it));
        }
        for conversation in &gone {
            self.release(conversation);
        }
        gone
    }

    fn release(&self, conversation: &Conversation) {
        self.count.fetch_sub(1, Ordering::AcqRel);
        let mut held = lock(&self.by_principal);
        if let Some(count) = held.get_mut(&conversation.principal) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                held.remove(&conversation.principal);
            }
        }
        drop(held);
        conversation.end();
    }

    /// The conversations that match a filter, in no order.
    #[must_use]
    pub fn matching(&self, is_wanted: impl Fn(&Conversation) -> bool) -> Vec<Arc<Conversation>> {
        let mut found = Vec::new();
        for shard in &self.shards {
            let shard = lock(shard);
            let wanted = shard.values().filter(|it| is_wanted(it));
            found.extend(wanted.map(Arc::clone));
        }
        found
    }

    /// Every conversation.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Conversation>> {
        let mut all: Vec<_> = Vec::with_capacity(self.len());
        for shard in &self.shards {
            let shard = lock(shard);
            for conversation in shard.values() {
                all.push(Arc::clone(conversation));
            }
        }
        all.sort_by(|a, b| a.id.cmp(&b.id));
        all
    }

    /// The number of conversations.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn shard(&self, id: &str) -> Option<&Mutex<HashMap<Arc<str>, Arc<Conversation>>>> {
        // Ids are random, so their bytes distribute evenly.
        let at = id.bytes().fold(0_usize, |sum, byte| {
            sum.wrapping_mul(31).wrapping_add(usize::from(byte))
        });
        self.shards.get(at % SHARDS)
    }
}

#[cfg(test)]
mod tests {
    use toolwarden_mcp::{ClientInfo, Era};

    use super::*;
    use crate::agent_info::empty_object;

    #[test]
    fn nobody_has_more_than_a_part() {
        let all = Conversations::with_capacity(8);
        let agent = Agent {
            era: Era::Handshake,
            version: String::new(),
            client_info: ClientInfo {
                capabilities: empty_object().into(),
                info: empty_object().into(),
            },
            log_level: None,
        };
        let open = |id: &str, principal: &str| {
            let with = NewConversation {
                principal: principal.into(),
                session: None,
                groups: None,
                agent: agent.clone(),
            };
            all.open(id.into(), with, 0)
                .map(drop)
                .map_err(|it| it.to_string())
        };
        for id in ["1", "2"] {
            open(id, "ada").unwrap();
        }
        assert!(open("3", "ada").unwrap_err().starts_with("you have 2 "));
        open("3", "ben").unwrap();
        all.close("1").unwrap();
        open("4", "ada").unwrap();
        all.expire(u64::MAX, Duration::ZERO);
        assert!(all.is_empty() && lock(&all.by_principal).is_empty());
    }
}
