//! The checked lists of one server, and when they must be fetched again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use hashbrown::HashMap;
use serde_json::value::RawValue;
use toolwarden_guard::ToolPolicy;
use toolwarden_mcp::{Era, ParamHeaders, RawObject};
use toolwarden_model::{ExposedName, Fingerprint, OwnName};
use toolwarden_watch::inline::{InlineWatch, ListCheck, ReceivedList, ToolAction};

use super::list_changes::PendingListChanges;
use super::list_kind::ListKind;
use super::list_timeout::Responsiveness;
use super::server_list::{ListError, ListItem, ServerList};
use super::server_view::ServerView;
use super::tool_names::OriginalName;
use crate::upstream::{LinkKey, Upstream};

/// The checked lists of one server: tools, prompts, resources, skills.
#[derive(Debug)]
pub struct ServerCatalog {
    /// The server.
    pub upstream: Arc<Upstream>,
    /// Incremented whenever the server reports that its tools changed; a list with an earlier number is stale.
    generation: AtomicU64,
    /// Incremented whenever the gateway's own list changes: lists of variants were compared with the previous
    /// one.
    own_revision: AtomicU64,
    pub(super) tools: Mutex<BTreeMap<Box<str>, Arc<ServerToolList>>>,
    pub(super) feature_lists: Mutex<BTreeMap<(ListKind, Box<str>), CachedList>>,
    /// List changes that are being handled.
    pub(crate) changes: PendingListChanges,
    is_listening: AtomicBool,
    pub(super) responsiveness: Responsiveness,
    /// Allows one fetch at a time: requests that arrive meanwhile use its result.
    refresh_lock: tokio::sync::Mutex<()>,
}

/// A list and when it was fetched.
pub(super) type CachedList = (Instant, Arc<ServerList>);

/// The tools of a server as one client sees them.
#[derive(Debug)]
pub struct ServerToolList {
    /// The tools in the server's order.
    pub tools: Vec<Arc<ToolItem>>,
    /// Why nothing of the server is served.
    pub blocked: Option<String>,
    /// The variant of clients it is for; `None` is the gateway itself.
    pub variant: Option<Arc<str>>,
    /// Whether the server's instructions are served.
    instructions: bool,
    by_name: HashMap<OwnName, usize>,
    /// The total size of the definitions.
    pub(super) bytes: usize,
    generation: u64,
    own_revision: u64,
    pub(super) fetched: Instant,
    ttl: Option<Duration>,
    /// Whether the guard already uses it.
    is_active: AtomicBool,
}

/// The result of a request for tools.
#[derive(Debug)]
pub struct ToolLookup<'s> {
    /// The tools.
    pub list: Arc<ServerToolList>,
    /// What a new fetch found; `None` if the known list is still valid.
    pub checked: Option<Arc<ListCheck>>,
    /// The list that was known before a new fetch.
    pub before: Option<Arc<ServerToolList>>,
    /// Whether the same client, or one like it, saw that list.
    pub is_known_scope: bool,
    /// Held so that no request uses a new list before the guard does.
    _refresh_guard: Option<tokio::sync::MutexGuard<'s, ()>>,
}

impl ServerToolList {
    /// A tool by the server's own name.
    #[must_use]
    pub fn tool(&self, name: &OwnName) -> Option<&Arc<ToolItem>> {
        let at = *self.by_name.get(name)?;
        self.tools.get(at)
    }

    /// Whether the guard already uses it. Until then no call may be routed by it: the guard would decide by the
    /// previous tools.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.is_active.load(Ordering::Acquire)
    }

    /// Marks it as used by the guard.
    pub(crate) fn activate(&self) {
        self.is_active.store(true, Ordering::Release);
    }

    /// Whether another list has the same tools with the same definitions and treatments.
    pub(crate) fn has_same_tools(&self, other: &Self) -> bool {
        self.blocked == other.blocked
            && self.tools.len() == other.tools.len()
            && self.tools.iter().zip(&other.tools).all(|(a, b)| {
                let same =
                    || a.definition.get() == b.definition.get() && a.tool_action == b.tool_action;
                Arc::ptr_eq(a, b) || same()
            })
    }

    /// Why this list forbids a call of a tool although the guard permits it; a tool that is not in it is left to its
    /// server to refuse.
    pub(crate) fn withheld_reason(&self, named: &OriginalName) -> Option<ListError> {
        let tool_action = &self.tool(&named.name)?.tool_action;
        let why = match (&self.blocked, tool_action) {
            (Some(why), _)
            | (None, ToolAction::Hide { why } | ToolAction::Quarantine { why, .. }) => why,
            (None, ToolAction::Serve) => return None,
        };
        Some(ListError::CheckFailed {
            server: named.server.to_string(),
            reason: why.clone(),
        })
    }

    /// Whether another list was compared with the same revision of the gateway's own list.
    pub(crate) fn has_same_own_revision(&self, other: &Self) -> bool {
        self.variant.is_none() || self.own_revision == other.own_revision
    }

    /// The time since it was fetched.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.fetched.elapsed()
    }
}

/// One tool of a server.
#[derive(Debug)]
pub struct ToolItem {
    /// The server's own name for it.
    pub name: OwnName,
    /// The definition as received.
    pub definition: Box<RawValue>,
    /// The arguments that must be repeated in headers.
    pub headers: Arc<ParamHeaders>,
    /// How the watch treats it.
    pub tool_action: ToolAction,
    /// The policy that the guard enforces for it, built on first use.
    policy: OnceLock<(ExposedName, Arc<ToolPolicy>)>,
}

impl ToolItem {
    fn new(item: ListItem, tool_action: ToolAction) -> Self {
        Self {
            headers: Arc::new(ParamHeaders::from_definition(&item.text)),
            tool_action,
            name: OwnName::new(item.key),
            definition: item.text,
            policy: OnceLock::new(),
        }
    }

    /// The policy that the guard enforces for the tool under a name; built once for the name it keeps.
    pub(crate) fn policy(
        &self,
        shown: &ExposedName,
        make: impl Fn(&RawValue) -> ToolPolicy,
    ) -> Arc<ToolPolicy> {
        let (name, policy) = self.policy.get_or_init(|| {
            let made = make(&self.definition);
            (shown.clone(), Arc::new(made))
        });
        if name == shown {
            return Arc::clone(policy);
        }
        Arc::new(make(&self.definition))
    }
}

/// The view of the gateway itself.
pub(super) const GATEWAY_SCOPE: &str = "";

impl ServerCatalog {
    /// No lists yet.
    #[must_use]
    pub fn new(upstream: Arc<Upstream>) -> Self {
        Self {
            upstream,
            generation: AtomicU64::new(0),
            own_revision: AtomicU64::new(0),
            tools: Mutex::default(),
            feature_lists: Mutex::default(),
            changes: PendingListChanges::default(),
            is_listening: AtomicBool::new(false),
            responsiveness: Responsiveness::default(),
            refresh_lock: tokio::sync::Mutex::default(),
        }
    }

    /// Marks that a task listens for list changes; returns false if one already does.
    pub(crate) fn begin_listening(&self) -> bool {
        !self.is_listening.swap(true, Ordering::AcqRel)
    }

    /// Marks that no task listens any more.
    pub(crate) fn end_listening(&self) {
        self.is_listening.store(false, Ordering::Release);
    }

    /// How long the known list is valid.
    #[must_use]
    pub fn time_to_refresh(&self) -> Duration {
        let every = self.upstream.settings().watch.check_interval;
        let ttl = self.last_tools(GATEWAY_SCOPE).and_then(|list| list.ttl);
        ttl.map_or(every, |ttl| ttl.min(every))
    }

    /// Marks the server's tools as changed.
    pub fn mark_tools_stale(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// The tools, fetched again if the known list is stale or older than allowed.
    ///
    /// # Errors
    /// There is no list, or it cannot be checked.
    pub async fn tools(
        &self,
        view: &ServerView,
        watch: &InlineWatch,
        oldest: Option<Duration>,
    ) -> Result<ToolLookup<'_>, ListError> {
        if let Some(known) = self.fresh_tools(view, oldest) {
            return Ok(ToolLookup::from_cache(known));
        }
        let one = self.refresh_lock.lock().await;
        if let Some(known) = self.fresh_tools(view, oldest) {
            return Ok(ToolLookup::from_cache(known));
        }
        // Read before the fetch: a change during the fetch makes the answer stale.
        let generation = self.generation.load(Ordering::Acquire);
        let fetched = Instant::now();
        let stateless = view.era == Era::Stateless;
        let fetch = ServerList::fetch(
            &self.upstream,
            ListKind::Tools,
            &view.key,
            &view.client_info,
            stateless,
        );
        let list = fetch.await.or_else(ListError::empty_if_unsupported);
        let list = list.inspect_err(|error| self.report_malformed(error))?;
        let checked = self.check_list(view, &list, watch).await?;
        let before = self.last_known(view);
        let is_known_sight = self.cached_tools(&view.scope).is_some();
        let tools = list.items.into_iter().map(|item| {
            let tool_action = checked.tool_actions.get(&*item.key).cloned();
            // A tool that the check does not mention is not served.
            let tool_action = tool_action.unwrap_or_else(|| ToolAction::Quarantine {
                why: "the check returned nothing about it".to_owned(),
                alert: None,
            });
            let known = before
                .as_ref()
                .and_then(|list| list.tool(&OwnName::new(Arc::clone(&item.key))));
            match known {
                Some(known)
                    if known.definition.get() == item.text.get()
                        && known.tool_action == tool_action =>
                {
                    Arc::clone(known)
                }
                _ => Arc::new(ToolItem::new(item, tool_action)),
            }
        });
        let tools: Vec<Arc<ToolItem>> = tools.collect();
        let bytes = tools.iter().map(|it| it.definition.get().len()).sum();
        let places = tools.iter().enumerate();
        let by_name = places.map(|(at, tool)| (tool.name.clone(), at));
        let made = Arc::new(ServerToolList {
            by_name: by_name.collect(),
            tools,
            bytes,
            blocked: checked.block_server.clone(),
            variant: view.variant.clone(),
            instructions: checked.instructions.is_served(),
            generation,
            own_revision: self.own_revision.load(Ordering::Acquire),
            fetched,
            ttl: list.ttl.filter(|ttl| !ttl.is_zero()),
            is_active: AtomicBool::new(false),
        });
        let is_own = *view.scope == *GATEWAY_SCOPE;
        if is_own && before.as_ref().is_none_or(|it| !it.has_same_tools(&made)) {
            self.own_revision.fetch_add(1, Ordering::AcqRel);
        }
        let mut known = lock(&self.tools);
        // Earlier lists are no longer valid.
        known.retain(|sight, list| **sight == *GATEWAY_SCOPE || list.generation >= generation);
        known.insert(view.scope.clone(), Arc::clone(&made));
        self.evict_tool_lists(&mut known, &view.scope);
        drop(known);
        Ok(ToolLookup {
            list: made,
            checked: Some(checked),
            before,
            is_known_scope: is_known_sight,
            _refresh_guard: Some(one),
        })
    }

    async fn check_list(
        &self,
        view: &ServerView,
        list: &ServerList,
        watch: &InlineWatch,
    ) -> Result<Arc<ListCheck>, ListError> {
        let instructions = self
            .upstream
            .description()
            .and_then(|it| it.instructions.clone());
        let Some(variant) = &view.variant else {
            let tools = list.items.iter().map(|item| item.text.clone());
            let seen = ReceivedList {
                variant: None,
                is_complete: *view.scope == *GATEWAY_SCOPE,
                instructions,
                ..self.observed_list(tools.collect())
            };
            return self.run_check(watch, seen).await;
        };
        let (mut tool_actions, own, blocked) = self.shared_tool_actions(list);
        let others = list.items.iter().filter(|item| !own.contains(&item.key));
        let seen = ReceivedList {
            variant: Some(Arc::clone(variant)),
            is_complete: !matches!(view.key, LinkKey::Conversation(_)),
            unchanged: own.iter().map(ToString::to_string).collect(),
            ..self.observed_list(others.map(|item| item.text.clone()).collect())
        };
        let checked = self.run_check(watch, seen).await?;
        tool_actions.extend(checked.tool_actions.clone());
        Ok(Arc::new(ListCheck {
            tool_actions,
            block_server: blocked.or_else(|| checked.block_server.clone()),
            ..(*checked).clone()
        }))
    }

    /// The treatments of a variant's tools that the gateway itself is offered with the same definition, or that are
    /// withheld from it, and why nothing of the server is served. Duplicate names are not among them: the check
    /// refuses those.
    fn shared_tool_actions(
        &self,
        list: &ServerList,
    ) -> (ToolActions, BTreeSet<Arc<str>>, Option<String>) {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for item in &list.items {
            *counts.entry(&item.key).or_default() += 1;
        }
        let mut tool_actions = BTreeMap::new();
        let mut names = BTreeSet::new();
        let own = lock(&self.tools).get(GATEWAY_SCOPE).cloned();
        for item in &list.items {
            let known = own
                .as_ref()
                .and_then(|own| own.tool(&OwnName::new(Arc::clone(&item.key))));
            // A tool that is withheld is not pinned again because another client is offered a different definition.
            let is_settled = |known: &ToolItem| {
                !known.tool_action.is_served() || is_same_definition(&known.definition, &item.text)
            };
            if let Some(known) = known.filter(|known| is_settled(known))
                && counts.get(&*item.key) == Some(&1)
            {
                tool_actions.insert(item.key.to_string(), known.tool_action.clone());
                names.insert(Arc::clone(&item.key));
            }
        }
        (tool_actions, names, own.and_then(|own| own.blocked.clone()))
    }

    pub(super) fn observed_list(&self, tools: Vec<Box<RawValue>>) -> ReceivedList {
        ReceivedList {
            server: self.upstream.name().to_owned(),
            variant: None,
            unchanged: Vec::new(),
            is_complete: true,
            tools,
            instructions: None,
            settings: Arc::new(self.upstream.settings().watch.clone()),
        }
    }

    pub(super) async fn run_check(
        &self,
        watch: &InlineWatch,
        seen: ReceivedList,
    ) -> Result<Arc<ListCheck>, ListError> {
        let checked = watch.check(seen).await;
        checked.map_err(|error| ListError::CheckFailed {
            server: self.upstream.name().to_owned(),
            reason: error.to_string(),
        })
    }

    /// The earlier list that best shows whether something is new: of the same view, otherwise of the same variant,
    /// otherwise the gateway's own.
    fn last_known(&self, view: &ServerView) -> Option<Arc<ServerToolList>> {
        let known = lock(&self.tools);
        let same = known.get(&view.scope);
        let alike = || known.values().find(|it| it.variant == view.variant);
        same.or_else(alike)
            .or_else(|| known.get(GATEWAY_SCOPE))
            .cloned()
    }

    pub(super) fn forget_scope(&self, sight: &str) {
        lock(&self.tools).remove(sight);
        lock(&self.feature_lists).retain(|(_, it), _| **it != *sight);
    }

    /// The known lists, however old: for names, and while the server is down. Lists of variants that were compared
    /// with an earlier revision of the gateway's own list are left out.
    #[must_use]
    pub fn known_tools(&self) -> Vec<Arc<ServerToolList>> {
        let known = lock(&self.tools);
        let compared = known.values().filter(|list| self.is_current(list));
        compared.cloned().collect()
    }

    fn is_current(&self, list: &ServerToolList) -> bool {
        list.variant.is_none() || list.own_revision == self.own_revision.load(Ordering::Acquire)
    }

    /// The known tools of one view, however old.
    #[must_use]
    pub fn last_tools(&self, sight: &str) -> Option<Arc<ServerToolList>> {
        let known = lock(&self.tools);
        known
            .get(sight)
            .or_else(|| known.get(GATEWAY_SCOPE))
            .cloned()
    }

    /// Marks that approvals changed, so that the next fetch checks again.
    pub fn recheck(&self) {
        self.mark_tools_stale();
        self.expire_feature_lists();
    }

    /// The known tools, unless they are stale or older than allowed.
    pub(crate) fn fresh_tools(
        &self,
        view: &ServerView,
        oldest: Option<Duration>,
    ) -> Option<Arc<ServerToolList>> {
        let known = lock(&self.tools).get(&view.scope).cloned()?;
        let age = known.fetched.elapsed();
        let oldest = oldest.or(known.ttl);
        let fresh = known.is_active()
            && known.generation == self.generation.load(Ordering::Acquire)
            && self.is_current(&known)
            && oldest.is_none_or(|oldest| age <= oldest);
        fresh.then_some(known)
    }

    pub(super) fn cached_tools(&self, sight: &str) -> Option<Arc<ServerToolList>> {
        lock(&self.tools).get(sight).cloned()
    }

    /// Whether the server declares features of a kind; unknown counts as yes.
    #[must_use]
    pub fn has_kind(&self, kind: ListKind) -> bool {
        if kind.is_extension() {
            return self.declares(kind.capability());
        }
        self.has_capability(kind.capability())
    }

    /// Whether the server declares an extension, in either era; unknown counts as yes.
    #[must_use]
    pub fn declares(&self, extension: &str) -> bool {
        if self.upstream.description().is_none() {
            return true;
        }
        let eras = [Era::Stateless, Era::Handshake];
        let descriptions = eras
            .iter()
            .filter_map(|era| self.upstream.description_for(*era));
        let mut descriptions = descriptions.filter_map(|it| it.capabilities.clone());
        descriptions.any(|capabilities| {
            let capabilities = RawObject::parse_optional(Some(&*capabilities));
            let extensions = capabilities.object("extensions");
            extensions.is_some_and(|it| it.get(extension).is_some())
        })
    }

    /// Whether the server declares a capability; unknown counts as yes.
    #[must_use]
    pub fn has_capability(&self, capability: &str) -> bool {
        let Some(description) = self.upstream.description() else {
            return true;
        };
        let said = RawObject::parse_optional(description.capabilities.as_deref());
        said.get(capability).is_some()
    }

    /// Whether nothing of the server is served.
    #[must_use]
    pub fn is_blocked(&self) -> bool {
        let known = lock(&self.tools);
        let mut own = known.values().filter(|list| list.variant.is_none());
        own.any(|list| list.blocked.is_some())
    }

    /// Whether the server's instructions match their pin.
    #[must_use]
    pub fn serves_instructions(&self) -> bool {
        let known = lock(&self.tools);
        known
            .get(GATEWAY_SCOPE)
            .is_some_and(|list| list.instructions && list.blocked.is_none())
    }
}

impl ToolLookup<'_> {
    const fn from_cache(list: Arc<ServerToolList>) -> Self {
        Self {
            list,
            checked: None,
            before: None,
            is_known_scope: true,
            _refresh_guard: None,
        }
    }
}

/// Treatments of tools, by name.
type ToolActions = BTreeMap<String, ToolAction>;

/// Whether two definitions are equivalent, whatever their formatting.
fn is_same_definition(one: &RawValue, other: &RawValue) -> bool {
    if one.get() == other.get() {
        return true;
    }
    let parsed = |text: &RawValue| toolwarden_model::json::parse(text.get()).ok();
    let (Some(one), Some(other)) = (parsed(one), parsed(other)) else {
        return false;
    };
    // A duplicate member can be read in two ways.
    let is_clear = one.duplicates.is_empty() && other.duplicates.is_empty();
    is_clear && Fingerprint::of(&one.value) == Fingerprint::of(&other.value)
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The values behind these locks change in one step, so they are consistent after a panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
