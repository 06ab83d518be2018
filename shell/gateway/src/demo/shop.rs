//! The shop behind the server: what it offers, whom it knows, what it has seen.

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
use super::offer::Offer;
use super::seen::Seen;

/// News that a slow stream may be behind before it loses some.
const NEWS: usize = 1024;

/// How the server behaves.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShopOptions {
    /// Which eras it speaks.
    pub eras: Eras,
    /// Whether the handshake opens sessions over HTTP.
    pub sessions: Sessions,
    /// How many tools a page of the list has; 0 puts all on one.
    pub page: usize,
    /// The port on loopback; 0 takes a free one.
    pub port: u16,
}

/// Which eras a server speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Eras {
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
pub enum Sessions {
    /// A session with an id, without which nothing is answered.
    #[default]
    Required,
    /// Nothing: requests carry no id, and all clients are one.
    None,
}

/// The shop, held by the server and by whoever commands it. Clones are the same shop.
#[derive(Clone, Debug)]
pub struct Shop(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    options: ShopOptions,
    offer: ArcSwap<Offer>,
    seen: Mutex<Seen>,
    sessions: Mutex<BTreeMap<String, Session>>,
    replies: Mutex<BTreeMap<String, oneshot::Sender<Reply>>>,
    running: Mutex<BTreeMap<String, AbortHandle>>,
    news: broadcast::Sender<News>,
    hangs: watch::Sender<bool>,
    /// Counts the commands to close all streams.
    closed: watch::Sender<u64>,
    next_id: AtomicI64,
}

/// What a client answered to a request of the server.
pub(super) type Reply = Result<Box<RawValue>, RpcError>;

/// Something that streams tell.
#[derive(Clone, Debug)]
pub(super) enum News {
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
            offer: ArcSwap::from_pointee(Offer::new(&[], 0)),
            seen: Mutex::default(),
            sessions: Mutex::default(),
            replies: Mutex::default(),
            running: Mutex::default(),
            news: broadcast::Sender::new(NEWS),
            hangs: watch::Sender::new(false),
            closed: watch::Sender::new(0),
            next_id: AtomicI64::new(1),
        }));
        shop.restore();
        shop
    }

    /// Offers these definitions from now on, whatever they say. Calls of tools that the shop does
    /// not know are echoed. Nobody is told: see [`Self::notify_list_changed`].
    pub fn set_tools(&self, tools: &[Value]) {
        let tools: Vec<_> = tools
            .iter()
            .filter_map(|it| to_raw_value(it).ok())
            .collect();
        self.set_raw_tools(&tools);
    }

    /// As [`Self::set_tools`], byte for byte.
    pub fn set_raw_tools(&self, tools: &[Box<RawValue>]) {
        let offer = Offer::new(tools, self.options().page);
        self.0.offer.store(Arc::new(offer));
    }

    /// Changes the refund as [`super::drifted_tools`] says, and tells nobody.
    pub fn drift(&self) {
        self.set_tools(&definitions::drifted_tools());
    }

    /// Offers the usual tools again, and tells nobody.
    pub fn restore(&self) {
        self.set_tools(&definitions::tools());
    }

    /// Tells every client that listens that the list of tools changed.
    pub fn notify_list_changed(&self) {
        self.tell(News::List("tools"));
    }

    /// Tells every client that subscribed to a resource that it changed.
    pub fn notify_resource_updated(&self, uri: &str) {
        self.tell(News::Resource(uri.into()));
    }

    /// Forgets all sessions; requests that name one are refused from now on.
    pub fn expire_sessions(&self) {
        locked(&self.0.sessions).clear();
    }

    /// Ends the streams on which the server speaks by itself, as a proxy in between might.
    pub fn close_streams(&self) {
        self.0.closed.send_modify(|times| *times += 1);
    }

    /// Takes requests and answers none until [`Self::recover`].
    pub fn hang(&self) {
        self.0.hangs.send_replace(true);
    }

    /// Answers again, also what was asked meanwhile.
    pub fn recover(&self) {
        self.0.hangs.send_replace(false);
    }

    /// What came in so far.
    #[must_use]
    pub fn seen(&self) -> Seen {
        locked(&self.0.seen).clone()
    }

    /// How many sessions are open.
    #[must_use]
    pub fn open_sessions(&self) -> usize {
        locked(&self.0.sessions).len()
    }

    /// How many streams and connections would hear news.
    #[must_use]
    pub fn listeners(&self) -> usize {
        self.0.news.receiver_count()
    }

    pub(super) fn options(&self) -> &ShopOptions {
        &self.0.options
    }

    pub(super) fn offer(&self) -> arc_swap::Guard<Arc<Offer>> {
        self.0.offer.load()
    }

    pub(super) fn note<T>(&self, work: impl FnOnce(&mut Seen) -> T) -> T {
        work(&mut locked(&self.0.seen))
    }

    pub(super) fn news(&self) -> broadcast::Receiver<News> {
        self.0.news.subscribe()
    }

    pub(super) fn closed(&self) -> watch::Receiver<u64> {
        self.0.closed.subscribe()
    }

    /// Resolves at once unless the shop hangs.
    pub(super) async fn ready(&self) {
        if !*self.0.hangs.borrow() {
            return;
        }
        let mut hangs = self.0.hangs.subscribe();
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
    pub(super) fn life(&self, id: &str) -> Option<watch::Receiver<()>> {
        let sessions = locked(&self.0.sessions);
        sessions.get(id).map(|session| session.alive.subscribe())
    }

    /// Whether the client of a session said that it can do this.
    pub(super) fn can(&self, id: &str, capability: &str) -> bool {
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

    /// A number for a request of the server, and where its reply arrives.
    pub(super) fn expect_reply(&self) -> (i64, oneshot::Receiver<Reply>) {
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        locked(&self.0.replies).insert(id.to_string(), sender);
        (id, receiver)
    }

    /// Hands a reply to whoever waits for it.
    pub(super) fn settle(&self, id: &RawValue, reply: Reply) {
        if let Some(waiting) = locked(&self.0.replies).remove(id.get()) {
            // Whoever asked may have been given up.
            let _gone = waiting.send(reply);
        }
    }

    pub(super) fn set_running(&self, key: String, task: AbortHandle) {
        let mut running = locked(&self.0.running);
        running.retain(|_, task| !task.is_finished());
        running.insert(key, task);
    }

    /// Gives up a request that still runs.
    pub(super) fn give_up(&self, key: &str) {
        if let Some(task) = locked(&self.0.running).remove(key) {
            task.abort();
        }
    }

    fn tell(&self, news: News) {
        // Nobody need be listening.
        let _unheard = self.0.news.send(news);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
