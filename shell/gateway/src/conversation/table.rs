//! All conversations.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hashbrown::HashMap;
use thiserror::Error;
use toolwarden_guard::RequestedGroups;

use super::{Conversation, lock};
use crate::agent::Agent;

/// The most conversations at a time.
const MOST: usize = 100_000;
/// Which part of them one principal may have, so that none locks the others out.
const SHARE: usize = 4;
const SHARDS: usize = 64;

/// All conversations by name.
#[derive(Debug)]
pub struct Conversations {
    shards: Vec<Mutex<HashMap<Arc<str>, Arc<Conversation>>>>,
    held: AtomicUsize,
    by_principal: Mutex<HashMap<Arc<str>, usize>>,
    most: usize,
}

/// What a conversation is opened with.
#[derive(Clone, Debug)]
pub struct Opened {
    /// Whose it is.
    pub principal: Arc<str>,
    /// The workflow session it moves; none is the principal's own.
    pub session: Option<Arc<str>>,
    /// The groups it asks for.
    pub groups: Option<RequestedGroups>,
    /// How the agent speaks.
    pub agent: Agent,
}

/// There is no room for one more conversation.
#[derive(Debug, Error)]
#[error("{whose} {most} conversations already; end some, or shorten `sessions.idle`")]
pub struct TooMany {
    whose: &'static str,
    most: usize,
}

impl Default for Conversations {
    fn default() -> Self {
        Self::holding(MOST)
    }
}

impl Conversations {
    /// Room for so many.
    #[must_use]
    pub fn holding(most: usize) -> Self {
        Self {
            shards: std::iter::repeat_with(Mutex::default)
                .take(SHARDS)
                .collect(),
            held: AtomicUsize::new(0),
            by_principal: Mutex::default(),
            most,
        }
    }

    /// Opens a conversation under a name.
    ///
    /// # Errors
    /// There is no room.
    pub fn open(&self, id: Arc<str>, with: Opened, now: u64) -> Result<Arc<Conversation>, TooMany> {
        let Opened {
            principal,
            session,
            groups,
            agent,
        } = with;
        if self.held.load(Ordering::Acquire) >= self.most {
            let whose = "the gateway holds";
            let most = self.most;
            return Err(TooMany { whose, most });
        }
        let most = (self.most / SHARE).max(1);
        if lock(&self.by_principal)
            .get(&principal)
            .is_some_and(|held| *held >= most)
        {
            let whose = "you have";
            return Err(TooMany { whose, most });
        }
        let owner = Arc::clone(&principal);
        let made = Conversation::new(Arc::clone(&id), principal, session, groups, agent, now);
        let made = Arc::new(made);
        if let Some(shard) = self.shard(&id)
            && lock(shard).insert(id, Arc::clone(&made)).is_none()
        {
            self.held.fetch_add(1, Ordering::AcqRel);
            *lock(&self.by_principal).entry(owner).or_default() += 1;
        }
        Ok(made)
    }

    /// A conversation that is open, which is in use now.
    #[must_use]
    pub fn find(&self, id: &str, now: u64) -> Option<Arc<Conversation>> {
        self.peek(id).inspect(|found| found.touch(now))
    }

    /// A conversation that is open. Whoever asks need not be its owner.
    #[must_use]
    pub fn peek(&self, id: &str) -> Option<Arc<Conversation>> {
        lock(self.shard(id)?).get(id).cloned()
    }

    /// Ends a conversation; gives it where there was one.
    pub fn close(&self, id: &str) -> Option<Arc<Conversation>> {
        let gone = lock(self.shard(id)?).remove(id)?;
        self.gone(&gone);
        Some(gone)
    }

    /// Ends those that nobody used for too long; gives them.
    pub fn expire(&self, now: u64, idle: Duration) -> Vec<Arc<Conversation>> {
        let idle = u64::try_from(idle.as_nanos()).unwrap_or(u64::MAX);
        let unused = |it: &Conversation| now.saturating_sub(it.used()) > idle && !it.is_busy();
        let mut gone = Vec::new();
        for shard in &self.shards {
            let mut shard = lock(shard);
            let expired = shard.extract_if(|_, it| unused(it));
            gone.extend(expired.map(|(_, it)| it));
        }
        for conversation in &gone {
            self.gone(conversation);
        }
        gone
    }

    fn gone(&self, conversation: &Conversation) {
        self.held.fetch_sub(1, Ordering::AcqRel);
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

    /// The conversations that are wanted, in no order.
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

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.held.load(Ordering::Acquire)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn shard(&self, id: &str) -> Option<&Mutex<HashMap<Arc<str>, Arc<Conversation>>>> {
        // Names are random, so that their bytes spread by themselves.
        let at = id.bytes().fold(0_usize, |sum, byte| {
            sum.wrapping_mul(31).wrapping_add(usize::from(byte))
        });
        self.shards.get(at % SHARDS)
    }
}

#[cfg(test)]
mod tests {
    use toolwarden_mcp::{Era, Face};

    use super::*;
    use crate::agent::nothing;

    #[test]
    fn nobody_has_more_than_a_part() {
        let all = Conversations::holding(8);
        let agent = Agent {
            era: Era::Handshake,
            version: String::new(),
            face: Face {
                capabilities: nothing().into(),
                info: nothing().into(),
            },
            log_level: None,
        };
        let open = |id: &str, principal: &str| {
            let with = Opened {
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
