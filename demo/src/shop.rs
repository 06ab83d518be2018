//! The shop behind the server: its tools, its clients, and what it received.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::{broadcast, oneshot, watch};
use tokio::task::AbortHandle;
use toolwarden_mcp::RpcError;

use super::definitions;
use super::tool_pages::ToolPages;
use super::traffic::DemoTraffic;

/// How many events a slow stream may lag behind before it loses some.
const EVENT_BACKLOG: usize = 1024;

/// How the server behaves.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShopOptions {
    /// Which eras it speaks.
    pub eras: SupportedEras,
    /// Whether the handshake opens sessions over HTTP.
    pub sessions: SessionMode,
    /// How many tools a page of the list has; 0 puts all on one page.
    pub page: usize,
    /// The port on loopback; 0 takes a free one.
    pub port: u16,
}

/// Which eras a server speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SupportedEras {
    /// Both.
    #[default]
    Both,
    /// 2024-11-05 to 2025-11-25.
    Handshake,
    /// 2026-07-28.
    Stateless,
}

/// What the handshake opens over HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionMode {
    /// A session with an id that every request must name.
    #[default]
    Required,
    /// Nothing: requests have no id, and all clients count as one.
    None,
}

/// The shop, shared by the server and the code that controls it. Clones are the same shop.
#[derive(Clone, Debug)]
pub struct Shop(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    options: ShopOptions,
    tool_pages: ArcSwap<ToolPages>,
    traffic: Mutex<DemoTraffic>,
    sessions: Mutex<BTreeMap<String, Session>>,
    replies: Mutex<BTreeMap<String, oneshot::Sender<ClientReply>>>,
    running: Mutex<BTreeMap<String, AbortHandle>>,
    events: broadcast::Sender<DemoEvent>,
    is_hanging: watch::Sender<bool>,
    /// Counts the commands to close all streams.
    closed: watch::Sender<u64>,
    next_id: AtomicI64,
}

/// A client's response to a request of the server.
pub(super) type ClientReply = Result<Box<RawValue>, RpcError>;

/// An event for streams.
#[derive(Clone, Debug)]
pub(super) enum DemoEvent {
    /// A list changed: `tools`, `prompts` or `resources`.
    List(&'static str),
    /// A resource changed.
    Resource(Arc<str>),
}

/// One client of the handshake era.
#[derive(Debug)]
struct Session {
    capabilities: Value,
    subscriptions: BTreeSet<String>,
    /// Dropped with the session, which its streams notice.
    alive: watch::Sender<()>,
}

impl Shop {
    /// A shop with its usual tools.
    #[must_use]
    pub fn new(options: ShopOptions) -> Self {
        let shop = Self(Arc::new(Inner {
            options,
            tool_pages: ArcSwap::from_pointee(ToolPages::new(&[], 0)),
            traffic: Mutex::default(),
            sessions: Mutex::default(),
            replies: Mutex::default(),
            running: Mutex::default(),
            events: broadcast::Sender::new(EVENT_BACKLOG),
            is_hanging: watch::Sender::new(false),
            closed: watch::Sender::new(0),
            next_id: AtomicI64::new(1),
        }));
        shop.restore();
        shop
    }

    /// Offers these definitions from now on, whatever they contain. Calls of tools that the shop does not know are
    /// echoed. No client is notified: see [`Self::notify_list_changed`].
    pub fn set_tools(&self, tools: &[Value]) {
        let tools: Vec<_> = tools
            .iter()
            .filter_map(|it| to_raw_value(it).ok())
            .collect();
        self.set_raw_tools(&tools);
    }

    /// Like [`Self::set_tools`], byte for byte.
    pub fn set_raw_tools(&self, tools: &[Box<RawValue>]) {
        let offer = ToolPages::new(tools, self.options().page);
        self.0.tool_pages.store(Arc::new(offer));
    }

    /// Changes the refund as in [`super::drifted_tools`], without a notification.
    pub fn drift(&self) {
        self.set_tools(&definitions::drifted_tools());
    }

    /// Offers the usual tools again, without a notification.
    pub fn restore(&self) {
        self.set_tools(&definitions::tools());
    }

    /// Notifies every listening client that the list of tools changed.
    pub fn notify_list_changed(&self) {
        self.broadcast(DemoEvent::List("tools"));
    }

    /// Notifies every client that is subscribed to a resource that it changed.
    pub fn notify_resource_updated(&self, uri: &str) {
        self.broadcast(DemoEvent::Resource(uri.into()));
    }

    /// Forgets all sessions; requests that name one are refused from now on.
    pub fn expire_sessions(&self) {
        locked(&self.0.sessions).clear();
    }

    /// Ends the streams for messages that belong to no request, as a proxy in between might.
    pub fn close_streams(&self) {
        self.0.closed.send_modify(|times| *times += 1);
    }

    /// Accepts requests and answers none until [`Self::recover`].
    pub fn stop_answering(&self) {
        self.0.is_hanging.send_replace(true);
    }

    /// Answers again, including requests that arrived meanwhile.
    pub fn recover(&self) {
        self.0.is_hanging.send_replace(false);
    }

    /// What was received so far.
    #[must_use]
    pub fn seen(&self) -> DemoTraffic {
        locked(&self.0.traffic).clone()
    }

    /// How many sessions are open.
    #[must_use]
    pub fn open_sessions(&self) -> usize {
        locked(&self.0.sessions).len()
    }

    /// How many streams and connections would receive events.
    #[must_use]
    pub fn listeners(&self) -> usize {
        self.0.events.receiver_count()
    }

    pub(super) fn options(&self) -> &ShopOptions {
        &self.0.options
    }

    pub(super) fn tool_pages(&self) -> arc_swap::Guard<Arc<ToolPages>> {
        self.0.tool_pages.load()
    }

    pub(super) fn record<T>(&self, work: impl FnOnce(&mut DemoTraffic) -> T) -> T {
        work(&mut locked(&self.0.traffic))
    }

    pub(super) fn subscribe_events(&self) -> broadcast::Receiver<DemoEvent> {
        self.0.events.subscribe()
    }

    pub(super) fn closed(&self) -> watch::Receiver<u64> {
        self.0.closed.subscribe()
    }

    /// Resolves at once unless the shop hangs.
    pub(super) async fn ready(&self) {
        if !*self.0.is_hanging.borrow() {
            return;
        }
        let mut hangs = self.0.is_hanging.subscribe();
        // The sender lives as long as the shop.
        let _gone = hangs.wait_for(|hangs| !hangs).await;
    }

    pub(super) fn open_session(&self, id: &str, capabilities: Value) {
        let session = Session {
            capabilities,
            subscriptions: BTreeSet::new(),
            alive: watch::Sender::new(()),
        };
        locked(&self.0.sessions).insert(id.to_owned(), session);
    }

    /// Ends a session. Returns whether there was one.
    pub(super) fn end_session(&self, id: &str) -> bool {
        locked(&self.0.sessions).remove(id).is_some()
    }

    pub(super) fn has_session(&self, id: &str) -> bool {
        locked(&self.0.sessions).contains_key(id)
    }

    /// Ends with the session.
    pub(super) fn session_end(&self, id: &str) -> Option<watch::Receiver<()>> {
        let sessions = locked(&self.0.sessions);
        sessions.get(id).map(|session| session.alive.subscribe())
    }

    /// Whether the client of a session declared this capability.
    pub(super) fn client_has_capability(&self, id: &str, capability: &str) -> bool {
        let sessions = locked(&self.0.sessions);
        let session = sessions.get(id);
        session.is_some_and(|session| session.capabilities.get(capability).is_some())
    }

    pub(super) fn subscribe(&self, id: &str, uri: &str) {
        if let Some(session) = locked(&self.0.sessions).get_mut(id) {
            session.subscriptions.insert(uri.to_owned());
        }
    }

    pub(super) fn unsubscribe(&self, id: &str, uri: &str) {
        if let Some(session) = locked(&self.0.sessions).get_mut(id) {
            session.subscriptions.remove(uri);
        }
    }

    pub(super) fn is_subscribed(&self, id: &str, uri: &str) -> bool {
        let sessions = locked(&self.0.sessions);
        let session = sessions.get(id);
        session.is_some_and(|session| session.subscriptions.contains(uri))
    }

    /// A number for a request of the server, and the receiver of its reply.
    pub(super) fn expect_reply(&self) -> (i64, oneshot::Receiver<ClientReply>) {
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        locked(&self.0.replies).insert(id.to_string(), sender);
        (id, receiver)
    }

    /// Passes a reply to the request that waits for it.
    pub(super) fn resolve_reply(&self, id: &RawValue, reply: ClientReply) {
        if let Some(waiting) = locked(&self.0.replies).remove(id.get()) {
            // The request may have been cancelled.
            let _gone = waiting.send(reply);
        }
    }

    pub(super) fn set_running(&self, key: String, task: AbortHandle) {
        let mut running = locked(&self.0.running);
        running.retain(|_, task| !task.is_finished());
        running.insert(key, task);
    }

    /// Cancels a request that still runs.
    pub(super) fn cancel(&self, key: &str) {
        if let Some(task) = locked(&self.0.running).remove(key) {
            task.abort();
        }
    }

    fn broadcast(&self, news: DemoEvent) {
        // There may be no listener.
        let _unheard = self.0.events.send(news);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
