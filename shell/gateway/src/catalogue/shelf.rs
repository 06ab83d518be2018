//! The lists of one server, checked, and when they have to be asked for again.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use hashbrown::HashMap;
use serde_json::value::RawValue;
use toolwarden_guard::ToolPolicy;
use toolwarden_mcp::{Era, Face, Members, ParamHeaders};
use toolwarden_warden::inline::{Checked, InlineWatch, SeenList, Treatment};
use toolwarden_warden::settings::SessionSharing;

use super::kind::Kind;
use super::list::{Item, List, ListError};
use crate::relay::Flights;
use crate::upstream::{LinkKey, Upstream};

/// The most lists of one server that are kept, one for each face.
const MOST_FACES: usize = 16;

/// The most other lists: of prompts, resources and templates.
const MOST_OTHERS: usize = 3 * MOST_FACES;

/// How long lists that are not watched are kept.
const UNWATCHED: Duration = Duration::from_secs(60);

/// The lists of one server.
#[derive(Debug)]
pub struct Shelf {
    /// The server.
    pub upstream: Arc<Upstream>,
    /// Raised whenever the server says that its tools changed; a list of an earlier number is stale.
    generation: AtomicU64,
    tools: Mutex<BTreeMap<Box<str>, Arc<ToolList>>>,
    others: Mutex<BTreeMap<(Kind, Box<str>), Fetched>>,
    /// What is under way on each link.
    flights: Mutex<BTreeMap<LinkKey, Arc<Flights>>>,
    listening: AtomicBool,
    /// One look at a time: whoever comes meanwhile takes what it finds.
    looking: tokio::sync::Mutex<()>,
}

/// A list and when it was asked for.
type Fetched = (Instant, Arc<List>);

/// The tools of a server as one face sees them.
#[derive(Debug)]
pub struct ToolList {
    /// The tools in the server's order.
    pub tools: Vec<Arc<ToolItem>>,
    /// Why nothing of the server is served.
    pub blocked: Option<String>,
    /// Whether what the server tells models is served.
    instructions: bool,
    by_name: HashMap<Arc<str>, usize>,
    generation: u64,
    fetched: Instant,
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

/// Through whose eyes a server is looked at.
#[derive(Clone, Debug)]
pub struct Looking {
    /// Over which connection.
    pub key: LinkKey,
    /// What the server is told of the client.
    pub face: Face,
    /// Names lists that are the same for all who look like this.
    pub sight: Box<str>,
    /// Whether what is seen is everything the server has.
    pub whole: bool,
    /// The era the server speaks.
    pub era: Era,
}

/// The sight of the gateway itself.
const OWN: &str = "";

impl Shelf {
    /// No lists yet.
    #[must_use]
    pub fn new(upstream: Arc<Upstream>) -> Self {
        Self {
            upstream,
            generation: AtomicU64::new(0),
            tools: Mutex::default(),
            others: Mutex::default(),
            flights: Mutex::default(),
            listening: AtomicBool::new(false),
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

    /// How the gateway itself looks at the server.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn own_sight(&self) -> Result<Looking, ListError> {
        let face = (*self.upstream.face()).clone();
        let era = self.era(&face).await?;
        Ok(Looking {
            key: LinkKey::Main,
            face,
            sight: OWN.into(),
            whole: true,
            era,
        })
    }

    /// How the server is looked at for a conversation.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn sight(&self, conversation: &Arc<str>, face: &Face) -> Result<Looking, ListError> {
        let own = (*self.upstream.face()).clone();
        let era = self.era(&own).await?;
        let shared = self.upstream.settings().sessions == SessionSharing::Shared;
        let capabilities = face.capabilities.get();
        let same = capabilities == own.capabilities.get();
        Ok(match era {
            Era::Stateless => Looking {
                key: LinkKey::Main,
                face: face.clone(),
                sight: if same {
                    OWN.into()
                } else {
                    capabilities.into()
                },
                whole: same,
                era,
            },
            Era::Handshake if shared => Looking {
                key: LinkKey::Main,
                face: own,
                sight: OWN.into(),
                whole: true,
                era,
            },
            Era::Handshake => Looking {
                key: LinkKey::Of(Arc::clone(conversation)),
                face: face.clone(),
                sight: if same {
                    OWN.into()
                } else {
                    capabilities.into()
                },
                whole: same,
                era,
            },
        })
    }

    async fn era(&self, own: &Face) -> Result<Era, ListError> {
        if let Some(description) = self.upstream.description() {
            return Ok(description.era);
        }
        let link = self.upstream.link(&LinkKey::Main, own).await?;
        Ok(link.server().era)
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

    /// Forgets other lists of a kind.
    pub fn forget(&self, kind: Kind) {
        lock(&self.others).retain(|(it, _), _| *it != kind);
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
        let list = fetch.await.or_else(ListError::unless_unknown)?;
        let checked = self.check(looking, &list, watch).await?;
        // Through whose eyes does not matter, as long as it says whether something is new.
        let before = self.last_tools(&looking.sight);
        let before = before.or_else(|| self.known_tools().pop());
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
        let places = tools.iter().enumerate();
        let by_name = places.map(|(at, tool)| (Arc::clone(&tool.name), at));
        let made = Arc::new(ToolList {
            by_name: by_name.collect(),
            tools,
            blocked: checked.block_server.clone(),
            instructions: checked.instructions.is_served(),
            generation,
            fetched,
            ttl: list.ttl.filter(|ttl| !ttl.is_zero()),
            in_force: AtomicBool::new(false),
        });
        let mut known = lock(&self.tools);
        // Lists of before say nothing any more.
        known.retain(|_, list| list.generation >= generation);
        if known.len() >= MOST_FACES && !known.contains_key(&looking.sight) {
            known.retain(|sight, _| **sight == *OWN);
        }
        known.insert(looking.sight.clone(), Arc::clone(&made));
        drop(known);
        Ok(Look {
            list: made,
            checked: Some(checked),
            before,
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
        let seen = SeenList {
            server: self.upstream.name().to_owned(),
            whole: looking.whole,
            tools: list.items.iter().map(|item| item.text.clone()).collect(),
            instructions,
            settings: Arc::new(self.upstream.settings().watch.clone()),
        };
        let checked = watch.check(seen).await;
        checked.map_err(|error| ListError::Unchecked {
            server: self.upstream.name().to_owned(),
            reason: error.to_string(),
        })
    }

    /// What is known of the tools, however old: for names, and while the server is away.
    #[must_use]
    pub fn known_tools(&self) -> Vec<Arc<ToolList>> {
        lock(&self.tools).values().cloned().collect()
    }

    /// What is known of the tools through one's eyes, however old.
    #[must_use]
    pub fn last_tools(&self, sight: &str) -> Option<Arc<ToolList>> {
        let known = lock(&self.tools);
        known.get(sight).or_else(|| known.get(OWN)).cloned()
    }

    /// Forgets how tools are to be treated, so that the next look checks again.
    pub fn recheck(&self) {
        self.tools_changed();
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
            && oldest.is_none_or(|oldest| age <= oldest);
        fresh.then_some(known)
    }

    /// Another list of the server.
    ///
    /// # Errors
    /// There is no list.
    pub async fn others(&self, kind: Kind, looking: &Looking) -> Result<Arc<List>, ListError> {
        if !self.has(kind) {
            return Ok(Arc::default());
        }
        let place = (kind, looking.sight.clone());
        if let Some((fetched, list)) = lock(&self.others).get(&place) {
            let ttl = list.ttl.unwrap_or(UNWATCHED).min(UNWATCHED);
            if fetched.elapsed() < ttl {
                return Ok(Arc::clone(list));
            }
        }
        let stateless = looking.era == Era::Stateless;
        let fetched = Instant::now();
        let fetch = List::fetch(&self.upstream, kind, &looking.key, &looking.face, stateless);
        // Servers that have resources need not have templates.
        let list = Arc::new(fetch.await.or_else(ListError::unless_unknown)?);
        let mut others = lock(&self.others);
        others.retain(|_, (fetched, _)| fetched.elapsed() < UNWATCHED);
        if others.len() < MOST_OTHERS || *place.1 == *OWN {
            others.insert(place, (fetched, Arc::clone(&list)));
        }
        drop(others);
        Ok(list)
    }

    /// Whether the server says that it has things of a kind; unknown counts as yes.
    #[must_use]
    pub fn has(&self, kind: Kind) -> bool {
        self.has_capability(kind.capability())
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
        known.values().any(|list| list.blocked.is_some())
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
            _one: None,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind these locks is changed in one step, so what a panic leaves behind is whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
