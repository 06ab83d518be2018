//! The lists of one server, checked, and when they have to be asked for again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use hashbrown::HashMap;
use serde_json::value::RawValue;
use toolwarden_guard::ToolPolicy;
use toolwarden_mcp::{Era, Members, ParamHeaders};
use toolwarden_model::Fingerprint;
use toolwarden_warden::inline::{Checked, InlineWatch, SeenList, Treatment};

use super::client_view::Looking;
use super::coalesce::Changes;
use super::kind::Kind;
use super::list::{Item, List, ListError};
use super::names::Named;
use super::waiting::Patience;
use crate::relay::Flights;
use crate::upstream::{LinkKey, Upstream};

/// The lists of one server.
#[derive(Debug)]
pub struct Shelf {
    /// The server.
    pub upstream: Arc<Upstream>,
    /// Raised whenever the server says that its tools changed; a list of an earlier number is stale.
    generation: AtomicU64,
    /// Raised whenever the gateway's own list offers something else: lists of variants were compared with
    /// the one before.
    own_revision: AtomicU64,
    pub(super) tools: Mutex<BTreeMap<Box<str>, Arc<ToolList>>>,
    pub(super) others: Mutex<BTreeMap<(Kind, Box<str>), Fetched>>,
    /// What is under way on each link.
    pub(super) flights: Mutex<BTreeMap<LinkKey, Arc<Flights>>>,
    /// Changes of lists that are being dealt with.
    pub(crate) changes: Changes,
    listening: AtomicBool,
    pub(super) patience: Patience,
    /// One look at a time: whoever comes meanwhile takes what it finds.
    looking: tokio::sync::Mutex<()>,
}

/// A list and when it was asked for.
pub(super) type Fetched = (Instant, Arc<List>);

/// The tools of a server as one face sees them.
#[derive(Debug)]
pub struct ToolList {
    /// The tools in the server's order.
    pub tools: Vec<Arc<ToolItem>>,
    /// Why nothing of the server is served.
    pub blocked: Option<String>,
    /// The variant of clients it is for; none is the gateway itself.
    pub variant: Option<Arc<str>>,
    /// Whether what the server tells models is served.
    instructions: bool,
    by_name: HashMap<Arc<str>, usize>,
    /// The size of the definitions.
    pub(super) bytes: usize,
    generation: u64,
    own_revision: u64,
    pub(super) fetched: Instant,
    ttl: Option<Duration>,
    /// Whether the guard decides by it already.
    in_force: AtomicBool,
}

/// What came of asking for tools.
#[derive(Debug)]
pub struct Look<'s> {
    /// The tools.
    pub list: Arc<ToolList>,
    /// What a new look found; none where what was known still holds.
    pub checked: Option<Arc<Checked>>,
    /// What was known before a new look.
    pub before: Option<Arc<ToolList>>,
    /// Whether that was seen by the same client, or by clients like it.
    pub is_known_sight: bool,
    /// Held so that nobody takes a new list before the guard decides by it.
    _one: Option<tokio::sync::MutexGuard<'s, ()>>,
}

impl ToolList {
    /// A tool by the server's own name.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&Arc<ToolItem>> {
        let at = *self.by_name.get(name)?;
        self.tools.get(at)
    }

    /// Whether the guard decides by it already. Until then no call may be routed by it: it would be
    /// decided by the tools of before.
    #[must_use]
    pub fn is_in_force(&self) -> bool {
        self.in_force.load(Ordering::Acquire)
    }

    /// Says that the guard decides by it.
    pub(crate) fn put_in_force(&self) {
        self.in_force.store(true, Ordering::Release);
    }

    /// Whether another list has the same tools with the same definitions, treated the same.
    pub(crate) fn offers_the_same(&self, other: &Self) -> bool {
        self.blocked == other.blocked
            && self.tools.len() == other.tools.len()
            && self.tools.iter().zip(&other.tools).all(|(a, b)| {
                let same =
                    || a.definition.get() == b.definition.get() && a.treatment == b.treatment;
                Arc::ptr_eq(a, b) || same()
            })
    }

    /// Why a call of a tool may not be sent by this list, though the guard permits it; a tool that is not
    /// in it is for its server to refuse.
    pub(crate) fn withholds(&self, named: &Named) -> Option<ListError> {
        let treatment = &self.tool(&named.name)?.treatment;
        let why = match (&self.blocked, treatment) {
            (Some(why), _)
            | (None, Treatment::Hide { why } | Treatment::Quarantine { why, .. }) => why,
            (None, Treatment::Serve) => return None,
        };
        Some(ListError::Unchecked {
            server: named.server.to_string(),
            reason: why.clone(),
        })
    }

    /// Whether another list was compared with the same list of the gateway's own.
    pub(crate) fn is_as_compared(&self, other: &Self) -> bool {
        self.variant.is_none() || self.own_revision == other.own_revision
    }

    /// How long ago it was asked for.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.fetched.elapsed()
    }
}

/// One tool of a server.
#[derive(Debug)]
pub struct ToolItem {
    /// What its server calls it.
    pub name: Arc<str>,
    /// The definition as received.
    pub definition: Box<RawValue>,
    /// The arguments that headers repeat.
    pub headers: Arc<ParamHeaders>,
    /// What becomes of it.
    pub treatment: Treatment,
    /// What the guard holds it to, once somebody asked.
    policy: OnceLock<(Arc<str>, Arc<ToolPolicy>)>,
}

impl ToolItem {
    fn new(item: Item, treatment: Treatment) -> Self {
        Self {
            headers: Arc::new(ParamHeaders::of(&item.text)),
            treatment,
            name: item.key,
            definition: item.text,
            policy: OnceLock::new(),
        }
    }

    /// What the guard holds the tool to under a name; made once for the name it keeps.
    pub(crate) fn policy(
        &self,
        shown: &Arc<str>,
        make: impl Fn(&RawValue) -> ToolPolicy,
    ) -> Arc<ToolPolicy> {
        let (name, policy) = self.policy.get_or_init(|| {
            let made = make(&self.definition);
            (Arc::clone(shown), Arc::new(made))
        });
        if name == shown {
            return Arc::clone(policy);
        }
        Arc::new(make(&self.definition))
    }
}

/// The sight of the gateway itself.
pub(super) const OWN: &str = "";

impl Shelf {
    /// No lists yet.
    #[must_use]
    pub fn new(upstream: Arc<Upstream>) -> Self {
        Self {
            upstream,
            generation: AtomicU64::new(0),
            own_revision: AtomicU64::new(0),
            tools: Mutex::default(),
            others: Mutex::default(),
            flights: Mutex::default(),
            changes: Changes::default(),
            listening: AtomicBool::new(false),
            patience: Patience::default(),
            looking: tokio::sync::Mutex::default(),
        }
    }

    /// What is under way on a link.
    pub(crate) fn flights(&self, key: &LinkKey) -> Arc<Flights> {
        let mut flights = lock(&self.flights);
        if let Some(known) = flights.get(key) {
            return Arc::clone(known);
        }
        let made = Arc::new(Flights::default());
        flights.insert(key.clone(), Arc::clone(&made));
        made
    }

    /// Forgets what was under way on a link that is gone.
    pub(crate) fn drop_flights(&self, key: &LinkKey) {
        lock(&self.flights).remove(key);
    }

    /// Says that somebody begins to listen for changes of lists; not so where somebody does already.
    pub(crate) fn begin_listening(&self) -> bool {
        !self.listening.swap(true, Ordering::AcqRel)
    }

    /// Says that nobody listens any more.
    pub(crate) fn end_listening(&self) {
        self.listening.store(false, Ordering::Release);
    }

    /// How long what is known holds.
    #[must_use]
    pub fn next_look(&self) -> Duration {
        let every = self.upstream.settings().watch.every;
        let ttl = self.last_tools(OWN).and_then(|list| list.ttl);
        ttl.map_or(every, |ttl| ttl.min(every))
    }

    /// Says that the server's tools are not what they were.
    pub fn tools_changed(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// The tools, looked at again where what is known is stale or older than allowed.
    ///
    /// # Errors
    /// There is no list, or it cannot be checked.
    pub async fn tools(
        &self,
        looking: &Looking,
        watch: &InlineWatch,
        oldest: Option<Duration>,
    ) -> Result<Look<'_>, ListError> {
        if let Some(known) = self.fresh(looking, oldest) {
            return Ok(Look::known(known));
        }
        let one = self.looking.lock().await;
        if let Some(known) = self.fresh(looking, oldest) {
            return Ok(Look::known(known));
        }
        // Read before asking: what changes meanwhile makes the answer stale.
        let generation = self.generation.load(Ordering::Acquire);
        let fetched = Instant::now();
        let stateless = looking.era == Era::Stateless;
        let fetch = List::fetch(
            &self.upstream,
            Kind::Tools,
            &looking.key,
            &looking.face,
            stateless,
        );
        let list = fetch.await.or_else(ListError::unless_unknown);
        let list = list.inspect_err(|error| self.note_malformed(error))?;
        let checked = self.check(looking, &list, watch).await?;
        let before = self.last_known(looking);
        let is_known_sight = self.tools_at(&looking.sight).is_some();
        let tools = list.items.into_iter().map(|item| {
            let treatment = checked.treatments.get(&*item.key).cloned();
            // What the check says nothing of is not let through.
            let treatment = treatment.unwrap_or_else(|| Treatment::Quarantine {
                why: "the check does not know it".to_owned(),
                alert: None,
            });
            let known = before.as_ref().and_then(|list| list.tool(&item.key));
            match known {
                Some(known)
                    if known.definition.get() == item.text.get()
                        && known.treatment == treatment =>
                {
                    Arc::clone(known)
                }
                _ => Arc::new(ToolItem::new(item, treatment)),
            }
        });
        let tools: Vec<Arc<ToolItem>> = tools.collect();
        let bytes = tools.iter().map(|it| it.definition.get().len()).sum();
        let places = tools.iter().enumerate();
        let by_name = places.map(|(at, tool)| (Arc::clone(&tool.name), at));
        let made = Arc::new(ToolList {
            by_name: by_name.collect(),
            tools,
            bytes,
            blocked: checked.block_server.clone(),
            variant: looking.variant.clone(),
            instructions: checked.instructions.is_served(),
            generation,
            own_revision: self.own_revision.load(Ordering::Acquire),
            fetched,
            ttl: list.ttl.filter(|ttl| !ttl.is_zero()),
            in_force: AtomicBool::new(false),
        });
        let is_own = *looking.sight == *OWN;
        if is_own && before.as_ref().is_none_or(|it| !it.offers_the_same(&made)) {
            self.own_revision.fetch_add(1, Ordering::AcqRel);
        }
        let mut known = lock(&self.tools);
        // Lists of before say nothing any more.
        known.retain(|sight, list| **sight == *OWN || list.generation >= generation);
        known.insert(looking.sight.clone(), Arc::clone(&made));
        self.bound_lists(&mut known, &looking.sight);
        drop(known);
        Ok(Look {
            list: made,
            checked: Some(checked),
            before,
            is_known_sight,
            _one: Some(one),
        })
    }

    async fn check(
        &self,
        looking: &Looking,
        list: &List,
        watch: &InlineWatch,
    ) -> Result<Arc<Checked>, ListError> {
        let instructions = self
            .upstream
            .description()
            .and_then(|it| it.instructions.clone());
        let Some(variant) = &looking.variant else {
            let tools = list.items.iter().map(|item| item.text.clone());
            let seen = SeenList {
                variant: None,
                whole: *looking.sight == *OWN,
                instructions,
                ..self.seen(tools.collect())
            };
            return self.checked(watch, seen).await;
        };
        let (mut treatments, own, blocked) = self.same_as_own(list);
        let others = list.items.iter().filter(|item| !own.contains(&item.key));
        let seen = SeenList {
            variant: Some(Arc::clone(variant)),
            whole: !matches!(looking.key, LinkKey::Of(_)),
            unchanged: own.iter().map(ToString::to_string).collect(),
            ..self.seen(others.map(|item| item.text.clone()).collect())
        };
        let checked = self.checked(watch, seen).await?;
        treatments.extend(checked.treatments.clone());
        Ok(Arc::new(Checked {
            treatments,
            block_server: blocked.or_else(|| checked.block_server.clone()),
            ..(*checked).clone()
        }))
    }

    /// What becomes of the tools of a variant that the gateway itself is offered in the same words, or that
    /// are withheld from it, and why nothing of the server is served. Names that come twice are not among them: the check refuses
    /// those.
    fn same_as_own(&self, list: &List) -> (Treatments, BTreeSet<Arc<str>>, Option<String>) {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for item in &list.items {
            *counts.entry(&item.key).or_default() += 1;
        }
        let mut treatments = BTreeMap::new();
        let mut names = BTreeSet::new();
        let own = lock(&self.tools).get(OWN).cloned();
        for item in &list.items {
            let known = own.as_ref().and_then(|own| own.tool(&item.key));
            // What is withheld is not pinned anew because another client is offered it in other words.
            let is_settled = |known: &ToolItem| {
                !known.treatment.is_served() || is_same_definition(&known.definition, &item.text)
            };
            if let Some(known) = known.filter(|known| is_settled(known))
                && counts.get(&*item.key) == Some(&1)
            {
                treatments.insert(item.key.to_string(), known.treatment.clone());
                names.insert(Arc::clone(&item.key));
            }
        }
        (treatments, names, own.and_then(|own| own.blocked.clone()))
    }

    pub(super) fn seen(&self, tools: Vec<Box<RawValue>>) -> SeenList {
        SeenList {
            server: self.upstream.name().to_owned(),
            variant: None,
            unchanged: Vec::new(),
            whole: true,
            tools,
            instructions: None,
            settings: Arc::new(self.upstream.settings().watch.clone()),
        }
    }

    pub(super) async fn checked(
        &self,
        watch: &InlineWatch,
        seen: SeenList,
    ) -> Result<Arc<Checked>, ListError> {
        let checked = watch.check(seen).await;
        checked.map_err(|error| ListError::Unchecked {
            server: self.upstream.name().to_owned(),
            reason: error.to_string(),
        })
    }

    /// The list of before that says best whether something is new: of the same sight, else of the same
    /// variant, else the gateway's own.
    fn last_known(&self, looking: &Looking) -> Option<Arc<ToolList>> {
        let known = lock(&self.tools);
        let same = known.get(&looking.sight);
        let alike = || known.values().find(|it| it.variant == looking.variant);
        same.or_else(alike).or_else(|| known.get(OWN)).cloned()
    }

    pub(super) fn forget_sight(&self, sight: &str) {
        lock(&self.tools).remove(sight);
        lock(&self.others).retain(|(_, it), _| **it != *sight);
    }

    /// What is known of the tools, however old: for names, and while the server is away. Lists of variants
    /// that were compared with another list of the gateway's own than the last are not among them.
    #[must_use]
    pub fn known_tools(&self) -> Vec<Arc<ToolList>> {
        let known = lock(&self.tools);
        let compared = known.values().filter(|list| self.is_compared(list));
        compared.cloned().collect()
    }

    fn is_compared(&self, list: &ToolList) -> bool {
        list.variant.is_none() || list.own_revision == self.own_revision.load(Ordering::Acquire)
    }

    /// What is known of the tools through one's eyes, however old.
    #[must_use]
    pub fn last_tools(&self, sight: &str) -> Option<Arc<ToolList>> {
        let known = lock(&self.tools);
        known.get(sight).or_else(|| known.get(OWN)).cloned()
    }

    /// Says that what was approved changed, so that the next look checks again.
    pub fn recheck(&self) {
        self.tools_changed();
        self.others_changed();
    }

    /// The tools as they are known, unless that is stale or older than allowed.
    pub(crate) fn fresh(
        &self,
        looking: &Looking,
        oldest: Option<Duration>,
    ) -> Option<Arc<ToolList>> {
        let known = lock(&self.tools).get(&looking.sight).cloned()?;
        let age = known.fetched.elapsed();
        let oldest = oldest.or(known.ttl);
        let fresh = known.is_in_force()
            && known.generation == self.generation.load(Ordering::Acquire)
            && self.is_compared(&known)
            && oldest.is_none_or(|oldest| age <= oldest);
        fresh.then_some(known)
    }

    pub(super) fn tools_at(&self, sight: &str) -> Option<Arc<ToolList>> {
        lock(&self.tools).get(sight).cloned()
    }

    /// Whether the server says that it has things of a kind; unknown counts as yes.
    #[must_use]
    pub fn has(&self, kind: Kind) -> bool {
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
            let capabilities = Members::of_optional(Some(&*capabilities));
            let extensions = capabilities.object("extensions");
            extensions.is_some_and(|it| it.get(extension).is_some())
        })
    }

    /// Whether the server says that it has a capability; unknown counts as yes.
    #[must_use]
    pub fn has_capability(&self, capability: &str) -> bool {
        let Some(description) = self.upstream.description() else {
            return true;
        };
        let said = Members::of_optional(description.capabilities.as_deref());
        said.get(capability).is_some()
    }

    /// Whether nothing of the server is served.
    #[must_use]
    pub fn is_blocked(&self) -> bool {
        let known = lock(&self.tools);
        let mut own = known.values().filter(|list| list.variant.is_none());
        own.any(|list| list.blocked.is_some())
    }

    /// Whether what the server tells models is as pinned.
    #[must_use]
    pub fn tells_instructions(&self) -> bool {
        let known = lock(&self.tools);
        known
            .get(OWN)
            .is_some_and(|list| list.instructions && list.blocked.is_none())
    }
}

impl Look<'_> {
    const fn known(list: Arc<ToolList>) -> Self {
        Self {
            list,
            checked: None,
            before: None,
            is_known_sight: true,
            _one: None,
        }
    }
}

/// What becomes of tools, by name.
type Treatments = BTreeMap<String, Treatment>;

/// Whether two definitions say the same, however they are written.
fn is_same_definition(one: &RawValue, other: &RawValue) -> bool {
    if one.get() == other.get() {
        return true;
    }
    let parsed = |text: &RawValue| toolwarden_model::json::parse(text.get()).ok();
    let (Some(one), Some(other)) = (parsed(one), parsed(other)) else {
        return false;
    };
    // A member that is written twice may be read in two ways.
    let is_clear = one.duplicates.is_empty() && other.duplicates.is_empty();
    is_clear && Fingerprint::of(&one.value) == Fingerprint::of(&other.value)
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind these locks is changed in one step, so what a panic leaves behind is whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
