//! One agent's session with the gateway.

mod asks;
mod event_log;
mod subscriptions;
mod table;
mod task_owners;
mod tasks;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use arc_swap::ArcSwap;
use hashbrown::HashMap;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use toolwarden_guard::RequestedGroups;
use toolwarden_mcp::Era;

use crate::agent::Agent;
use crate::catalogue::ClientVariant;
use crate::identity::Principal;
use crate::outlet::Outlet;

pub use asks::{AgentAnswer, PendingAnswer};
use event_log::ReplayBudget;
pub use event_log::{Event, EventLog};
pub use subscriptions::SubscribedWith;
use subscriptions::Subscriptions;
pub use table::{Conversations, Opened, TooMany};
pub use task_owners::TaskOwners;
pub use tasks::OpenTasks;

/// What the gateway remembers of one agent between its requests.
#[derive(Debug)]
pub struct Conversation {
    /// Its name: the `Mcp-Session-Id`, or what stands for it in the stateless era.
    pub id: Arc<str>,
    /// Whose it is.
    pub principal: Arc<str>,
    /// The caller that opened it, where it came with a credential: the conversation ends with that.
    pub(crate) opened_by: OnceLock<Principal>,
    /// The workflow session it moves; none is the principal's own.
    pub session: Option<Arc<str>>,
    /// The groups it asked for when it began.
    pub groups: Option<RequestedGroups>,
    /// How the agent spoke last.
    pub agent: ArcSwap<Agent>,
    /// What servers may offer it by its capabilities.
    pub variant: ClientVariant,
    /// What is sent when no request is under way.
    pub standing: EventLog,
    /// Streams of requests that may be read again after a lost connection, by number.
    streams: Mutex<BTreeMap<u64, Arc<EventLog>>>,
    next_stream: AtomicU64,
    /// The bytes those streams keep.
    replay: Arc<AtomicUsize>,
    /// Calls whose answers come from tasks.
    pub tasks: OpenTasks,
    asks: asks::Asks,
    under_way: Mutex<HashMap<Box<str>, Arc<Notify>>>,
    /// How many requests are in flight: several may have the same id.
    in_flight: AtomicUsize,
    listeners: Mutex<BTreeMap<u64, Listener>>,
    subscriptions: Mutex<Subscriptions>,
    /// Resources that answers referred to, and whose answers those were.
    references: Mutex<BTreeMap<Box<str>, Arc<str>>>,
    /// Who reads the standing stream; 0 is nobody.
    reader: AtomicU64,
    readers: AtomicU64,
    delivered: AtomicU64,
    used: AtomicU64,
    over: watch::Sender<bool>,
}

/// A stream of notifications that a stateless agent holds open.
#[derive(Clone, Debug)]
pub struct Listener {
    /// The id of the request that opened it, as JSON text.
    pub id: String,
    /// Where the notifications go.
    pub outlet: Outlet,
    /// What it wants to hear of.
    pub wants: Wants,
}

/// A stream that is held open at a server until this is dropped.
#[derive(Debug)]
pub struct Stream(pub AbortHandle);

impl Drop for Stream {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What a listener wants to hear of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// Changes of the list of tools.
    pub tools: bool,
    /// Changes of the list of prompts.
    pub prompts: bool,
    /// Changes of the list of resources.
    pub resources: bool,
    /// Changes of these resources.
    pub updates: BTreeSet<String>,
}

/// The most streams of one conversation that are kept for reading again.
const MOST_STREAMS: usize = 32;
/// The most resources that are remembered because answers referred to them, and the longest address.
const MOST_REFERENCES: usize = 1_024;
const LONGEST_REFERENCE: usize = 1_024;

impl Conversation {
    fn new(
        id: Arc<str>,
        principal: Arc<str>,
        session: Option<Arc<str>>,
        groups: Option<RequestedGroups>,
        agent: Agent,
        now: u64,
    ) -> Self {
        Self {
            id,
            principal,
            opened_by: OnceLock::new(),
            session,
            groups,
            variant: ClientVariant::of(&agent.face.capabilities),
            agent: ArcSwap::from_pointee(agent),
            standing: EventLog::default(),
            streams: Mutex::default(),
            next_stream: AtomicU64::new(1),
            replay: Arc::default(),
            tasks: OpenTasks::default(),
            asks: asks::Asks::default(),
            under_way: Mutex::default(),
            in_flight: AtomicUsize::new(0),
            listeners: Mutex::default(),
            subscriptions: Mutex::default(),
            references: Mutex::default(),
            reader: AtomicU64::new(0),
            readers: AtomicU64::new(0),
            delivered: AtomicU64::new(0),
            used: AtomicU64::new(now),
            over: watch::Sender::new(false),
        }
    }

    /// The era the agent speaks.
    #[must_use]
    pub fn era(&self) -> Era {
        self.agent.load().era
    }

    /// Whether it has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        *self.over.borrow()
    }

    /// Resolves when it has ended.
    pub async fn ended(&self) {
        let mut over = self.over.subscribe();
        // The sender is here, so that waiting cannot fail.
        drop(over.wait_for(|over| *over).await);
    }

    /// Ends it: whoever waits for the agent is told, streams end.
    pub(crate) fn end(&self) {
        self.over.send_replace(true);
        self.asks.give_up();
        self.standing.end();
        lock(&self.listeners).clear();
        lock(&self.subscriptions).clear();
        for stream in lock(&self.streams).values() {
            stream.end();
        }
        for (_, waiting) in lock(&self.under_way).drain() {
            waiting.notify_one();
        }
    }

    /// Begins a stream that can be read again; its number is part of the ids of its events.
    /// All such streams keep at most so many bytes: those that have ended make room first.
    pub fn open_stream(&self, most: usize) -> (u64, Arc<EventLog>) {
        let number = self.next_stream.fetch_add(1, Ordering::Relaxed);
        let budget = ReplayBudget {
            used: Arc::clone(&self.replay),
            most,
        };
        let stream = Arc::new(EventLog::within(budget.clone()));
        let mut streams = lock(&self.streams);
        while budget.is_over() {
            let ended = streams.iter().find(|(_, stream)| stream.has_ended());
            let Some(ended) = ended.map(|(number, _)| *number) else {
                break;
            };
            streams.remove(&ended);
        }
        while streams.len() >= MOST_STREAMS {
            streams.pop_first();
        }
        streams.insert(number, Arc::clone(&stream));
        (number, stream)
    }

    /// A stream that was begun before, if it is still kept.
    #[must_use]
    pub fn stream(&self, number: u64) -> Option<Arc<EventLog>> {
        lock(&self.streams).get(&number).cloned()
    }

    /// Forgets a stream that was read to its end.
    pub fn forget_stream(&self, number: u64) {
        lock(&self.streams).remove(&number);
    }

    /// Remembers that a request is under way, so that it can be cancelled. The guard forgets it.
    /// None where as many are as may be.
    pub fn begin(self: &Arc<Self>, id: &str, most: NonZeroU32) -> Option<UnderWay> {
        let most = usize::try_from(most.get()).unwrap_or(usize::MAX);
        let counted = self
            .in_flight
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |it| {
                (it < most).then_some(it + 1)
            });
        counted.ok()?;
        let cancelled = Arc::new(Notify::new());
        lock(&self.under_way).insert(id.into(), Arc::clone(&cancelled));
        Some(UnderWay {
            conversation: Arc::clone(self),
            id: id.into(),
            cancelled,
        })
    }

    /// Cancels a request of the agent.
    pub fn cancel(&self, id: &str) {
        if let Some(waiting) = lock(&self.under_way).remove(id) {
            waiting.notify_one();
        }
    }

    /// Whether the agent reads the standing stream.
    #[must_use]
    pub fn is_listening(&self) -> bool {
        self.reader.load(Ordering::Acquire) != 0
    }

    /// Begins to read the standing stream, in the place of whoever did.
    pub fn stand(&self) -> u64 {
        let reader = self.readers.fetch_add(1, Ordering::AcqRel) + 1;
        self.reader.store(reader, Ordering::Release);
        reader
    }

    /// Whether nobody took the standing stream over.
    #[must_use]
    pub fn is_reader(&self, reader: u64) -> bool {
        self.reader.load(Ordering::Acquire) == reader
    }

    /// Stops reading the standing stream.
    pub fn leave(&self, reader: u64) {
        // A newer reader stays.
        let _newer = self
            .reader
            .compare_exchange(reader, 0, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Up to where the standing stream was sent.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.delivered.load(Ordering::Acquire)
    }

    /// Says up to where the standing stream was sent.
    pub fn deliver(&self, number: u64) {
        self.delivered.fetch_max(number, Ordering::AcqRel);
    }

    /// Adds a stream of notifications; gives its number, for two agents may choose the same id.
    pub fn listen(&self, listener: Listener) -> u64 {
        let number = self.next_stream.fetch_add(1, Ordering::Relaxed);
        lock(&self.listeners).insert(number, listener);
        number
    }

    /// Takes a stream of notifications away; gives the resources that nobody wants to hear of any more.
    pub fn unlisten(&self, number: u64) -> Vec<String> {
        let mut listeners = lock(&self.listeners);
        let gone = listeners.remove(&number);
        let updates = gone.into_iter().flat_map(|gone| gone.wants.updates);
        let is_wanted = |uri: &String| {
            let mut others = listeners.values();
            others.any(|other| other.wants.updates.contains(uri))
        };
        updates.filter(|uri| !is_wanted(uri)).collect()
    }

    /// The streams of notifications there are.
    #[must_use]
    pub fn listeners(&self) -> Vec<Listener> {
        let listeners = lock(&self.listeners);
        let open = listeners.values().filter(|it| it.outlet.is_open());
        open.cloned().collect()
    }

    /// Remembers that an answer of a server refers to a resource.
    pub fn refer(&self, uri: &str, server: &Arc<str>) {
        if uri.len() > LONGEST_REFERENCE {
            return;
        }
        let mut references = lock(&self.references);
        if references.len() >= MOST_REFERENCES && !references.contains_key(uri) {
            references.clear();
        }
        references.insert(uri.into(), Arc::clone(server));
    }

    /// The server whose answer referred to a resource last.
    #[must_use]
    pub fn referred(&self, uri: &str) -> Option<Arc<str>> {
        lock(&self.references).get(uri).cloned()
    }

    pub(crate) fn touch(&self, now: u64) {
        self.used.fetch_max(now, Ordering::Relaxed);
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether something is under way or read, so that it must not be forgotten.
    pub(crate) fn is_busy(&self) -> bool {
        self.is_listening() || !lock(&self.under_way).is_empty() || !self.listeners().is_empty()
    }
}

/// A request of an agent that is under way.
#[derive(Debug)]
pub struct UnderWay {
    conversation: Arc<Conversation>,
    id: Box<str>,
    cancelled: Arc<Notify>,
}

impl UnderWay {
    /// Resolves when the agent gives the request up.
    pub async fn cancelled(&self) {
        self.cancelled.notified().await;
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.conversation.in_flight.fetch_sub(1, Ordering::AcqRel);
        let mut under_way = lock(&self.conversation.under_way);
        // A later request may have taken the same id.
        if under_way
            .get(&self.id)
            .is_some_and(|it| Arc::ptr_eq(it, &self.cancelled))
        {
            under_way.remove(&self.id);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind these locks is changed in one step, so what a panic leaves behind is whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
