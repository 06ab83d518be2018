//! One agent's session with the gateway.

mod agent_requests;
mod event_log;
mod open_tasks;
mod subscriptions;
mod table;
mod task_owners;

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

use crate::agent_info::Agent;
use crate::catalog::ClientVariant;
use crate::identity::Principal;
use crate::response_stream::AgentSender;

pub use agent_requests::{AgentResponse, PendingAgentResponse};
use event_log::ReplayBudget;
pub use event_log::{EventLog, StreamEvent};
pub use open_tasks::OpenTasks;
pub use subscriptions::SubscriptionContext;
use subscriptions::Subscriptions;
pub use table::{Conversations, NewConversation, TooManyConversations};
pub use task_owners::TaskOwners;

/// What the gateway stores for one agent between its requests.
#[derive(Debug)]
pub struct Conversation {
    /// Its id: the `Mcp-Session-Id`, or the derived id that replaces it in the stateless era.
    pub id: Arc<str>,
    /// The owner.
    pub principal: Arc<str>,
    /// The caller that opened it with a credential: the conversation ends when that credential does.
    pub(crate) opened_by: OnceLock<Principal>,
    /// Its workflow session; `None` is the principal's own.
    pub session: Option<Arc<str>>,
    /// The groups it requested when it began.
    pub groups: Option<RequestedGroups>,
    /// The agent's latest description of itself.
    pub agent: ArcSwap<Agent>,
    /// Its variant, which determines what servers offer it.
    pub variant: ClientVariant,
    /// Messages that belong to no request.
    pub standalone_stream: EventLog,
    /// Streams of requests that can be resumed after a lost connection, by number.
    streams: Mutex<BTreeMap<u64, Arc<EventLog>>>,
    next_stream: AtomicU64,
    /// The bytes that those streams keep.
    replay: Arc<AtomicUsize>,
    /// Calls whose results come from tasks.
    pub tasks: OpenTasks,
    agent_requests: agent_requests::AgentRequests,
    cancel_signals: Mutex<HashMap<Box<str>, Arc<Notify>>>,
    /// The number of requests in flight: several may have the same id.
    in_flight: AtomicUsize,
    notification_streams: Mutex<BTreeMap<u64, NotificationStream>>,
    subscriptions: Mutex<Subscriptions>,
    /// Resources that server answers referred to, with the servers.
    references: Mutex<BTreeMap<Box<str>, Arc<str>>>,
    /// The reader of the standing stream; 0 if there is none.
    reader: AtomicU64,
    readers: AtomicU64,
    delivered: AtomicU64,
    last_used: AtomicU64,
    end_signal: watch::Sender<bool>,
}

/// A notification stream that a stateless agent holds open.
#[derive(Clone, Debug)]
pub struct NotificationStream {
    /// The id of the request that opened it, as JSON text.
    pub id: String,
    /// Where the notifications go.
    pub sender: AgentSender,
    /// The notifications it subscribed to.
    pub filter: NotificationFilter,
}

/// A stream that is held open to a server until this is dropped.
#[derive(Debug)]
pub struct ServerStreamGuard(pub AbortHandle);

impl Drop for ServerStreamGuard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The notifications a listener subscribed to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotificationFilter {
    /// Changes of the tool list.
    pub tools: bool,
    /// Changes of the prompt list.
    pub prompts: bool,
    /// Changes of the resource list.
    pub resources: bool,
    /// Updates of these resources.
    pub updates: BTreeSet<String>,
}

/// The most resumable streams of one conversation.
const MAX_STREAMS: usize = 32;
/// The most resources that are stored because answers referred to them, and the longest address.
const MAX_REFERENCES: usize = 1_024;
const MAX_REFERENCE_BYTES: usize = 1_024;

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
            variant: ClientVariant::from_capabilities(&agent.client_info.capabilities),
            agent: ArcSwap::from_pointee(agent),
            standalone_stream: EventLog::default(),
            streams: Mutex::default(),
            next_stream: AtomicU64::new(1),
            replay: Arc::default(),
            tasks: OpenTasks::default(),
            agent_requests: agent_requests::AgentRequests::default(),
            cancel_signals: Mutex::default(),
            in_flight: AtomicUsize::new(0),
            notification_streams: Mutex::default(),
            subscriptions: Mutex::default(),
            references: Mutex::default(),
            reader: AtomicU64::new(0),
            readers: AtomicU64::new(0),
            delivered: AtomicU64::new(0),
            last_used: AtomicU64::new(now),
            end_signal: watch::Sender::new(false),
        }
    }

    /// The era the agent speaks.
    #[must_use]
    pub fn era(&self) -> Era {
        self.agent.load().era
    }

    /// Whether it has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        *self.end_signal.borrow()
    }

    /// Resolves when it has ended.
    pub async fn wait_for_end(&self) {
        let mut over = self.end_signal.subscribe();
        // `self` holds the sender, so waiting cannot fail.
        drop(over.wait_for(|over| *over).await);
    }

    /// Ends it: pending requests to the agent fail, and streams end.
    pub(crate) fn end(&self) {
        self.end_signal.send_replace(true);
        self.agent_requests.cancel_all();
        self.standalone_stream.end();
        lock(&self.notification_streams).clear();
        lock(&self.subscriptions).clear();
        for stream in lock(&self.streams).values() {
            stream.end();
        }
        for (_, waiting) in lock(&self.cancel_signals).drain() {
            waiting.notify_one();
        }
    }

    /// Begins a resumable stream; its number is part of the ids of its events. All such streams together keep at most
    /// `most` bytes: those that have ended make room first.
    pub fn open_stream(&self, most: usize) -> (u64, Arc<EventLog>) {
        let number = self.next_stream.fetch_add(1, Ordering::Relaxed);
        let budget = ReplayBudget {
            used: Arc::clone(&self.replay),
            limit: most,
        };
        let stream = Arc::new(EventLog::with_budget(budget.clone()));
        let mut streams = lock(&self.streams);
        while budget.is_over() {
            let ended = streams.iter().find(|(_, stream)| stream.has_ended());
            let Some(ended) = ended.map(|(number, _)| *number) else {
                break;
            };
            streams.remove(&ended);
        }
        while streams.len() >= MAX_STREAMS {
            streams.pop_first();
        }
        streams.insert(number, Arc::clone(&stream));
        (number, stream)
    }

    /// A stream that was begun earlier, if it is still kept.
    #[must_use]
    pub fn stream(&self, number: u64) -> Option<Arc<EventLog>> {
        lock(&self.streams).get(&number).cloned()
    }

    /// Forgets a stream that was read to its end.
    pub fn forget_stream(&self, number: u64) {
        lock(&self.streams).remove(&number);
    }

    /// Registers a request in flight, so that it can be cancelled; dropping the returned value removes it. `None` if
    /// the limit is reached.
    pub fn begin(self: &Arc<Self>, id: &str, most: NonZeroU32) -> Option<AgentRequestGuard> {
        let most = usize::try_from(most.get()).unwrap_or(usize::MAX);
        let counted = self
            .in_flight
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |it| {
                (it < most).then_some(it + 1)
            });
        counted.ok()?;
        let cancelled = Arc::new(Notify::new());
        lock(&self.cancel_signals).insert(id.into(), Arc::clone(&cancelled));
        Some(AgentRequestGuard {
            conversation: Arc::clone(self),
            id: id.into(),
            cancelled,
        })
    }

    /// Cancels a request of the agent.
    pub fn cancel(&self, id: &str) {
        if let Some(waiting) = lock(&self.cancel_signals).remove(id) {
            waiting.notify_one();
        }
    }

    /// Whether the agent reads the standing stream.
    #[must_use]
    pub fn is_listening(&self) -> bool {
        self.reader.load(Ordering::Acquire) != 0
    }

    /// Begins to read the standing stream, and replaces an earlier reader.
    pub fn start_reading(&self) -> u64 {
        let reader = self.readers.fetch_add(1, Ordering::AcqRel) + 1;
        self.reader.store(reader, Ordering::Release);
        reader
    }

    /// Whether no newer reader has replaced this one.
    #[must_use]
    pub fn is_reader(&self, reader: u64) -> bool {
        self.reader.load(Ordering::Acquire) == reader
    }

    /// Stops reading the standing stream.
    pub fn stop_reading(&self, reader: u64) {
        // A newer reader stays.
        let _newer = self
            .reader
            .compare_exchange(reader, 0, Ordering::AcqRel, Ordering::Acquire);
    }

    /// The number of the last event sent on the standing stream.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.delivered.load(Ordering::Acquire)
    }

    /// Stores the number of the last event sent on the standing stream.
    pub fn set_delivered(&self, number: u64) {
        self.delivered.fetch_max(number, Ordering::AcqRel);
    }

    /// Adds a notification stream; returns its number, because two agents may choose the same id.
    pub fn listen(&self, listener: NotificationStream) -> u64 {
        let number = self.next_stream.fetch_add(1, Ordering::Relaxed);
        lock(&self.notification_streams).insert(number, listener);
        number
    }

    /// Removes a notification stream; returns the resources without any remaining subscription.
    pub fn remove_notification_stream(&self, number: u64) -> Vec<String> {
        let mut listeners = lock(&self.notification_streams);
        let gone = listeners.remove(&number);
        let updates = gone.into_iter().flat_map(|gone| gone.filter.updates);
        let is_wanted = |uri: &String| {
            let mut others = listeners.values();
            others.any(|other| other.filter.updates.contains(uri))
        };
        updates.filter(|uri| !is_wanted(uri)).collect()
    }

    /// The open notification streams.
    #[must_use]
    pub fn notification_streams(&self) -> Vec<NotificationStream> {
        let listeners = lock(&self.notification_streams);
        let open = listeners.values().filter(|it| it.sender.is_open());
        open.cloned().collect()
    }

    /// Stores that a server's answer refers to a resource.
    pub fn add_reference(&self, uri: &str, server: &Arc<str>) {
        if uri.len() > MAX_REFERENCE_BYTES {
            return;
        }
        let mut references = lock(&self.references);
        if references.len() >= MAX_REFERENCES && !references.contains_key(uri) {
            references.clear();
        }
        references.insert(uri.into(), Arc::clone(server));
    }

    /// The server whose answer referred to a resource last.
    #[must_use]
    pub fn referring_server(&self, uri: &str) -> Option<Arc<str>> {
        lock(&self.references).get(uri).cloned()
    }

    pub(crate) fn touch(&self, now: u64) {
        self.last_used.fetch_max(now, Ordering::Relaxed);
    }

    pub(crate) fn last_used(&self) -> u64 {
        self.last_used.load(Ordering::Relaxed)
    }

    /// Whether a request is in flight or a stream is read, so that it must not expire.
    pub(crate) fn is_busy(&self) -> bool {
        self.is_listening()
            || !lock(&self.cancel_signals).is_empty()
            || !self.notification_streams().is_empty()
    }
}

/// A request of an agent in flight.
#[derive(Debug)]
pub struct AgentRequestGuard {
    conversation: Arc<Conversation>,
    id: Box<str>,
    cancelled: Arc<Notify>,
}

impl AgentRequestGuard {
    /// Resolves when the agent cancels the request.
    pub async fn cancelled(&self) {
        self.cancelled.notified().await;
    }
}

impl Drop for AgentRequestGuard {
    fn drop(&mut self) {
        self.conversation.in_flight.fetch_sub(1, Ordering::AcqRel);
        let mut under_way = lock(&self.conversation.cancel_signals);
        // A later request may have reused the id.
        if under_way
            .get(&self.id)
            .is_some_and(|it| Arc::ptr_eq(it, &self.cancelled))
        {
            under_way.remove(&self.id);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The values behind these locks change in one step, so they are consistent after a panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
