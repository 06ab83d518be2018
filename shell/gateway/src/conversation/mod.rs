//! One agent's session with the gateway.

mod asks;
mod event_log;
mod table;
mod task_owners;
mod tasks;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use hashbrown::HashMap;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use toolwarden_guard::RequestedGroups;
use toolwarden_mcp::Era;

use crate::agent::Agent;
use crate::catalogue::ClientVariant;
use crate::outlet::Outlet;

pub use asks::{AgentAnswer, PendingAnswer};
pub use event_log::{Event, EventLog};
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
    /// Calls whose answers come from tasks.
    pub tasks: OpenTasks,
    asks: asks::Asks,
    under_way: Mutex<HashMap<Box<str>, Arc<Notify>>>,
    listeners: Mutex<BTreeMap<u64, Listener>>,
    subscriptions: Mutex<BTreeMap<String, Subscription>>,
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

/// A resource that an agent wants to hear of.
#[derive(Debug)]
struct Subscription {
    server: Arc<str>,
    /// The server's own address; the agent may know it by another.
    uri: Box<str>,
    /// The stream on which a stateless server tells of it; it ends with the subscription.
    _stream: Option<Stream>,
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
            session,
            groups,
            variant: ClientVariant::of(&agent.face.capabilities),
            agent: ArcSwap::from_pointee(agent),
            standing: EventLog::default(),
            streams: Mutex::default(),
            next_stream: AtomicU64::new(1),
            tasks: OpenTasks::default(),
            asks: asks::Asks::default(),
            under_way: Mutex::default(),
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
    pub fn open_stream(&self) -> (u64, Arc<EventLog>) {
        let number = self.next_stream.fetch_add(1, Ordering::Relaxed);
        let stream = Arc::new(EventLog::default());
        let mut streams = lock(&self.streams);
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
    pub fn begin(self: &Arc<Self>, id: &str) -> UnderWay {
        let cancelled = Arc::new(Notify::new());
        lock(&self.under_way).insert(id.into(), Arc::clone(&cancelled));
        UnderWay {
            conversation: Arc::clone(self),
            id: id.into(),
            cancelled,
        }
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

    /// Remembers that the agent wants to hear of a resource, by the address it knows, and the stream on
    /// which a stateless server tells of it.
    pub fn subscribe(&self, shown: &str, (server, uri): (Arc<str>, &str), stream: Option<Stream>) {
        let subscription = Subscription {
            server,
            uri: uri.into(),
            _stream: stream,
        };
        lock(&self.subscriptions).insert(shown.to_owned(), subscription);
    }

    /// Forgets it; gives the server and its own address.
    pub fn unsubscribe(&self, shown: &str) -> Option<(Arc<str>, Box<str>)> {
        let gone = lock(&self.subscriptions).remove(shown)?;
        Some((Arc::clone(&gone.server), gone.uri.clone()))
    }

    /// The address by which the agent wants to hear of a resource of a server.
    #[must_use]
    pub fn subscription(&self, uri: &str, server: &str) -> Option<String> {
        let subscriptions = lock(&self.subscriptions);
        let mut found = subscriptions.iter();
        let found = found.find(|(_, it)| *it.server == *server && *it.uri == *uri);
        found.map(|(shown, _)| shown.clone())
    }

    /// Whether the agent wants to hear of a resource of a server.
    #[must_use]
    pub fn is_subscribed(&self, uri: &str, server: &str) -> bool {
        self.subscription(uri, server).is_some()
    }

    /// The resources of a server it wants to hear of, by the server's own addresses.
    #[must_use]
    pub fn subscribed(&self, server: &str) -> Vec<String> {
        let subscriptions = lock(&self.subscriptions);
        let of_server = subscriptions.values().filter(|it| *it.server == *server);
        of_server.map(|it| it.uri.to_string()).collect()
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
