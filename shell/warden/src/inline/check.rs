//! Holds what a server lists to its pins.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::value::RawValue;

use tokio::sync::oneshot;
use toolwarden_drift::text::{Finding, scan};
use toolwarden_drift::{ChangeType, ToolDrift, shadowing};
use toolwarden_model::Fingerprint;
use toolwarden_store::{Approval, NewBaseline, Origin, PinsRevision, ServerKey, Store};

use super::desk::{Desk, Job, server_key, summarize};
use super::error::WatchError;
use super::list::{ReadList, tool_name};
use super::notice::Figure;
use super::seen::{Checked, SeenList, ToolFinding, Treatment};
use super::treat::{is_suspicious, treatments, withholds};
use crate::judge::{Judged, judge};
use crate::observation::INSTRUCTIONS;
use crate::pins::{Pin, Pins};
use crate::record::{Recorded, Recording, record};
use crate::settings::{OnDrift, Trust, WatchSettings};
use crate::{Observation, UNKNOWN_VERSION};

/// The most variants of one server with capabilities that the protocol does not know: what clients say of
/// themselves is theirs to choose.
const MOST_VARIANTS: usize = 64;
/// The most variants with capabilities that the protocol knows.
const MOST_COMMON_VARIANTS: usize = 1_024;
/// Those capabilities.
const COMMON: [&str; 15] = [
    "none",
    "roots",
    "roots.listChanged",
    "sampling",
    "sampling.context",
    "sampling.tools",
    "elicitation",
    "elicitation.form",
    "elicitation.url",
    "tasks",
    "tasks.list",
    "tasks.cancel",
    "tasks.requests",
    "tasks.requests.sampling.createMessage",
    "tasks.requests.elicitation.create",
];

/// Whether a variant has only capabilities that the protocol knows.
fn is_common(scope: &str) -> bool {
    let capabilities = scope.split_once(':').map_or("none", |(_, it)| it);
    capabilities.split(',').all(|it| COMMON.contains(&it))
}
/// The most variants that are remembered because they are offered what all are.
const MOST_PLAIN_VARIANTS: usize = 4_096;

/// How often a list is compared again because pins changed meanwhile.
const MOST_ATTEMPTS: u32 = 3;

/// Where the answer to a check goes.
pub(super) type Reply = oneshot::Sender<Result<Arc<Checked>, WatchError>>;

/// What a list was found to be, and what was kept of it.
#[derive(Debug)]
struct Held {
    read: ReadList,
    checked: Checked,
    recorded: Recorded,
}

/// A list that waits for its answer.
pub(super) struct PendingCheck {
    seen: SeenList,
    fingerprint: Fingerprint,
    reply: Reply,
    attempts: u32,
}

impl PendingCheck {
    fn answer(self, answer: Result<Arc<Checked>, WatchError>) {
        // The caller may have gone.
        let _unheard = self.reply.send(answer);
    }
}

/// What there is to do about a list.
enum Plan {
    /// Nothing: clients of this variant are offered what all are.
    Plain,
    /// It is held to its pins without a comparison.
    AtOnce,
    /// Definitions have to be compared.
    Compare,
}

impl Desk {
    /// Checks a list. One that needs no comparison is answered at once; another is compared by a thread
    /// of the pool, and answered when that is done.
    pub(super) fn check(&mut self, seen: SeenList, reply: Reply) {
        let pending = PendingCheck {
            fingerprint: seen.fingerprint(),
            seen,
            reply,
            attempts: 0,
        };
        if let Some(answer) = self.answer(&pending.seen, pending.fingerprint) {
            self.figures.count(Figure::Known);
            pending.answer(Ok(answer));
            return;
        }
        if let Err(error) = self.start(pending) {
            self.figures.count(Figure::Failure);
            let (pending, error) = *error;
            pending.answer(Err(error));
        }
    }

    /// Holds a list to its pins, here or on another thread.
    fn start(&mut self, pending: PendingCheck) -> Result<(), Box<(PendingCheck, WatchError)>> {
        let seen = &pending.seen;
        let failed = match self.prepare(seen) {
            Ok(Plan::Plain) => {
                let nothing = Held::new(
                    seen,
                    ReadList::new(false),
                    Judged::default(),
                    Recorded::default(),
                );
                self.conclude(pending, Ok(nothing));
                return Ok(());
            }
            Ok(Plan::AtOnce) => {
                let held = hold(&self.store, seen, &self.approval());
                self.conclude(pending, held);
                return Ok(());
            }
            Ok(Plan::Compare) => {
                let server = seen.server.clone();
                if self.comparisons.has_room(&server) {
                    return self.compare(&server, pending);
                }
                WatchError::Busy { server }
            }
            Err(error) => error,
        };
        Err(Box::new((pending, failed)))
    }

    fn compare(
        &self,
        server: &str,
        pending: PendingCheck,
    ) -> Result<(), Box<(PendingCheck, WatchError)>> {
        let (revision, approval, jobs) = (self.revision, self.approval(), self.jobs.clone());
        let comparison = Box::new(move |store: &Store| {
            let held = hold(store, &pending.seen, &approval);
            let Some(jobs) = jobs.upgrade() else {
                return;
            };
            let job: Job = Box::new(move |desk| desk.conclude_compared(pending, revision, held));
            // The watch may have ended.
            let _unheard = jobs.blocking_send(job);
        });
        // Room was made sure of, and only this thread adds to the queue.
        self.comparisons.submit(server, comparison);
        Ok(())
    }

    /// What there is to do about a list that is not known.
    fn prepare(&mut self, seen: &SeenList) -> Result<Plan, WatchError> {
        self.poll()?;
        let key = seen.key();
        if seen.variant.is_some() {
            if self.is_plain_variant(seen, &key)? {
                return Ok(Plan::Plain);
            }
            self.prepare_variant(seen, &key, &self.approval())?;
        }
        // Lists of one server are judged in the order they were seen.
        if self.comparisons.is_busy(&seen.server) {
            return Ok(Plan::Compare);
        }
        let pins = Pins::of_store(&self.store, &key)?;
        let is_pinned = |tool: &RawValue| pins.holds(tool.get()).is_some();
        // Tools that are seen for the first time are searched for findings, which takes time as well.
        if !seen.tools.iter().all(|tool| is_pinned(tool)) {
            return Ok(Plan::Compare);
        }
        Ok(Plan::AtOnce)
    }

    /// Answers a list that was compared, unless pins changed meanwhile: then it is compared again.
    fn conclude_compared(
        &mut self,
        mut pending: PendingCheck,
        revision: PinsRevision,
        held: Result<Held, WatchError>,
    ) {
        let is_current = self.poll().is_ok() && self.revision == revision;
        let registered = matches!(&held, Ok(held) if !held.recorded.registered.is_empty());
        if is_current || registered || pending.attempts >= MOST_ATTEMPTS {
            self.conclude(pending, held);
            return;
        }
        // What was raised stays raised; who waits for alerts hears of them now.
        if let Ok(held) = &held {
            self.tell(&pending.seen.key(), &held.checked.drift, &held.recorded);
        }
        pending.attempts += 1;
        if let Err(error) = self.start(pending) {
            let (pending, error) = *error;
            pending.answer(Err(error));
        }
    }

    fn conclude(&mut self, pending: PendingCheck, held: Result<Held, WatchError>) {
        let answer = held.and_then(|held| {
            let (seen, read, recorded) = (pending.seen, held.read, held.recorded);
            let checked = Arc::new(held.checked);
            self.figures.count(Figure::Judged);
            self.tell(&seen.key(), &checked.drift, &recorded);
            self.look_around(&seen.key(), &read, &recorded.registered);
            let key = seen.key();
            self.remember(seen, pending.fingerprint, &read, &checked);
            // What was pinned just now is news to others, and this answer is not given again: the next one
            // is of the new pins.
            self.pinned()?;
            if !checked.registered.is_empty() {
                self.forget_answers(&key);
            }
            Ok(checked)
        });
        // The caller may have gone.
        let _unheard = pending.reply.send(answer);
    }

    /// Whether a variant of clients is offered just what the gateway is. Nothing is kept of such a variant
    /// but that it was seen: what it is offered later besides is new.
    fn is_plain_variant(&mut self, seen: &SeenList, key: &ServerKey) -> Result<bool, WatchError> {
        if self.store.server(key)?.is_some() {
            return Ok(false);
        }
        if seen.tools.is_empty() {
            if self.plain_variants.len() >= MOST_PLAIN_VARIANTS {
                self.plain_variants.clear();
            }
            self.plain_variants.insert(key.clone());
            return Ok(true);
        }
        if self.plain_variants.remove(key) {
            self.store.keep_server(key, true, self.approval().at)?;
        }
        Ok(false)
    }

    /// Gives a variant the pins of the gateway's own list for tools that it has none for: a tool that is
    /// pinned already is compared with that pin, not pinned anew because a client with other
    /// capabilities came.
    fn prepare_variant(
        &self,
        seen: &SeenList,
        key: &ServerKey,
        approval: &Approval,
    ) -> Result<(), WatchError> {
        let names: Vec<String> = seen.tools.iter().filter_map(|it| tool_name(it)).collect();
        let names = || names.iter().map(String::as_str);
        let own = Pins::of_tools(&self.store, key, names())?;
        if !own.known {
            // Clients with made-up capabilities do not take the place of those with capabilities that the
            // protocol knows.
            let is_common = is_common(&key.scope);
            let most = match is_common {
                true => MOST_COMMON_VARIANTS,
                false => MOST_VARIANTS,
            };
            let servers = self.store.servers()?;
            let variants = servers.iter().filter(|it| {
                it.key.name == key.name && self::is_common(&it.key.scope) == is_common
            });
            if variants.count() >= most {
                return Err(WatchError::TooManyVariants {
                    server: key.name.clone(),
                    most,
                });
            }
        }
        let base = Pins::of_tools(&self.store, &server_key(&seen.server), names())?;
        let missing = base.tools.iter();
        let missing = missing.filter(|(name, _)| !own.tools.contains_key(*name));
        let missing: Vec<(&String, &Pin)> = missing.collect();
        if missing.is_empty() {
            return Ok(());
        }
        self.store.write(|store| {
            let server = store.keep_server(key, false, approval.at)?;
            for (tool, pin) in missing {
                let Some(kept) = pin.definition else {
                    continue;
                };
                // Another process may have been faster.
                if store.baseline(server.id, tool)?.is_some() {
                    continue;
                }
                let text = store.definition(kept.fingerprint)?;
                let copy = NewBaseline {
                    tool,
                    origin: Origin::Registered,
                    definition: Some((kept, &text)),
                    shape: None,
                    old: pin.old.clone(),
                    version: &pin.version,
                    approval,
                };
                store.add_baseline(server.id, &copy)?;
            }
            Ok(())
        })
    }

    pub(super) fn approval(&self) -> Approval {
        Approval {
            by: self.options.by.clone(),
            at: self.options.clock.wall(),
            why: None,
        }
    }
}

/// Judges a list and keeps what is found, by pins that did not change in between.
fn hold(store: &Store, seen: &SeenList, approval: &Approval) -> Result<Held, WatchError> {
    let key = seen.key();
    let recording = Recording {
        approval,
        version: UNKNOWN_VERSION,
        // Also where not everything was seen: what comes later is new.
        seal: true,
        alert_on: &ChangeType::ALL,
        alert_on_equivalent: false,
        wanted: &[],
    };
    let options = seen.settings.comparison_time().options();
    loop {
        let pins = Pins::of_store(store, &key)?;
        let mut read = ReadList::new(seen.whole);
        for (place, tool) in seen.tools.iter().enumerate() {
            read.add_tool(place, tool, &pins);
        }
        if let Some(instructions) = &seen.instructions {
            read.add_instructions(instructions);
        }
        read.listing
            .unchanged
            .extend(seen.unchanged.iter().cloned());
        let mut judged = judge(&pins, &mut read.listing, &options, &[])?;
        set_aside(&mut judged, &read, &seen.settings);
        let is_reviewed = seen.settings.trust != Trust::Review || !pins.tools.is_empty();
        read.is_unreviewed = !is_reviewed && !read.listing.observed.is_empty();
        let recorded = record(store, &pins, &read.listing, &judged, &recording)?;
        if recorded.overtaken {
            continue;
        }
        if seen.variant.is_some() && !pins.sealed {
            store.keep_server(&key, true, approval.at)?;
        }
        return Ok(Held::new(seen, read, judged, recorded));
    }
}

/// Tools seen for the first time that are not to be pinned: those that share a name, and those whose
/// text speaks against them; with `trust: review` all. They are drift, so that they wait for approval.
fn set_aside(judged: &mut Judged, read: &ReadList, settings: &WatchSettings) {
    let mut aside: BTreeMap<String, Vec<Finding>> = BTreeMap::new();
    let newcomers: BTreeSet<&String> = judged.newcomers.iter().collect();
    for seen in &read.listing.observed {
        if !newcomers.contains(&seen.name) {
            continue;
        }
        let findings = scan(seen.definition());
        let is_bad = settings.on_finding != OnDrift::Serve && findings.iter().any(withholds);
        let is_doubled = read.doubled.contains(&seen.name);
        if is_bad || is_doubled || settings.trust == Trust::Review {
            let known = aside.entry(seen.name.clone()).or_default();
            known.extend(findings);
            if is_doubled {
                known.push(shadowing(&seen.name));
            }
        }
    }
    judged.newcomers.retain(|name| !aside.contains_key(name));
    let added = aside.into_iter();
    let added = added.map(|(tool, findings)| ToolDrift::Added { tool, findings });
    judged.drift.tools.extend(added);
}

impl Held {
    fn new(seen: &SeenList, read: ReadList, judged: Judged, recorded: Recorded) -> Self {
        let drift = judged.drift.tools;
        let alerts = recorded.alerts_by_tool();
        let (mut all, block_server) = treatments(&read, &drift, &alerts, &seen.settings);
        let instructions = all.get(INSTRUCTIONS).cloned().unwrap_or(Treatment::Serve);
        if !read.has_tool(INSTRUCTIONS) {
            all.remove(INSTRUCTIONS);
        }
        let checked = Checked {
            treatments: all,
            instructions,
            block_server,
            changes: drift.iter().map(|it| summarize(it, &alerts)).collect(),
            findings: findings(&read, &drift, &recorded.registered),
            registered: recorded.registered.clone(),
            drift,
        };
        Self {
            read,
            checked,
            recorded,
        }
    }
}

/// What the text of new tools and of changes carries.
fn findings(read: &ReadList, drift: &[ToolDrift], registered: &[String]) -> Vec<ToolFinding> {
    let registered: BTreeSet<&String> = registered.iter().collect();
    let mut told = Vec::new();
    let mut tell = |tool: &str, findings: &mut dyn Iterator<Item = Finding>| {
        told.extend(findings.filter(is_suspicious).map(|finding| ToolFinding {
            tool: tool.to_owned(),
            finding,
        }));
    };
    let is_new = |seen: &&Observation| registered.contains(&seen.name);
    for seen in read.listing.observed.iter().filter(is_new) {
        tell(&seen.name, &mut scan(seen.definition()).into_iter());
    }
    for tool in drift {
        match tool {
            ToolDrift::Added { findings, .. } => {
                tell(tool.tool(), &mut findings.iter().cloned());
            }
            ToolDrift::Changed(drift) | ToolDrift::Renamed { drift, .. } => {
                let reasons = drift.changes.iter().flat_map(|change| &change.reasons);
                tell(tool.tool(), &mut reasons.cloned());
            }
            ToolDrift::Removed { .. } => {}
        }
    }
    told
}
