//! Where every session stands in its workflow. Only the server moves it.

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hashbrown::{DefaultHashBuilder, HashMap};
use jiff::Timestamp;
use toolwarden_guard::{BoundValues, Guard, RequestedGroups};

use super::looking::SessionSummary;

const SHARDS: usize = 64;

/// The most sessions that are held at a time, and those of one principal among them, so that nobody
/// takes everybody's place.
const MAX_SESSIONS: usize = 1_000_000;
const MAX_OF_ONE: usize = 100_000;

/// The transitions of a session that are remembered; older ones are in the log.
const MAX_TRANSITIONS: usize = 64;

/// How long after a search for forgotten sessions the next one is worth it.
const SEARCH_EVERY: u64 = 1_000_000_000;

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
    entered: u64,
    pub(crate) started: u64,
    used: u64,
    /// How often it came into a state, its own or another.
    entries: u64,
    /// Whether the one call was permitted that its state allows, where it allows one.
    state_used: bool,
    /// What calls in its state have to repeat.
    bound: BoundValues,
    /// Whether its state is more than the one every session of its principal starts in.
    settled: bool,
    /// Whether requests may not ask for more than its groups.
    bounds_groups: bool,
}

/// How a session starts.
#[derive(Clone, Debug)]
pub(crate) enum Start {
    /// Where every session of its principal does; until its first transition the client may still
    /// name another state.
    Initial(Arc<str>),
    /// Where its client, or the host, says.
    Claimed(Arc<str>),
}

/// What a call needs to know of an open session.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) state: Arc<str>,
    pub(crate) groups: RequestedGroups,
    /// Whether requests may not ask for more than these groups.
    pub(crate) bounds_groups: bool,
    /// Whether the one call was permitted that its state allows.
    pub(crate) state_used: bool,
    /// What calls in its state have to repeat.
    pub(crate) bound: BoundValues,
    /// Which stay in its state this is.
    pub(crate) stay: StateClaim,
    /// Whether it is too late for its client to name the state it starts in.
    pub(crate) started: bool,
}

/// That a call has a single-use state of a session to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StateClaim {
    started: u64,
    entries: u64,
}

/// What became of the wish to use a single-use state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claiming {
    /// The call has it.
    Taken(StateClaim),
    /// Another call had it, or the session has left the state.
    Used,
    /// There are too many sessions to hold one more.
    Full,
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
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whose<'s> {
    pub(crate) principal: &'s str,
    pub(crate) session: &'s str,
}

/// A point in time on both clocks, and how long unused sessions are remembered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) wall: Timestamp,
    pub(crate) now: u64,
    pub(crate) idle: Duration,
}

/// What became of a transition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Moved {
    /// It was taken, after so long in the state before.
    Taken { after: Duration },
    /// The session is in that state already.
    Already,
    /// The session is in that state already, and has entered it again.
    Renewed,
    /// The session is no longer in the state the call was permitted in.
    Elsewhere,
    /// There are too many sessions to hold one more.
    Full,
}

#[derive(Debug)]
pub(crate) struct Sessions {
    /// The sessions of one principal are in one shard.
    shards: Vec<Mutex<Shard>>,
    spread: DefaultHashBuilder,
    held: AtomicUsize,
    most: usize,
    most_of_one: usize,
}

#[derive(Debug, Default)]
struct Shard {
    principals: HashMap<Box<str>, HashMap<Box<str>, Session>>,
    searched: u64,
}

impl Sessions {
    pub(crate) fn new() -> Self {
        Self::holding(MAX_SESSIONS, MAX_OF_ONE)
    }

    fn holding(most: usize, most_of_one: usize) -> Self {
        Self {
            shards: std::iter::repeat_with(Mutex::default)
                .take(SHARDS)
                .collect(),
            spread: DefaultHashBuilder::default(),
            held: AtomicUsize::new(0),
            most,
            most_of_one,
        }
    }

    /// Whether there is no session at all, told without waiting for anybody.
    pub(crate) fn is_empty(&self) -> bool {
        self.held.load(Ordering::Acquire) == 0
    }

    /// A session as it is, if it is remembered. Looking does not prolong its life.
    pub(crate) fn look(&self, whose: Whose<'_>, now: u64, idle: Duration) -> Option<Session> {
        let shard = self.shard(whose)?;
        let session = shard.principals.get(whose.principal)?.get(whose.session)?;
        session.is_fresh(now, idle).then(|| session.clone())
    }

    /// The state and groups of a session, if it is remembered. Looking does not prolong its life.
    pub(crate) fn standing(&self, whose: Whose<'_>, now: u64, idle: Duration) -> Option<Found> {
        let shard = self.shard(whose)?;
        let session = shard.principals.get(whose.principal)?.get(whose.session)?;
        let fresh = session.is_fresh(now, idle);
        fresh.then(|| Found {
            state: Arc::clone(&session.state),
            groups: session.groups.clone(),
            bounds_groups: session.bounds_groups,
            state_used: session.state_used,
            bound: session.bound.clone(),
            stay: session.stay(),
            started: session.settled,
        })
    }

    /// Says that a session is in use.
    pub(crate) fn touch(&self, whose: Whose<'_>, now: u64) {
        if let Some(mut shard) = self.shard(whose)
            && let Some(of_one) = shard.principals.get_mut(whose.principal)
            && let Some(session) = of_one.get_mut(whose.session)
        {
            session.used = session.used.max(now);
        }
    }

    /// Opens a session in a state, or gives one that is open other groups and, where it has not left
    /// its initial state, the state its client names. Says whether there was room.
    pub(crate) fn open(
        &self,
        whose: Whose<'_>,
        (groups, bounds_groups): (RequestedGroups, bool),
        start: Start,
        at: Moment,
    ) -> bool {
        let Some(mut shard) = self.shard(whose) else {
            return false;
        };
        if let Some(session) = shard.fresh(whose, at) {
            session.groups = groups;
            session.bounds_groups = bounds_groups;
            session.used = at.now;
            if let Start::Claimed(state) = start {
                session.start_in(state, at.now);
            }
            return true;
        }
        let mut session = Session::new(groups, start, at);
        session.bounds_groups = bounds_groups;
        self.insert(&mut shard, whose, session, at)
    }

    /// Moves a session on, if it still is where the call was permitted. One that is not open starts in
    /// the given state.
    pub(crate) fn advance(
        &self,
        whose: Whose<'_>,
        initial: &Arc<str>,
        (step, bound): (Transition, BoundValues),
        claim: Option<StateClaim>,
        at: Moment,
    ) -> Moved {
        let Some(mut shard) = self.shard(whose) else {
            return Moved::Full;
        };
        if shard.fresh(whose, at).is_none() {
            let session = Session::new(
                RequestedGroups::Default,
                Start::Initial(Arc::clone(initial)),
                at,
            );
            if !self.insert(&mut shard, whose, session, at) {
                return Moved::Full;
            }
        }
        match shard.fresh(whose, at) {
            Some(session) => session.advance(step, bound, claim, at.now),
            None => Moved::Full,
        }
    }

    /// Gives a call the single-use state that its session is in, unless another call had it. A session that
    /// is not open starts in that state. `stay` is the stay in the state that the call was decided for.
    pub(crate) fn claim(
        &self,
        whose: Whose<'_>,
        state: &Arc<str>,
        stay: Option<StateClaim>,
        at: Moment,
    ) -> Claiming {
        let Some(mut shard) = self.shard(whose) else {
            return Claiming::Full;
        };
        if shard.fresh(whose, at).is_none() {
            let start = Start::Initial(Arc::clone(state));
            let session = Session::new(RequestedGroups::Default, start, at);
            if !self.insert(&mut shard, whose, session, at) {
                return Claiming::Full;
            }
        }
        match shard.fresh(whose, at) {
            // The state may have been left and entered again by another approval.
            Some(session) if stay.is_some_and(|stay| !session.is_of(stay)) => Claiming::Used,
            Some(session) => session.claim(state),
            None => Claiming::Full,
        }
    }

    /// Gives a single-use state back that a call did not use.
    pub(crate) fn release(&self, whose: Whose<'_>, claim: StateClaim, at: Moment) {
        if let Some(mut shard) = self.shard(whose)
            && let Some(session) = shard.fresh(whose, at)
            && session.is_of(claim)
        {
            session.state_used = false;
        }
    }

    pub(crate) fn close(&self, whose: Whose<'_>) {
        if let Some(mut shard) = self.shard(whose)
            && let Some(of_one) = shard.principals.get_mut(whose.principal)
        {
            if of_one.remove(whose.session).is_some() {
                self.held.fetch_sub(1, Ordering::AcqRel);
            }
            if of_one.is_empty() {
                shard.principals.remove(whose.principal);
            }
        }
    }

    /// Every session that is remembered, in no order.
    pub(crate) fn summaries(&self, guard: &Guard, at: Moment) -> Vec<SessionSummary> {
        let mut summaries = Vec::new();
        for shard in &self.shards {
            // Every change is made in one step, so what a panic leaves behind is whole.
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            for (principal, of_one) in &shard.principals {
                let fresh = of_one.iter().filter(|(_, it)| it.is_fresh(at.now, at.idle));
                summaries.extend(fresh.map(|(name, it)| it.summary(principal, name, guard, at)));
            }
        }
        summaries
    }

    fn insert(&self, shard: &mut Shard, whose: Whose<'_>, session: Session, at: Moment) -> bool {
        let is_full = |shard: &Shard| {
            let of_one = shard
                .principals
                .get(whose.principal)
                .map_or(0, HashMap::len);
            of_one >= self.most_of_one || self.held.load(Ordering::Acquire) >= self.most
        };
        if is_full(shard) && at.now >= shard.searched.saturating_add(SEARCH_EVERY) {
            shard.searched = at.now;
            self.held
                .fetch_sub(shard.forget_unused(at), Ordering::AcqRel);
        }
        if is_full(shard) {
            return false;
        }
        let of_one = shard.principals.entry(whose.principal.into()).or_default();
        if of_one.insert(whose.session.into(), session).is_none() {
            self.held.fetch_add(1, Ordering::AcqRel);
        }
        true
    }

    fn shard(&self, whose: Whose<'_>) -> Option<MutexGuard<'_, Shard>> {
        let at = usize::try_from(self.spread.hash_one(whose.principal)).unwrap_or_default();
        let shard = self.shards.get(at % SHARDS)?;
        // Every change is made in one step, so what a panic leaves behind is whole.
        Some(shard.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Shard {
    fn fresh(&mut self, whose: Whose<'_>, at: Moment) -> Option<&mut Session> {
        let of_one = self.principals.get_mut(whose.principal)?;
        let session = of_one.get_mut(whose.session)?;
        session.is_fresh(at.now, at.idle).then_some(session)
    }

    /// Drops what nobody has used for too long; says how many.
    fn forget_unused(&mut self, at: Moment) -> usize {
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
    fn new(groups: RequestedGroups, start: Start, at: Moment) -> Self {
        let (state, settled) = match start {
            Start::Initial(state) => (state, false),
            Start::Claimed(state) => (state, true),
        };
        Self {
            groups,
            initial_state: Arc::clone(&state),
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

    fn start_in(&mut self, state: Arc<str>, now: u64) {
        if !self.settled {
            self.settled = true;
            self.initial_state = Arc::clone(&state);
            if self.state != state {
                self.entries += 1;
                self.state_used = false;
            }
            self.state = state;
            self.entered = now;
        }
    }

    fn summary(&self, principal: &str, session: &str, guard: &Guard, at: Moment) -> SessionSummary {
        let unused = Duration::from_nanos(at.now.saturating_sub(self.used));
        SessionSummary {
            principal: principal.to_owned(),
            session: session.to_owned(),
            state: self.state.to_string(),
            groups: {
                let asked = guard.asked(principal, &self.groups);
                asked.names().map(ToOwned::to_owned).collect()
            },
            opened: self.opened,
            last_used: at.wall.checked_sub(unused).unwrap_or(self.opened),
        }
    }

    fn is_fresh(&self, now: u64, idle: Duration) -> bool {
        u128::from(now.saturating_sub(self.used)) <= idle.as_nanos()
    }

    fn claim(&mut self, state: &Arc<str>) -> Claiming {
        if self.state_used || self.state != *state {
            return Claiming::Used;
        }
        self.state_used = true;
        // The client can no longer name another state to start in: it would free the claim.
        self.settled = true;
        Claiming::Taken(self.stay())
    }

    const fn stay(&self) -> StateClaim {
        StateClaim {
            started: self.started,
            entries: self.entries,
        }
    }

    fn is_of(&self, claim: StateClaim) -> bool {
        (self.started, self.entries) == (claim.started, claim.entries)
    }

    fn advance(
        &mut self,
        step: Transition,
        bound: BoundValues,
        claim: Option<StateClaim>,
        now: u64,
    ) -> Moved {
        self.used = now;
        self.settled = true;
        if self.state == step.to {
            // Only a call that was made in this state and did not use it up enters it again: one that was
            // permitted before would renew what it has led to already.
            if step.from != step.to || claim.is_some() || (!self.state_used && self.bound == bound)
            {
                return Moved::Already;
            }
            self.enter(bound);
            return Moved::Renewed;
        }
        if self.state != step.from {
            return Moved::Elsewhere;
        }
        self.state = Arc::clone(&step.to);
        self.enter(bound);
        let after = Duration::from_nanos(now.saturating_sub(self.entered));
        self.entered = now;
        if self.transitions.len() == MAX_TRANSITIONS {
            self.transitions.pop_front();
        }
        self.transitions.push_back(step);
        Moved::Taken { after }
    }
}

impl Session {
    /// Begins its state anew.
    fn enter(&mut self, bound: BoundValues) {
        self.entries += 1;
        self.state_used = false;
        self.bound = bound;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(now: u64) -> Moment {
        Moment {
            wall: Timestamp::UNIX_EPOCH,
            now,
            idle: Duration::from_secs(10),
        }
    }

    fn initial(state: &str) -> Start {
        Start::Initial(state.into())
    }

    #[test]
    fn one_principal_cannot_take_everybodys_place() {
        let sessions = Sessions::holding(10, 3);
        let open = |principal, session, now| {
            let whose = Whose { principal, session };
            sessions.open(
                whose,
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
        let whose = |principal, session| Whose { principal, session };
        assert!(
            sessions
                .look(whose("a", "1"), later, Duration::from_secs(10))
                .is_none()
        );
        sessions.close(whose("a", "4"));
        sessions.close(whose("a", "4"));
        assert_eq!(sessions.held.load(Ordering::Acquire), 1, "only b's is left");
    }

    #[test]
    fn a_claim_is_of_the_stay_it_was_decided_in() {
        let sessions = Sessions::new();
        let whose = Whose {
            principal: "a",
            session: "1",
        };
        let state: Arc<str> = "approved".into();
        assert!(sessions.open(
            whose,
            (RequestedGroups::Default, false),
            Start::Claimed(Arc::clone(&state)),
            moment(0)
        ));
        let stay = || {
            let found = sessions.standing(whose, 1, Duration::from_secs(10));
            found.map(|it| it.stay)
        };
        let decided = stay();
        let first = sessions.claim(whose, &state, decided, moment(1));
        assert!(matches!(first, Claiming::Taken(_)), "{first:?}");
        let renewal = Transition {
            tool: "renew".into(),
            from: Arc::clone(&state),
            to: Arc::clone(&state),
            at: Timestamp::UNIX_EPOCH,
        };
        let other = BoundValues::default();
        let moved = sessions.advance(whose, &state, (renewal, other), None, moment(2));
        assert_eq!(moved, Moved::Renewed);
        // It was decided by what was approved before.
        let late = sessions.claim(whose, &state, decided, moment(3));
        assert_eq!(late, Claiming::Used);
        let fresh = sessions.claim(whose, &state, stay(), moment(3));
        assert!(matches!(fresh, Claiming::Taken(_)), "{fresh:?}");
    }

    #[test]
    fn looking_does_not_prolong_a_session() {
        let sessions = Sessions::new();
        let whose = Whose {
            principal: "a",
            session: "1",
        };
        assert!(sessions.open(
            whose,
            (RequestedGroups::Default, false),
            initial("s"),
            moment(0)
        ));
        let second = 1_000_000_000;
        assert!(
            sessions
                .look(whose, 9 * second, Duration::from_secs(10))
                .is_some()
        );
        assert!(
            sessions
                .look(whose, 11 * second, Duration::from_secs(10))
                .is_none()
        );
        sessions.touch(whose, 9 * second);
        assert!(
            sessions
                .look(whose, 11 * second, Duration::from_secs(10))
                .is_some()
        );
    }
}
