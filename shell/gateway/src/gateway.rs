//! The gateway: what it is made of, and what keeps going while it runs.

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
use toolwarden_mcp::Members;
use toolwarden_warden::guard::{Clock, LiveGuard, RequestLog};
use toolwarden_warden::inline::{Checked, InlineWatch};
use toolwarden_warden::settings::Settings;

use crate::catalogue::{
    Kind, KnownTools, ListError, Looking, Named, Names, Naming, Shelf, ToolList, collision,
    malformed,
};
use crate::conversation::{Conversation, Conversations, TaskOwners};
use crate::in_flight::InFlight;
use crate::metrics::GatewayMetrics;
use crate::relay::Parking;
use crate::traces::Tracer;
use crate::upstream::{LinkKey, Upstream};

/// How many request logs a listener may be behind.
const CLOSED: usize = 1024;
/// How many changes of health a listener may be behind.
const FARED: usize = 256;

/// A running gateway. Cheap to clone; clones are the same gateway.
#[derive(Clone, Debug)]
pub struct Gateway {
    pub(crate) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) settings: ArcSwap<Settings>,
    pub(crate) guard: LiveGuard,
    metrics: GatewayMetrics,
    pub(crate) tracer: Tracer,
    pub(crate) watch: InlineWatch,
    pub(crate) conversations: Conversations,
    pub(crate) clock: Clock,
    pub(crate) shelves: ArcSwap<Vec<Arc<Shelf>>>,
    pub(crate) directory: ArcSwap<Directory>,
    pub(crate) parking: Parking,
    pub(crate) task_owners: TaskOwners,
    /// The bytes of requests under way.
    pub(crate) in_flight: InFlight,
    /// Whether there is one agent for one server, which is told of that agent.
    pub(crate) alone: bool,
    ending: watch::Sender<bool>,
    /// Whether the time for calls in flight is over.
    cut: watch::Sender<bool>,
    closed: broadcast::Sender<Arc<RequestLog>>,
    fared: broadcast::Sender<Arc<Upstream>>,
    /// Held while the directory is made anew, so that the newest lists win.
    rebuilding: Mutex<()>,
    /// How often all agents were notified that tools changed.
    pub(crate) tools_told: AtomicU64,
}

/// What agents can ask for, and where it is.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    pub(crate) tools: Names,
    /// Tools that are withheld, by the name agents know, and why.
    pub(crate) withheld: BTreeMap<String, String>,
    /// Tools that servers define otherwise for some clients: by name and variant, why they are withheld.
    pub(crate) variants: BTreeMap<Arc<str>, WithheldVariants>,
}

/// Why a tool is withheld from clients of a variant; none where it is served.
type WithheldVariants = BTreeMap<Arc<str>, Option<Arc<str>>>;

impl Directory {
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
            shared: Arc::new(Shared {
                settings: ArcSwap::from_pointee(settings),
                guard,
                watch,
                metrics: GatewayMetrics::new(),
                tracer,
                conversations: Conversations::default(),
                clock: Clock::default(),
                shelves: ArcSwap::default(),
                directory: ArcSwap::default(),
                parking: Parking::default(),
                task_owners: TaskOwners::default(),
                in_flight: InFlight::default(),
                alone,
                ending: watch::Sender::new(false),
                cut: watch::Sender::new(false),
                closed: broadcast::Sender::new(CLOSED),
                fared: broadcast::Sender::new(FARED),
                rebuilding: Mutex::default(),
                tools_told: AtomicU64::new(0),
            }),
        }
    }

    /// What it was told.
    #[must_use]
    pub fn settings(&self) -> Arc<Settings> {
        self.shared.settings.load_full()
    }

    /// The guard that decides every call.
    #[must_use]
    pub fn guard(&self) -> &LiveGuard {
        &self.shared.guard
    }

    /// What watches definitions and results.
    #[must_use]
    pub fn watch(&self) -> &InlineWatch {
        &self.shared.watch
    }

    /// What is counted.
    #[must_use]
    pub fn metrics(&self) -> &GatewayMetrics {
        &self.shared.metrics
    }

    /// The conversations there are.
    #[must_use]
    pub fn conversations(&self) -> &Conversations {
        &self.shared.conversations
    }

    /// The servers behind it, in written order.
    #[must_use]
    pub fn upstreams(&self) -> Vec<Arc<Upstream>> {
        let shelves = self.shared.shelves.load();
        shelves.iter().map(|it| Arc::clone(&it.upstream)).collect()
    }

    /// Names that are refused because two servers would share them, told in words.
    #[must_use]
    pub fn collisions(&self) -> Vec<String> {
        let directory = self.shared.directory.load();
        let collisions = directory.tools.collisions();
        collisions
            .map(|(name, servers)| collision(name, servers))
            .collect()
    }

    /// What agents call a tool of a server.
    #[must_use]
    pub fn shown_name(&self, server: &str, tool: &str) -> Option<Arc<str>> {
        let directory = self.shared.directory.load();
        directory.tools.shown(server, tool).cloned()
    }

    pub(crate) fn shelf(&self, server: &str) -> Option<Arc<Shelf>> {
        let shelves = self.shared.shelves.load();
        let found = shelves.iter().find(|it| it.upstream.name() == server);
        found.cloned()
    }

    pub(crate) fn shelves(&self) -> Arc<Vec<Arc<Shelf>>> {
        self.shared.shelves.load_full()
    }

    /// Whether there is one server whose names stay as they are, so that it can be shown as it is.
    pub(crate) fn transparent(&self) -> Option<Arc<Shelf>> {
        let settings = self.shared.settings.load();
        let shelves = self.shared.shelves.load();
        match shelves.as_slice() {
            [only] if settings.prefix != toolwarden_warden::settings::PrefixMode::Always => {
                Some(Arc::clone(only))
            }
            _ => None,
        }
    }

    /// The tools of a server through somebody's eyes, checked. Where they changed, names are made anew
    /// and agents told.
    pub(crate) async fn tools_of(
        &self,
        shelf: &Arc<Shelf>,
        looking: &Looking,
        oldest: Option<Duration>,
    ) -> Result<Arc<ToolList>, ListError> {
        if let Some(known) = shelf.fresh(looking, oldest) {
            return Ok(known);
        }
        if looking.variant.is_some() {
            // What a variant is offered is compared with what the gateway itself is offered.
            Box::pin(self.look_at(shelf, oldest)).await?;
        }
        // Looking is rare beside calls; on the heap it does not make their future larger.
        let look = Box::pin(shelf.tools(looking, &self.shared.watch, oldest)).await?;
        let list = Arc::clone(&look.list);
        if let Some(checked) = &look.checked {
            self.note_check(shelf, checked);
            let before = look.before.as_ref().filter(|before| before.is_in_force());
            let offers_the_same = before.is_some_and(|before| before.offers_the_same(&list));
            if !offers_the_same || before.is_some_and(|it| !list.is_as_compared(it)) {
                let gateway = self.clone();
                // Making ready ten thousand schemas takes a while.
                let rebuilt = tokio::task::spawn_blocking(move || gateway.rebuild()).await;
                rebuilt.map_err(|error| ListError::Unchecked {
                    server: shelf.upstream.name().to_owned(),
                    reason: error.to_string(),
                })?;
                // The first list of a variant or session is no news to the agents of others.
                if !offers_the_same && (looking.variant.is_none() || look.is_known_sight) {
                    self.tell_all_list_changed(Kind::Tools);
                }
            }
            list.put_in_force();
        }
        Ok(list)
    }

    /// Looks at a server with the gateway's own eyes.
    pub(crate) async fn look_at(
        &self,
        shelf: &Arc<Shelf>,
        oldest: Option<Duration>,
    ) -> Result<Arc<ToolList>, ListError> {
        let looking = shelf.own_sight().await?;
        self.tools_of(shelf, &looking, oldest).await
    }

    fn note_check(&self, shelf: &Shelf, checked: &Checked) {
        self.count_checked(shelf.upstream.name(), checked);
    }

    /// Makes names and the guard's tools anew from what is known of all servers.
    pub(crate) fn rebuild(&self) {
        let held = self.shared.rebuilding.lock();
        let _one = held.unwrap_or_else(PoisonError::into_inner);
        let settings = self.settings();
        let shelves = self.shelves();
        let known: Vec<(Arc<str>, KnownTools)> = shelves
            .iter()
            .map(|shelf| (shelf.upstream.name().into(), KnownTools::of(shelf)))
            .collect();
        let naming = Naming {
            mode: settings.prefix,
            separator: settings.separator.clone(),
        };
        let names = naming.assign(
            known
                .iter()
                .map(|(server, tools)| (server, tools.offered())),
        );
        let mut directory = Directory::default();
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
            let unread = matches!(&defaults, Some(Err(_))).then(|| UNREAD_DEFAULTS.to_owned());
            let defaults = defaults.as_ref().and_then(|read| read.as_ref().ok());
            for (name, of_name) in &known.0 {
                let Some(shown) = names.shown(server, name) else {
                    continue;
                };
                let make = |text: &RawValue| policy(text, shown, defaults, output);
                let named = Named {
                    server: Arc::clone(server),
                    name: Arc::clone(name),
                };
                let identity = naming.identity(&named, &names, &servers);
                let conflict = self.shared.guard.rule_conflict(&identity);
                let for_all = unread.clone().or(conflict).or_else(|| malformed(name));
                identities.insert(Arc::clone(shown), identity);
                let why = of_name.withheld_from_others().or_else(|| for_all.clone());
                if let Some(why) = why {
                    directory.withheld.insert(shown.to_string(), why);
                }
                tools.extend(of_name.any().map(|known| known.item.policy(shown, make)));
                for (variant, known) in &of_name.variants {
                    let why = known.withheld().or_else(|| for_all.clone());
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
        self.shared.metrics.schemas_unusable(faults.len());
        directory.tools = names;
        self.shared.directory.store(Arc::new(directory));
    }

    /// Gives the guard the servers, with the rules for what they offer and the policy does not name.
    pub(crate) fn set_server_rules(&self, shelves: &[Arc<Shelf>]) {
        let rules = shelves.iter().filter_map(|shelf| {
            let upstream = &shelf.upstream;
            let settings = upstream.settings();
            let defaults = settings.tool_defaults.as_ref();
            let rules = match defaults.map(ToolPolicy::read_defaults) {
                None => ToolPolicy::discovered("", None, None, None, None),
                Some(Ok(defaults)) => defaults,
                // What has rules that cannot be read is not offered.
                Some(Err(_)) => return None,
            };
            Some((upstream.name().into(), Arc::new(rules)))
        });
        self.guard().set_servers(rules.collect());
    }

    /// The request log of every session that ends from now on.
    #[must_use]
    pub fn subscribe_closed(&self) -> broadcast::Receiver<Arc<RequestLog>> {
        self.shared.closed.subscribe()
    }

    /// Every server whose health is another from now on.
    #[must_use]
    pub fn subscribe_health(&self) -> broadcast::Receiver<Arc<Upstream>> {
        self.shared.fared.subscribe()
    }

    pub(crate) fn fares_otherwise(&self, upstream: &Arc<Upstream>) {
        // Nobody need be listening.
        drop(self.shared.fared.send(Arc::clone(upstream)));
    }

    /// Resolves when the gateway is about to end.
    pub async fn ending(&self) {
        let mut ending = self.shared.ending.subscribe();
        // The sender is here, so that waiting cannot fail.
        drop(ending.wait_for(|ending| *ending).await);
    }

    /// Says that the gateway is about to end: streams that would stay open end.
    pub fn end(&self) {
        self.shared.ending.send_replace(true);
    }

    /// Whether the gateway is about to end.
    pub(crate) fn is_ending(&self) -> bool {
        *self.shared.ending.borrow()
    }

    /// Resolves when the time for calls in flight is over.
    pub(crate) async fn cut_off(&self) {
        let mut cut = self.shared.cut.subscribe();
        // The sender is here, so that waiting cannot fail.
        drop(cut.wait_for(|cut| *cut).await);
    }

    /// Ends calls in flight: each is answered with an error and recorded as failed.
    pub(crate) fn cut_calls(&self) {
        self.shared.cut.send_replace(true);
    }

    /// Whether who comes with a session is its owner. That somebody else did is put down.
    pub(crate) fn is_of(&self, principal: &str, owner: &str) -> bool {
        if principal != owner {
            self.shared.guard.note_foreign_session(principal, owner);
        }
        principal == owner
    }

    /// What the monotonic clock says.
    pub(crate) fn now(&self) -> u64 {
        self.shared.clock.monotonic()
    }

    /// Says that a conversation is in use.
    pub(crate) fn keep_alive(&self, conversation: &Conversation) {
        conversation.touch(self.now());
    }

    pub(crate) fn close_conversation(&self, id: &str) -> Option<Arc<Conversation>> {
        let gone = self.shared.conversations.close(id)?;
        self.forget(&gone);
        Some(gone)
    }

    /// Lets go of what servers hold for conversations that nobody used for too long.
    pub(crate) fn expire_conversations(&self) {
        let idle = self.settings().session_idle;
        for gone in self.shared.conversations.expire(self.now(), idle) {
            self.forget(&gone);
        }
        for shelf in self.shelves().iter() {
            shelf.retain_sessions(|id| self.shared.conversations.peek(id).is_some());
        }
        self.shared.parking.expire(Instant::now());
    }

    /// Lets go of what a conversation held. A workflow that has a name of its own goes on without it.
    fn forget(&self, conversation: &Conversation) {
        if conversation.session.as_ref() == Some(&conversation.id) {
            let (principal, session) = (&conversation.principal, &conversation.id);
            if let Some(log) = self.shared.guard.close_session(principal, session) {
                // Nobody need be listening.
                drop(self.shared.closed.send(Arc::new(log)));
            }
        }
        for shelf in self.shelves().iter() {
            shelf
                .upstream
                .release(&LinkKey::Of(Arc::clone(&conversation.id)));
            shelf.forget_session(&conversation.id);
            shelf.drop_flights(&LinkKey::Of(Arc::clone(&conversation.id)));
        }
    }
}

/// Why tools are withheld whose rules cannot be read: to leave the rules away would open them.
const UNREAD_DEFAULTS: &str = "the `tool_defaults` of its server cannot be read";

/// What a definition asks the guard to hold a tool to.
fn policy(
    definition: &RawValue,
    shown: &str,
    defaults: Option<&ToolPolicy>,
    output_mode: OutputMode,
) -> ToolPolicy {
    let definition = Members::of_optional(Some(definition));
    let member = |key: &str| serde_json::from_str::<Value>(definition.get(key)?).ok();
    let title = definition.text("title").map(Cow::into_owned);
    let (input, output) = (member("inputSchema"), member("outputSchema"));
    let policy = ToolPolicy::discovered(shown, title, input, output, None);
    let policy = match defaults {
        Some(defaults) => policy.held_to(defaults),
        None => policy,
    };
    // What the defaults say of results counts before what the watch does.
    if policy.output_mode == OutputMode::default() {
        return ToolPolicy {
            output_mode,
            ..policy
        };
    }
    policy
}
