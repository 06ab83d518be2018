//! The running gateway: its parts, its shared state and its background events.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{broadcast, watch};
use toolwarden_guard::{OutputMode, ToolPolicy, VariantTool};
use toolwarden_live_guard::{Clock, LiveGuard, RequestLog};
use toolwarden_mcp::RawObject;
use toolwarden_settings::Settings;
use toolwarden_watch::inline::{InlineWatch, ListCheck};

use crate::catalog::{
    KnownTools, ListError, ListKind, NamingRules, OriginalName, ServerCatalog, ServerToolList,
    ServerView, ShownNames, collision_text, malformed_name,
};
use crate::conversation::{Conversation, Conversations, TaskOwners};
use crate::metrics::GatewayMetrics;
use crate::request_bytes::InFlightBytes;
use crate::router::PendingInputs;
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
    /// Whether one agent uses one server, so that the gateway presents that agent to the server.
    pub(crate) alone: bool,
    shutdown: watch::Sender<bool>,
    /// Whether the time for calls in flight is over.
    abort_calls: watch::Sender<bool>,
    closed_sessions: broadcast::Sender<Arc<RequestLog>>,
    health_changes: broadcast::Sender<Arc<Upstream>>,
    /// Locked while the directory is rebuilt, so that the newest lists win.
    rebuild_lock: Mutex<()>,
    /// How often all agents were notified that tools changed.
    pub(crate) tool_list_notifications: AtomicU64,
}

/// What agents can request, and which server offers it.
#[derive(Debug, Default)]
pub(crate) struct ToolDirectory {
    pub(crate) tools: ShownNames,
    /// Tools that are withheld, by the name agents know, with the reason.
    pub(crate) withheld: BTreeMap<String, String>,
    /// Tools that servers define differently for some clients: by name and variant, why they are withheld.
    pub(crate) variants: BTreeMap<Arc<str>, WithheldVariants>,
}

/// Why a tool is withheld from clients of a variant; `None` where it is served.
type WithheldVariants = BTreeMap<Arc<str>, Option<Arc<str>>>;

impl ToolDirectory {
    /// Why a tool is withheld from clients of a variant.
    pub(crate) fn withheld_from(&self, shown: &str, variant: Option<&str>) -> Option<&str> {
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
        let shelves = self.shared.server_catalogs.load();
        shelves.iter().map(|it| Arc::clone(&it.upstream)).collect()
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
    pub fn shown_name(&self, server: &str, tool: &str) -> Option<Arc<str>> {
        let directory = self.shared.directory.load();
        directory.tools.shown_name(server, tool).cloned()
    }

    pub(crate) fn server_catalog(&self, server: &str) -> Option<Arc<ServerCatalog>> {
        let shelves = self.shared.server_catalogs.load();
        let found = shelves.iter().find(|it| it.upstream.name() == server);
        found.cloned()
    }

    pub(crate) fn server_catalogs(&self) -> Arc<Vec<Arc<ServerCatalog>>> {
        self.shared.server_catalogs.load_full()
    }

    /// The only server, if it is served transparently: its names and descriptions unchanged.
    pub(crate) fn transparent_server(&self) -> Option<Arc<ServerCatalog>> {
        let settings = self.shared.settings.load();
        let shelves = self.shared.server_catalogs.load();
        match shelves.as_slice() {
            [only] if settings.prefix != toolwarden_settings::PrefixMode::Always => {
                Some(Arc::clone(only))
            }
            _ => None,
        }
    }

    /// The checked tools of a server as a given client sees them. If they changed, rebuilds the names and
    /// notifies agents.
    pub(crate) async fn checked_tools(
        &self,
        shelf: &Arc<ServerCatalog>,
        looking: &ServerView,
        oldest: Option<Duration>,
    ) -> Result<Arc<ServerToolList>, ListError> {
        if let Some(known) = shelf.fresh_tools(looking, oldest) {
            return Ok(known);
        }
        if looking.variant.is_some() {
            // The list of a variant is compared with the list that the server offers the gateway itself.
            Box::pin(self.refresh_tools(shelf, oldest)).await?;
        }
        // Listing is rare compared with calls; boxing keeps the future of a call small.
        let look = Box::pin(shelf.tools(looking, &self.shared.watch, oldest)).await?;
        let list = Arc::clone(&look.list);
        if let Some(checked) = &look.checked {
            self.record_check(shelf, checked);
            let before = look.before.as_ref().filter(|before| before.is_active());
            let offers_the_same = before.is_some_and(|before| before.has_same_tools(&list));
            if !offers_the_same || before.is_some_and(|it| !list.has_same_own_revision(it)) {
                let gateway = self.clone();
                // Compiling ten thousand schemas takes a while.
                let rebuilt =
                    tokio::task::spawn_blocking(move || gateway.rebuild_directory()).await;
                rebuilt.map_err(|error| ListError::CheckFailed {
                    server: shelf.upstream.name().to_owned(),
                    reason: error.to_string(),
                })?;
                // The first list of a variant or session does not concern agents of other variants or sessions.
                if !offers_the_same && (looking.variant.is_none() || look.is_known_scope) {
                    self.notify_all_list_changed(ListKind::Tools);
                }
            }
            list.activate();
        }
        Ok(list)
    }

    /// Lists the tools of a server as the gateway itself sees them.
    pub(crate) async fn refresh_tools(
        &self,
        shelf: &Arc<ServerCatalog>,
        oldest: Option<Duration>,
    ) -> Result<Arc<ServerToolList>, ListError> {
        let looking = shelf.gateway_view().await?;
        self.checked_tools(shelf, &looking, oldest).await
    }

    fn record_check(&self, shelf: &ServerCatalog, checked: &ListCheck) {
        self.count_check(shelf.upstream.name(), checked);
    }

    /// Rebuilds the names and the guard's tools from the known lists of all servers.
    pub(crate) fn rebuild_directory(&self) {
        let held = self.shared.rebuild_lock.lock();
        let _one = held.unwrap_or_else(PoisonError::into_inner);
        let settings = self.settings();
        let shelves = self.server_catalogs();
        let known: Vec<(Arc<str>, KnownTools)> = shelves
            .iter()
            .map(|shelf| {
                (
                    shelf.upstream.name().into(),
                    KnownTools::from_catalog(shelf),
                )
            })
            .collect();
        let naming = NamingRules {
            mode: settings.prefix,
            separator: settings.separator.clone(),
        };
        let names = naming.assign(
            known
                .iter()
                .map(|(server, tools)| (server, tools.offered_names())),
        );
        let mut directory = ToolDirectory::default();
        let mut tools = Vec::new();
        let mut variants = Vec::new();
        let mut identities = BTreeMap::new();
        let servers: Vec<Arc<str>> = known.iter().map(|(server, _)| Arc::clone(server)).collect();
        for (shelf, (server, known)) in shelves.iter().zip(&known) {
            let settings = shelf.upstream.settings();
            let defaults = settings
                .tool_defaults
                .as_ref()
                .map(ToolPolicy::read_defaults);
            let output = settings.watch.output;
            let unread = matches!(&defaults, Some(Err(_))).then(|| UNREADABLE_DEFAULTS.to_owned());
            let defaults = defaults.as_ref().and_then(|read| read.as_ref().ok());
            for (name, of_name) in &known.0 {
                let Some(shown) = names.shown_name(server, name) else {
                    continue;
                };
                let make = |text: &RawValue| tool_policy(text, shown, defaults, output);
                let named = OriginalName {
                    server: Arc::clone(server),
                    name: Arc::clone(name),
                };
                let identity = naming.identity(&named, &names, &servers);
                let conflict = self.shared.guard.rule_conflict(&identity);
                let for_all = unread.clone().or(conflict).or_else(|| malformed_name(name));
                identities.insert(Arc::clone(shown), identity);
                let why = of_name.withheld_from_others().or_else(|| for_all.clone());
                if let Some(why) = why {
                    directory.withheld.insert(shown.to_string(), why);
                }
                tools.extend(of_name.any().map(|known| known.item.policy(shown, make)));
                for (variant, known) in &of_name.variants {
                    let why = known.withheld_reason().or_else(|| for_all.clone());
                    let why: Option<Arc<str>> = why.map(Into::into);
                    variants.push(VariantTool {
                        variant: Arc::clone(variant),
                        policy: known.item.policy(shown, make),
                        quarantine: why.clone(),
                    });
                    let of_tool = directory.variants.entry(Arc::clone(shown)).or_default();
                    of_tool.insert(Arc::clone(variant), why);
                }
            }
        }
        let withheld = directory.withheld.clone();
        let faults = self
            .guard()
            .discover_served(tools, withheld, variants, identities);
        self.shared.metrics.set_unusable_schemas(faults.len());
        directory.tools = names;
        self.shared.directory.store(Arc::new(directory));
    }

    /// Gives the guard the servers, with the rules for features that the policy does not name.
    pub(crate) fn set_server_rules(&self, shelves: &[Arc<ServerCatalog>]) {
        let rules = shelves.iter().filter_map(|shelf| {
            let upstream = &shelf.upstream;
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
        for shelf in self.server_catalogs().iter() {
            shelf.retain_conversations(|id| self.shared.conversations.peek(id).is_some());
        }
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
        for shelf in self.server_catalogs().iter() {
            shelf
                .upstream
                .close_conversation_link(&LinkKey::Conversation(Arc::clone(&conversation.id)));
            shelf.forget_conversation(&conversation.id);
            shelf.drop_in_flight(&LinkKey::Conversation(Arc::clone(&conversation.id)));
        }
    }
}

/// Why tools are withheld whose rules cannot be read: without its rules, a tool would be open to every caller.
const UNREADABLE_DEFAULTS: &str = "the `tool_defaults` of its server cannot be read";

/// The policy that the guard enforces for a tool, from its definition.
fn tool_policy(
    definition: &RawValue,
    shown: &str,
    defaults: Option<&ToolPolicy>,
    output_mode: OutputMode,
) -> ToolPolicy {
    let definition = RawObject::parse_optional(Some(definition));
    let member = |key: &str| serde_json::from_str::<Value>(definition.get(key)?).ok();
    let title = definition.text("title").map(Cow::into_owned);
    let (input, output) = (member("inputSchema"), member("outputSchema"));
    let policy = ToolPolicy::discovered(shown, title, input, output, None);
    let policy = match defaults {
        Some(defaults) => policy.with_defaults(defaults),
        None => policy,
    };
    // The output mode of the defaults takes precedence over that of the watch.
    if policy.output_mode == OutputMode::default() {
        return ToolPolicy {
            output_mode,
            ..policy
        };
    }
    policy
}
