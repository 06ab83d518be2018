//! Where every session stands in its workflow. Only the server moves it.

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hashbrown::{DefaultHashBuilder, Equivalent, HashMap};
use jiff::Timestamp;
use toolwarden_guard::{INITIAL_STATE, RequestedGroups};

const SHARDS: usize = 64;

/// The most sessions that are held at a time.
const MAX_SESSIONS: usize = 1_000_000;

/// The transitions of a session that are remembered; older ones are in the log.
const MAX_TRANSITIONS: usize = 256;

/// One principal's conversation.
#[derive(Clone, Debug)]
pub struct Session {
    /// The groups it asks for unless a call says otherwise.
    pub groups: RequestedGroups,
    /// Where it stands.
    pub state: Arc<str>,
    /// Where it started.
    pub initial_state: Arc<str>,
    /// When it was opened.
    pub opened: Timestamp,
    /// Its latest changes of state.
    pub transitions: VecDeque<Transition>,
    /// When it came into its state, on the monotonic clock.
    pub(crate) entered: u64,
    pub(crate) started: u64,
    used: u64,
}

/// One change of a session's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The tool whose success led to it.
    pub tool: Arc<str>,
    /// From this state.
    pub from: Arc<str>,
    /// To that one.
    pub to: Arc<str>,
    /// When.
    pub at: Timestamp,
}

/// Whose session, and which of theirs; an empty name is the principal's own.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct Whose<'s> {
    pub(crate) principal: &'s str,
    pub(crate) session: &'s str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    principal: Box<str>,
    session: Box<str>,
}

/// What became of a transition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Moved {
    /// It was taken, after so long in the state before.
    Taken { after: Duration },
    /// The session is in that state already.
    Already,
    /// The session is no longer in the state the call was permitted in.
    Elsewhere { current: Arc<str> },
    /// There are too many sessions to hold one more.
    Full,
}

#[derive(Debug)]
pub(crate) struct Sessions {
    shards: Vec<Mutex<HashMap<Key, Session>>>,
    initial: Arc<str>,
    capacity: usize,
    spread: DefaultHashBuilder,
}

impl Equivalent<Key> for Whose<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        *self.principal == *key.principal && *self.session == *key.session
    }
}

impl Sessions {
    pub(crate) fn new() -> Self {
        Self::holding(MAX_SESSIONS)
    }

    fn holding(most: usize) -> Self {
        Self {
            shards: std::iter::repeat_with(Mutex::default)
                .take(SHARDS)
                .collect(),
            initial: INITIAL_STATE.into(),
            capacity: most.div_ceil(SHARDS),
            spread: DefaultHashBuilder::default(),
        }
    }

    /// The state nothing has happened in.
    pub(crate) const fn initial(&self) -> &Arc<str> {
        &self.initial
    }

    /// A session that was used lately enough to be remembered.
    pub(crate) fn get(&self, whose: Whose<'_>, now: u64, idle: Duration) -> Option<Session> {
        let mut shard = self.shard(whose)?;
        let session = shard.get_mut(&whose).filter(|it| it.is_fresh(now, idle))?;
        session.used = now;
        Some(session.clone())
    }

    /// The state and groups of a session, if it is remembered.
    pub(crate) fn standing(
        &self,
        whose: Whose<'_>,
        now: u64,
        idle: Duration,
    ) -> Option<(Arc<str>, RequestedGroups)> {
        let mut shard = self.shard(whose)?;
        let session = shard.get_mut(&whose).filter(|it| it.is_fresh(now, idle))?;
        session.used = now;
        Some((Arc::clone(&session.state), session.groups.clone()))
    }

    /// Opens a session, or gives one that is open other groups. Says whether there was room.
    pub(crate) fn open(
        &self,
        whose: Whose<'_>,
        groups: RequestedGroups,
        state: Arc<str>,
        at: (Timestamp, u64),
        idle: Duration,
    ) -> bool {
        let (opened, now) = at;
        let Some(mut shard) = self.shard(whose) else {
            return false;
        };
        if let Some(session) = shard.get_mut(&whose).filter(|it| it.is_fresh(now, idle)) {
            session.groups = groups;
            session.used = now;
            return true;
        }
        let session = Session {
            groups,
            initial_state: Arc::clone(&state),
            state,
            opened,
            transitions: VecDeque::new(),
            entered: now,
            started: now,
            used: now,
        };
        self.insert(&mut shard, whose, session, now, idle)
    }

    /// Moves a session on, if it still is where the call was permitted.
    pub(crate) fn advance(
        &self,
        whose: Whose<'_>,
        step: Transition,
        now: u64,
        idle: Duration,
    ) -> Moved {
        let Some(mut shard) = self.shard(whose) else {
            return Moved::Full;
        };
        if shard.get(&whose).is_none_or(|it| !it.is_fresh(now, idle)) {
            let session = Session {
                groups: RequestedGroups::Default,
                initial_state: Arc::clone(&self.initial),
                state: Arc::clone(&self.initial),
                opened: step.at,
                transitions: VecDeque::new(),
                entered: now,
                started: now,
                used: now,
            };
            if !self.insert(&mut shard, whose, session, now, idle) {
                return Moved::Full;
            }
        }
        let Some(session) = shard.get_mut(&whose) else {
            return Moved::Full;
        };
        session.used = now;
        if session.state == step.to {
            return Moved::Already;
        }
        if session.state != step.from {
            let current = Arc::clone(&session.state);
            return Moved::Elsewhere { current };
        }
        session.state = Arc::clone(&step.to);
        let after = Duration::from_nanos(now.saturating_sub(session.entered));
        session.entered = now;
        if session.transitions.len() == MAX_TRANSITIONS {
            session.transitions.pop_front();
        }
        session.transitions.push_back(step);
        Moved::Taken { after }
    }

    pub(crate) fn close(&self, whose: Whose<'_>) -> Option<Session> {
        self.shard(whose)?.remove(&whose)
    }

    fn insert(
        &self,
        shard: &mut HashMap<Key, Session>,
        whose: Whose<'_>,
        session: Session,
        now: u64,
        idle: Duration,
    ) -> bool {
        if shard.len() >= self.capacity {
            shard.retain(|_, session| session.is_fresh(now, idle));
        }
        if shard.len() >= self.capacity {
            return false;
        }
        let key = Key {
            principal: whose.principal.into(),
            session: whose.session.into(),
        };
        shard.insert(key, session);
        true
    }

    fn shard(&self, whose: Whose<'_>) -> Option<MutexGuard<'_, HashMap<Key, Session>>> {
        let at = usize::try_from(self.spread.hash_one(whose)).unwrap_or_default();
        let shard = self.shards.get(at % SHARDS)?;
        // Every change is made in one step, so what a panic leaves behind is whole.
        Some(shard.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Session {
    fn is_fresh(&self, now: u64, idle: Duration) -> bool {
        u128::from(now.saturating_sub(self.used)) <= idle.as_nanos()
    }
}
