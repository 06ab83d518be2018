//! The running gateway: its parts, its shared state and its background events.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use arc_swap::ArcSwap;
use tokio::sync::{broadcast, watch};
use toolwarden_guard::ToolPolicy;
use toolwarden_live_guard::{Clock, LiveGuard, RequestLog};
use toolwarden_model::{ExposedName, OwnName, ServerName};
use toolwarden_settings::Settings;
use toolwarden_watch::inline::InlineWatch;

use crate::catalog::{ServerCatalog, ShownNames, collision_text};
use crate::conversation::{Conversation, Conversations, TaskOwners};
use crate::in_flight::{InFlightRequests, InFlightTable};
use crate::metrics::GatewayMetrics;
use crate::pending_inputs::PendingInputs;
use crate::request_bytes::InFlightBytes;
use crate::traces::Tracer;
use crate::upstream::{LinkKey, Upstream};

/// How many request logs a subscriber may lag behind.
const CLOSED_SESSION_BACKLOG: usize = 1024;
/// How many health changes a subscriber may lag behind.
const HEALTH_CHANGE_BACKLOG: usize = 256;

/// A running gateway. Cheap to clone; clones are the same gateway.
#[derive(Clone, Debug)]
pub struct Gateway {
    pub(crate) shared: Arc<GatewayInner>,
}

#[derive(Debug)]
pub(crate) struct GatewayInner {
    pub(crate) settings: ArcSwap<Settings>,
    pub(crate) guard: LiveGuard,
    metrics: GatewayMetrics,
    pub(crate) tracer: Tracer,
    pub(crate) watch: InlineWatch,
    pub(crate) conversations: Conversations,
    pub(crate) clock: Clock,
    pub(crate) server_catalogs: ArcSwap<Vec<Arc<ServerCatalog>>>,
    pub(crate) directory: ArcSwap<ToolDirectory>,
    pub(crate) pending_inputs: PendingInputs,
    pub(crate) task_owners: TaskOwners,
    /// The bytes of requests in flight.
    pub(crate) in_flight: InFlightBytes,
    pub(crate) in_flight_requests: InFlightTable,
    /// Whether one agent uses one server, so that the gateway presents that agent to the server.
    pub(crate) alone: bool,
    shutdown: watch::Sender<bool>,
    /// Whether the time for calls in flight is over.
    abort_calls: watch::Sender<bool>,
    closed_sessions: broadcast::Sender<Arc<RequestLog>>,
    health_changes: broadcast::Sender<Arc<Upstream>>,
    /// Locked while the directory is rebuilt, so that the newest lists win.
    pub(crate) rebuild_lock: Mutex<()>,
    /// How often all agents were notified that tools changed.
    pub(crate) tool_list_notifications: AtomicU64,
}

/// What agents can request, and which server offers it.
#[derive(Debug, Default)]
pub(crate) struct ToolDirectory {
    pub(crate) tools: ShownNames,
    /// Tools that are withheld, by the name agents know, with the reason.
    pub(crate) withheld: BTreeMap<ExposedName, String>,
    /// Tools that servers define differently for some clients: by name and variant, why they are withheld.
    pub(crate) variants: BTreeMap<ExposedName, WithheldVariants>,
}

/// Why a tool is withheld from clients of a variant; `None` where it is served.
type WithheldVariants = BTreeMap<Arc<str>, Option<Arc<str>>>;

impl ToolDirectory {
    /// Why a tool is withheld from clients of a variant.
    pub(crate) fn withheld_from(&self, shown: &ExposedName, variant: Option<&str>) -> Option<&str> {
        let of_tool = variant.zip(self.variants.get(shown));
        match of_tool.and_then(|(variant, of_tool)| of_tool.get(variant)) {
            Some(why) => why.as_deref(),
            None => self.withheld.get(shown).map(String::as_str),
        }
    }
}

impl Gateway {
    pub(crate) fn assemble(
        settings: Settings,
        guard: LiveGuard,
        watch: InlineWatch,
        tracer: Tracer,
        alone: bool,
    ) -> Self {
        Self {
            shared: Arc::new(GatewayInner {
                settings: ArcSwap::from_pointee(settings),
                guard,
                watch,
                metrics: GatewayMetrics::new(),
                tracer,
                conversations: Conversations::default(),
                clock: Clock::default(),
                server_catalogs: ArcSwap::default(),
                directory: ArcSwap::default(),
                pending_inputs: PendingInputs::default(),
                task_owners: TaskOwners::default(),
                in_flight: InFlightBytes::default(),
                in_flight_requests: InFlightTable::default(),
                alone,
                shutdown: watch::Sender::new(false),
                abort_calls: watch::Sender::new(false),
                closed_sessions: broadcast::Sender::new(CLOSED_SESSION_BACKLOG),
                health_changes: broadcast::Sender::new(HEALTH_CHANGE_BACKLOG),
                rebuild_lock: Mutex::default(),
                tool_list_notifications: AtomicU64::new(0),
            }),
        }
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> Arc<Settings> {
        self.shared.settings.load_full()
    }

    /// The guard that decides every call.
    #[must_use]
    pub fn guard(&self) -> &LiveGuard {
        &self.shared.guard
    }

    /// The watch, which checks definitions and results.
    #[must_use]
    pub fn watch(&self) -> &InlineWatch {
        &self.shared.watch
    }

    /// The metrics.
    #[must_use]
    pub fn metrics(&self) -> &GatewayMetrics {
        &self.shared.metrics
    }

    /// The open conversations.
    #[must_use]
    pub fn conversations(&self) -> &Conversations {
        &self.shared.conversations
    }

    /// The servers behind the gateway, in the order of the settings.
    #[must_use]
    pub fn upstreams(&self) -> Vec<Arc<Upstream>> {
        let catalogs = self.shared.server_catalogs.load();
        catalogs.iter().map(|it| Arc::clone(&it.upstream)).collect()
    }

    /// Messages about names that are refused because two servers would share them.
    #[must_use]
    pub fn collisions(&self) -> Vec<String> {
        let directory = self.shared.directory.load();
        let collisions = directory.tools.collisions();
        collisions
            .map(|(name, servers)| collision_text(name, servers))
            .collect()
    }

    /// The name by which agents know a tool of a server.
    #[must_use]
    pub fn shown_name(&self, server: &ServerName, tool: &OwnName) -> Option<ExposedName> {
        let directory = self.shared.directory.load();
        directory.tools.shown_name(server, tool).cloned()
    }

    pub(crate) fn server_catalog(&self, server: &str) -> Option<Arc<ServerCatalog>> {
        let catalogs = self.shared.server_catalogs.load();
        let found = catalogs.iter().find(|it| it.upstream.name() == server);
        found.cloned()
    }

    /// The requests in flight on a link of a server.
    pub(crate) fn in_flight_on(
        &self,
        catalog: &ServerCatalog,
        key: &LinkKey,
    ) -> Arc<InFlightRequests> {
        let server = catalog.upstream.server_name();
        self.shared.in_flight_requests.on_link(server, key)
    }

    pub(crate) fn server_catalogs(&self) -> Arc<Vec<Arc<ServerCatalog>>> {
        self.shared.server_catalogs.load_full()
    }

    /// The only server, if it is served transparently: its names and descriptions unchanged.
    pub(crate) fn transparent_server(&self) -> Option<Arc<ServerCatalog>> {
        let settings = self.shared.settings.load();
        let catalogs = self.shared.server_catalogs.load();
        match catalogs.as_slice() {
            [only] if settings.prefix != toolwarden_settings::PrefixMode::Always => {
                Some(Arc::clone(only))
            }
            _ => None,
        }
    }

    /// Gives the guard the servers, with the rules for features that the policy does not name.
    pub(crate) fn set_server_rules(&self, catalogs: &[Arc<ServerCatalog>]) {
        let rules = catalogs.iter().filter_map(|catalog| {
            let upstream = &catalog.upstream;
            let settings = upstream.settings();
            let defaults = settings.tool_defaults.as_ref();
            let rules = match defaults.map(ToolPolicy::read_defaults) {
                None => ToolPolicy::discovered("", None, None, None, None),
                Some(Ok(defaults)) => defaults,
                // A server whose rules cannot be read offers nothing.
                Some(Err(_)) => return None,
            };
            Some((upstream.name().into(), Arc::new(rules)))
        });
        self.guard().set_servers(rules.collect());
    }

    /// Subscribes to the request logs of sessions that end from now on.
    #[must_use]
    pub fn subscribe_closed_sessions(&self) -> broadcast::Receiver<Arc<RequestLog>> {
        self.shared.closed_sessions.subscribe()
    }

    /// Subscribes to servers whose health changes from now on.
    #[must_use]
    pub fn subscribe_health(&self) -> broadcast::Receiver<Arc<Upstream>> {
        self.shared.health_changes.subscribe()
    }

    pub(crate) fn publish_health_change(&self, upstream: &Arc<Upstream>) {
        // There may be no subscriber.
        drop(self.shared.health_changes.send(Arc::clone(upstream)));
    }

    /// Resolves when the gateway begins to shut down.
    pub async fn wait_for_shutdown(&self) {
        let mut ending = self.shared.shutdown.subscribe();
        // `self` holds the sender, so waiting cannot fail.
        drop(ending.wait_for(|ending| *ending).await);
    }

    /// Begins to shut down: streams that would stay open end.
    pub fn end(&self) {
        self.shared.shutdown.send_replace(true);
    }

    /// Whether the gateway is shutting down.
    pub(crate) fn is_shutting_down(&self) -> bool {
        *self.shared.shutdown.borrow()
    }

    /// Resolves when the time for calls in flight is over.
    pub(crate) async fn wait_for_abort(&self) {
        let mut cut = self.shared.abort_calls.subscribe();
        // `self` holds the sender, so waiting cannot fail.
        drop(cut.wait_for(|cut| *cut).await);
    }

    /// Ends calls in flight: each is answered with an error and recorded as failed.
    pub(crate) fn abort_calls(&self) {
        self.shared.abort_calls.send_replace(true);
    }

    /// Whether a principal owns the session it uses. Records an attempt to use a session of another principal.
    pub(crate) fn check_owner(&self, principal: &str, owner: &str) -> bool {
        if principal != owner {
            self.shared.guard.record_foreign_session(principal, owner);
        }
        principal == owner
    }

    /// The time of the monotonic clock.
    pub(crate) fn now(&self) -> u64 {
        self.shared.clock.monotonic()
    }

    /// Marks a conversation as used now.
    pub(crate) fn keep_alive(&self, conversation: &Conversation) {
        conversation.touch(self.now());
    }

    pub(crate) fn close_conversation(&self, id: &str) -> Option<Arc<Conversation>> {
        let gone = self.shared.conversations.close(id)?;
        self.release_conversation(&gone);
        Some(gone)
    }

    /// Closes conversations that were idle for too long, and releases what servers hold for them.
    pub(crate) fn expire_conversations(&self) {
        let idle = self.settings().session_idle;
        for gone in self.shared.conversations.expire(self.now(), idle) {
            self.release_conversation(&gone);
        }
        for catalog in self.server_catalogs().iter() {
            catalog.retain_conversations(|id| self.shared.conversations.peek(id).is_some());
        }
        let is_open = |id: &str| self.shared.conversations.peek(id).is_some();
        self.shared.in_flight_requests.retain_conversations(is_open);
        self.shared.pending_inputs.expire(Instant::now());
    }

    /// Releases the resources of a conversation. A workflow session with a name of its own continues without it.
    fn release_conversation(&self, conversation: &Conversation) {
        if conversation.session.as_ref() == Some(&conversation.id) {
            let (principal, session) = (&conversation.principal, &conversation.id);
            if let Some(log) = self.shared.guard.close_session(principal, session) {
                // There may be no subscriber.
                drop(self.shared.closed_sessions.send(Arc::new(log)));
            }
        }
        for catalog in self.server_catalogs().iter() {
            catalog
                .upstream
                .close_conversation_link(&LinkKey::Conversation(Arc::clone(&conversation.id)));
            catalog.forget_conversation(&conversation.id);
            let key = LinkKey::Conversation(Arc::clone(&conversation.id));
            let server = catalog.upstream.server_name();
            self.shared.in_flight_requests.drop_link(server, &key);
        }
    }
}
