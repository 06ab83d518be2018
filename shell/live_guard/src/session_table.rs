//! The state of every session in its workflow. Only the server changes it.

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hashbrown::{DefaultHashBuilder, HashMap};
use jiff::Timestamp;
use toolwarden_guard::{BoundValues, Guard, RequestedGroups};
use toolwarden_model::{GroupName, StateName};

const SHARDS: usize = 64;

/// The maximum number of sessions in total, and for one principal, so that one principal cannot take the
/// room of the others.
const MAX_SESSIONS: usize = 1_000_000;
const MAX_PER_PRINCIPAL: usize = 100_000;

/// The maximum number of transitions kept for a session; older ones are in the log.
const MAX_TRANSITIONS: usize = 64;

/// The minimum time between two searches for expired sessions.
const EVICTION_INTERVAL: u64 = 1_000_000_000;

/// One principal's conversation.
#[derive(Clone, Debug)]
pub struct Session {
    /// The groups it requests, unless a call names others.
    pub groups: RequestedGroups,
    /// Its current state.
    pub state: StateName,
    /// Its initial state.
    pub initial_state: StateName,
    /// When it was opened.
    pub opened: Timestamp,
    /// Its latest changes of state.
    pub transitions: VecDeque<Transition>,
    /// When it entered its state, on the monotonic clock.
    entered: u64,
    pub(crate) started: u64,
    used: u64,
    /// How often it entered a state, the same one or another.
    entries: u64,
    /// Whether the single call that its state allows was permitted, if the state is single-use.
    state_used: bool,
    /// The values that calls in its state must repeat.
    bound: BoundValues,
    /// Whether it is too late for its client to name another initial state.
    settled: bool,
    /// Whether requests may ask for no more than its groups.
    bounds_groups: bool,
}

/// An open session in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSummary {
    /// Its principal.
    pub principal: String,
    /// Its name; empty for the principal's default session.
    pub session: String,
    /// Its state.
    pub state: StateName,
    /// The groups it requests.
    pub groups: Vec<GroupName>,
    /// When it was opened.
    pub opened: Timestamp,
    /// When it was last used.
    pub last_used: Timestamp,
}

/// How a session starts.
#[derive(Clone, Debug)]
pub(crate) enum SessionStart {
    /// In the initial state of its principal; until its first transition the client may still name another
    /// state.
    Initial(StateName),
    /// In the state that its client or the host names.
    Claimed(StateName),
}

/// The parts of an open session that a call needs.
#[derive(Debug)]
pub(crate) struct OpenSession {
    pub(crate) state: StateName,
    pub(crate) groups: RequestedGroups,
    /// Whether requests may ask for no more than these groups.
    pub(crate) bounds_groups: bool,
    /// Whether the single call that its state allows was permitted.
    pub(crate) state_used: bool,
    /// The values that calls in its state must repeat.
    pub(crate) bound: BoundValues,
    /// The current stay in its state.
    pub(crate) state_visit: StateClaim,
    /// Whether it is too late for its client to name its initial state.
    pub(crate) started: bool,
}

/// A call's claim on a single-use state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StateClaim {
    started: u64,
    entries: u64,
}

/// The result of claiming a single-use state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClaimOutcome {
    /// The call has the claim.
    Taken(StateClaim),
    /// Another call has used the state, or the session has left it.
    AlreadyUsed,
    /// There are too many sessions to open another one.
    Full,
}

/// One change of a session's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The tool whose success caused it.
    pub tool: Arc<str>,
    /// The previous state.
    pub from: StateName,
    /// The new state.
    pub to: StateName,
    /// When.
    pub at: Timestamp,
}

/// A principal and one of its sessions; an empty name is the principal's default session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionKey<'s> {
    pub(crate) principal: &'s str,
    pub(crate) session: &'s str,
}

/// A point in time on both clocks, and how long idle sessions are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionTime {
    pub(crate) wall: Timestamp,
    pub(crate) now: u64,
    pub(crate) idle: Duration,
}

/// The result of a transition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TransitionOutcome {
    /// It was taken, after this time in the previous state.
    Taken { after: Duration },
    /// The session is already in that state.
    Unchanged,
    /// The session is already in that state, and has entered it again.
    Reentered,
    /// The session is no longer in the state in which the call was permitted.
    StateChanged,
    /// There are too many sessions to open another one.
    Full,
}

#[derive(Debug)]
pub(crate) struct SessionTable {
    /// The sessions of one principal are in one shard.
    shards: Vec<Mutex<Shard>>,
    hasher: DefaultHashBuilder,
    count: AtomicUsize,
    max_sessions: usize,
    max_per_principal: usize,
}

#[derive(Debug, Default)]
struct Shard {
    principals: HashMap<Box<str>, HashMap<Box<str>, Session>>,
    last_eviction: u64,
}

impl SessionTable {
    pub(crate) fn new() -> Self {
        Self::with_capacity(MAX_SESSIONS, MAX_PER_PRINCIPAL)
    }

    fn with_capacity(max_sessions: usize, max_per_principal: usize) -> Self {
        Self {
            shards: std::iter::repeat_with(Mutex::default)
                .take(SHARDS)
                .collect(),
            hasher: DefaultHashBuilder::default(),
            count: AtomicUsize::new(0),
            max_sessions,
            max_per_principal,
        }
    }

    /// Whether there are no sessions, without taking a lock.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// A session, if it is open. The lookup does not extend its lifetime.
    pub(crate) fn get(
        &self,
        session_key: SessionKey<'_>,
        now: u64,
        idle: Duration,
    ) -> Option<Session> {
        let shard = self.shard(session_key)?;
        let session = shard
            .principals
            .get(session_key.principal)?
            .get(session_key.session)?;
        session.is_fresh(now, idle).then(|| session.clone())
    }

    /// The state and groups of a session, if it is open. The lookup does not extend its lifetime.
    pub(crate) fn find_open(
        &self,
        session_key: SessionKey<'_>,
        now: u64,
        idle: Duration,
    ) -> Option<OpenSession> {
        let shard = self.shard(session_key)?;
        let session = shard
            .principals
            .get(session_key.principal)?
            .get(session_key.session)?;
        let fresh = session.is_fresh(now, idle);
        fresh.then(|| OpenSession {
            state: session.state.clone(),
            groups: session.groups.clone(),
            bounds_groups: session.bounds_groups,
            state_used: session.state_used,
            bound: session.bound.clone(),
            state_visit: session.state_visit(),
            started: session.settled,
        })
    }

    /// Marks a session as used.
    pub(crate) fn touch(&self, session_key: SessionKey<'_>, now: u64) {
        if let Some(mut shard) = self.shard(session_key)
            && let Some(of_one) = shard.principals.get_mut(session_key.principal)
            && let Some(session) = of_one.get_mut(session_key.session)
        {
            session.used = session.used.max(now);
        }
    }

    /// Opens a session in a state. For an open session, it changes the groups and, if the session has not
    /// left its initial state, sets the state that its client names. Returns whether there was room.
    pub(crate) fn open(
        &self,
        session_key: SessionKey<'_>,
        (groups, bounds_groups): (RequestedGroups, bool),
        start: SessionStart,
        at: SessionTime,
    ) -> bool {
        let Some(mut shard) = self.shard(session_key) else {
            return false;
        };
        if let Some(session) = shard.get_live(session_key, at) {
            session.groups = groups;
            session.bounds_groups = bounds_groups;
            session.used = at.now;
            if let SessionStart::Claimed(state) = start {
                session.start_in(state, at.now);
            }
            return true;
        }
        let mut session = Session::new(groups, start, at);
        session.bounds_groups = bounds_groups;
        self.insert(&mut shard, session_key, session, at)
    }

    /// Advances a session, if it is still in the state in which the call was permitted. A session that is
    /// not open starts in the given state.
    pub(crate) fn advance(
        &self,
        session_key: SessionKey<'_>,
        initial: &StateName,
        (step, bound): (Transition, BoundValues),
        claim: Option<StateClaim>,
        at: SessionTime,
    ) -> TransitionOutcome {
        let Some(mut shard) = self.shard(session_key) else {
            return TransitionOutcome::Full;
        };
        if shard.get_live(session_key, at).is_none() {
            let session = Session::new(
                RequestedGroups::Default,
                SessionStart::Initial(initial.clone()),
                at,
            );
            if !self.insert(&mut shard, session_key, session, at) {
                return TransitionOutcome::Full;
            }
        }
        match shard.get_live(session_key, at) {
            Some(session) => session.advance(step, bound, claim, at.now),
            None => TransitionOutcome::Full,
        }
    }

    /// Claims the single-use state of a session for a call, unless another call has used it. A session that
    /// is not open starts in that state. `state_visit` is the stay in the state that the call was decided for.
    pub(crate) fn claim(
        &self,
        session_key: SessionKey<'_>,
        state: &StateName,
        stay: Option<StateClaim>,
        at: SessionTime,
    ) -> ClaimOutcome {
        let Some(mut shard) = self.shard(session_key) else {
            return ClaimOutcome::Full;
        };
        if shard.get_live(session_key, at).is_none() {
            let start = SessionStart::Initial(state.clone());
            let session = Session::new(RequestedGroups::Default, start, at);
            if !self.insert(&mut shard, session_key, session, at) {
                return ClaimOutcome::Full;
            }
        }
        match shard.get_live(session_key, at) {
            // The session may have left the state and entered it again with another approval.
            Some(session) if stay.is_some_and(|stay| !session.matches_claim(stay)) => {
                ClaimOutcome::AlreadyUsed
            }
            Some(session) => session.claim(state),
            None => ClaimOutcome::Full,
        }
    }

    /// Releases a single-use state that a call did not use.
    pub(crate) fn release(&self, session_key: SessionKey<'_>, claim: StateClaim, at: SessionTime) {
        if let Some(mut shard) = self.shard(session_key)
            && let Some(session) = shard.get_live(session_key, at)
            && session.matches_claim(claim)
        {
            session.state_used = false;
        }
    }

    pub(crate) fn close(&self, session_key: SessionKey<'_>) {
        if let Some(mut shard) = self.shard(session_key)
            && let Some(of_one) = shard.principals.get_mut(session_key.principal)
        {
            if of_one.remove(session_key.session).is_some() {
                self.count.fetch_sub(1, Ordering::AcqRel);
            }
            if of_one.is_empty() {
                shard.principals.remove(session_key.principal);
            }
        }
    }

    /// Every open session, in no particular order.
    pub(crate) fn summaries(&self, guard: &Guard, at: SessionTime) -> Vec<SessionSummary> {
        let mut summaries = Vec::new();
        for shard in &self.shards {
            // Every change is atomic, so a panic leaves consistent data behind.
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            for (principal, of_one) in &shard.principals {
                let fresh = of_one.iter().filter(|(_, it)| it.is_fresh(at.now, at.idle));
                summaries.extend(fresh.map(|(name, it)| it.summary(principal, name, guard, at)));
            }
        }
        summaries
    }

    fn insert(
        &self,
        shard: &mut Shard,
        session_key: SessionKey<'_>,
        session: Session,
        at: SessionTime,
    ) -> bool {
        let is_full = |shard: &Shard| {
            let of_one = shard
                .principals
                .get(session_key.principal)
                .map_or(0, HashMap::len);
            of_one >= self.max_per_principal
                || self.count.load(Ordering::Acquire) >= self.max_sessions
        };
        if is_full(shard) && at.now >= shard.last_eviction.saturating_add(EVICTION_INTERVAL) {
            shard.last_eviction = at.now;
            self.count.fetch_sub(shard.evict_idle(at), Ordering::AcqRel);
        }
        if is_full(shard) {
            return false;
        }
        let of_one = shard
            .principals
            .entry(session_key.principal.into())
            .or_default();
        if of_one.insert(session_key.session.into(), session).is_none() {
            self.count.fetch_add(1, Ordering::AcqRel);
        }
        true
    }

    fn shard(&self, session_key: SessionKey<'_>) -> Option<MutexGuard<'_, Shard>> {
        let at = usize::try_from(self.hasher.hash_one(session_key.principal)).unwrap_or_default();
        let shard = self.shards.get(at % SHARDS)?;
        // Every change is atomic, so a panic leaves consistent data behind.
        Some(shard.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Shard {
    fn get_live(&mut self, session_key: SessionKey<'_>, at: SessionTime) -> Option<&mut Session> {
        let of_one = self.principals.get_mut(session_key.principal)?;
        let session = of_one.get_mut(session_key.session)?;
        session.is_fresh(at.now, at.idle).then_some(session)
    }

    /// Drops sessions that were idle for too long; returns how many.
    fn evict_idle(&mut self, at: SessionTime) -> usize {
        let mut forgotten = 0;
        self.principals.retain(|_, of_one| {
            let before = of_one.len();
            of_one.retain(|_, session| session.is_fresh(at.now, at.idle));
            forgotten += before - of_one.len();
            !of_one.is_empty()
        });
        forgotten
    }
}

impl Session {
    fn new(groups: RequestedGroups, start: SessionStart, at: SessionTime) -> Self {
        let (state, settled) = match start {
            SessionStart::Initial(state) => (state, false),
            SessionStart::Claimed(state) => (state, true),
        };
        Self {
            groups,
            initial_state: state.clone(),
            state,
            opened: at.wall,
            transitions: VecDeque::new(),
            entered: at.now,
            started: at.now,
            used: at.now,
            entries: 0,
            state_used: false,
            bound: BoundValues::default(),
            bounds_groups: false,
            settled,
        }
    }

    fn start_in(&mut self, state: StateName, now: u64) {
        if !self.settled {
            self.settled = true;
            self.initial_state = state.clone();
            if self.state != state {
                self.entries += 1;
                self.state_used = false;
            }
            self.state = state;
            self.entered = now;
        }
    }

    fn summary(
        &self,
        principal: &str,
        session: &str,
        guard: &Guard,
        at: SessionTime,
    ) -> SessionSummary {
        let unused = Duration::from_nanos(at.now.saturating_sub(self.used));
        SessionSummary {
            principal: principal.to_owned(),
            session: session.to_owned(),
            state: self.state.clone(),
            groups: {
                let asked = guard.asked(principal, &self.groups);
                asked.names().cloned().collect()
            },
            opened: self.opened,
            last_used: at.wall.checked_sub(unused).unwrap_or(self.opened),
        }
    }

    fn is_fresh(&self, now: u64, idle: Duration) -> bool {
        u128::from(now.saturating_sub(self.used)) <= idle.as_nanos()
    }

    fn claim(&mut self, state: &StateName) -> ClaimOutcome {
        if self.state_used || self.state != *state {
            return ClaimOutcome::AlreadyUsed;
        }
        self.state_used = true;
        // The client can no longer name another initial state: that would release the claim.
        self.settled = true;
        ClaimOutcome::Taken(self.state_visit())
    }

    const fn state_visit(&self) -> StateClaim {
        StateClaim {
            started: self.started,
            entries: self.entries,
        }
    }

    fn matches_claim(&self, claim: StateClaim) -> bool {
        (self.started, self.entries) == (claim.started, claim.entries)
    }

    fn advance(
        &mut self,
        step: Transition,
        bound: BoundValues,
        claim: Option<StateClaim>,
        now: u64,
    ) -> TransitionOutcome {
        self.used = now;
        self.settled = true;
        if self.state == step.to {
            // Only a call that was made in this state and did not use it up enters it again: a call
            // permitted earlier would renew the state that it has already led to.
            if step.from != step.to || claim.is_some() || (!self.state_used && self.bound == bound)
            {
                return TransitionOutcome::Unchanged;
            }
            self.enter(bound);
            return TransitionOutcome::Reentered;
        }
        if self.state != step.from {
            return TransitionOutcome::StateChanged;
        }
        self.state = step.to.clone();
        self.enter(bound);
        let after = Duration::from_nanos(now.saturating_sub(self.entered));
        self.entered = now;
        if self.transitions.len() == MAX_TRANSITIONS {
            self.transitions.pop_front();
        }
        self.transitions.push_back(step);
        TransitionOutcome::Taken { after }
    }
}

impl Session {
    /// Enters its state again.
    fn enter(&mut self, bound: BoundValues) {
        self.entries += 1;
        self.state_used = false;
        self.bound = bound;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(now: u64) -> SessionTime {
        SessionTime {
            wall: Timestamp::UNIX_EPOCH,
            now,
            idle: Duration::from_secs(10),
        }
    }

    fn initial(state: &str) -> SessionStart {
        SessionStart::Initial(StateName::new(state))
    }

    #[test]
    fn one_principal_cannot_exhaust_the_session_table() {
        let sessions = SessionTable::with_capacity(10, 3);
        let open = |principal, session, now| {
            let session_key = SessionKey { principal, session };
            sessions.open(
                session_key,
                (RequestedGroups::Default, false),
                initial("s"),
                moment(now),
            )
        };
        assert!(open("a", "1", 0) && open("a", "2", 0) && open("a", "3", 0));
        assert!(!open("a", "4", 0), "three are enough for one");
        assert!(open("a", "2", 0), "one that is open stays open");
        assert!(open("b", "1", 0));
        let later = 20_000_000_000;
        assert!(open("a", "4", later), "unused ones make room");
        let session_key = |principal, session| SessionKey { principal, session };
        assert!(
            sessions
                .get(session_key("a", "1"), later, Duration::from_secs(10))
                .is_none()
        );
        sessions.close(session_key("a", "4"));
        sessions.close(session_key("a", "4"));
        assert_eq!(
            sessions.count.load(Ordering::Acquire),
            1,
            "only b's is left"
        );
    }

    #[test]
    fn a_claim_belongs_to_one_state_visit() {
        let sessions = SessionTable::new();
        let session_key = SessionKey {
            principal: "a",
            session: "1",
        };
        let state = StateName::new("approved");
        assert!(sessions.open(
            session_key,
            (RequestedGroups::Default, false),
            SessionStart::Claimed(state.clone()),
            moment(0)
        ));
        let stay = || {
            let found = sessions.find_open(session_key, 1, Duration::from_secs(10));
            found.map(|it| it.state_visit)
        };
        let decided = stay();
        let first = sessions.claim(session_key, &state, decided, moment(1));
        assert!(matches!(first, ClaimOutcome::Taken(_)), "{first:?}");
        let renewal = Transition {
            tool: "renew".into(),
            from: state.clone(),
            to: state.clone(),
            at: Timestamp::UNIX_EPOCH,
        };
        let other = BoundValues::default();
        let moved = sessions.advance(session_key, &state, (renewal, other), None, moment(2));
        assert_eq!(moved, TransitionOutcome::Reentered);
        // It was decided under the previous approval.
        let late = sessions.claim(session_key, &state, decided, moment(3));
        assert_eq!(late, ClaimOutcome::AlreadyUsed);
        let fresh = sessions.claim(session_key, &state, stay(), moment(3));
        assert!(matches!(fresh, ClaimOutcome::Taken(_)), "{fresh:?}");
    }

    #[test]
    fn reading_does_not_extend_a_session() {
        let sessions = SessionTable::new();
        let session_key = SessionKey {
            principal: "a",
            session: "1",
        };
        assert!(sessions.open(
            session_key,
            (RequestedGroups::Default, false),
            initial("s"),
            moment(0)
        ));
        let second = 1_000_000_000;
        assert!(
            sessions
                .get(session_key, 9 * second, Duration::from_secs(10))
                .is_some()
        );
        assert!(
            sessions
                .get(session_key, 11 * second, Duration::from_secs(10))
                .is_none()
        );
        sessions.touch(session_key, 9 * second);
        assert!(
            sessions
                .get(session_key, 11 * second, Duration::from_secs(10))
                .is_some()
        );
    }
}
