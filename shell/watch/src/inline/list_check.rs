//! Compares the list of a server with its pins.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::value::RawValue;

use tokio::sync::oneshot;
use toolwarden_drift::text::{TextFinding, scan};
use toolwarden_drift::{ToolDrift, shadowing_finding};
use toolwarden_model::Fingerprint;
use toolwarden_store::{Approval, BaselineOrigin, NewBaseline, PinsRevision, ServerKey, Store};

use super::alert::WatchCounter;
use super::apply_policy::{decide_tool_actions, is_suspicious, is_withheld};
use super::error::WatchError;
use super::observed::{ListCheck, ReceivedList, ToolAction, ToolFinding};
use super::parsed_list::{ParsedList, tool_name};
use super::store_thread::{StoreJob, StoreThread, server_key, summarize};
use crate::check_transaction::{CheckSource, run_check};
use crate::judge::{CheckOutcome, ServerListing};
use crate::observation::INSTRUCTIONS;
use crate::pins::{Pin, Pins};
use crate::record::{RecordOptions, RecordOutcome};
use crate::{Observation, UNKNOWN_VERSION};
use toolwarden_settings::{OnDrift, TrustMode, WatchSettings};

/// The maximum number of variants of one server with capabilities unknown to the protocol: clients can
/// invent those.
const MAX_VARIANTS: usize = 64;
/// The maximum number of variants with capabilities that the protocol defines.
const MAX_KNOWN_VARIANTS: usize = 1_024;
/// The capabilities that the protocol defines.
const KNOWN_CAPABILITIES: [&str; 15] = [
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

/// Whether a variant has only capabilities that the protocol defines.
fn has_known_capabilities(scope: &str) -> bool {
    let capabilities = scope.split_once(':').map_or("none", |(_, it)| it);
    capabilities
        .split(',')
        .all(|it| KNOWN_CAPABILITIES.contains(&it))
}
/// The maximum number of cached variants that get the same list as the gateway.
const MAX_PLAIN_VARIANTS: usize = 4_096;

/// How often a list is compared again because pins changed meanwhile.
const MAX_ATTEMPTS: u32 = 3;

/// The channel for the answer to a check.
pub(super) type CheckReply = oneshot::Sender<Result<Arc<ListCheck>, WatchError>>;

/// The result of comparing a list, and what was stored.
#[derive(Debug)]
struct CheckedList {
    read: ParsedList,
    checked: ListCheck,
    recorded: RecordOutcome,
}

/// A list that waits for its answer.
pub(super) struct PendingCheck {
    list: ReceivedList,
    fingerprint: Fingerprint,
    reply: CheckReply,
    attempts: u32,
}

impl PendingCheck {
    fn respond(self, answer: Result<Arc<ListCheck>, WatchError>) {
        // The caller may have gone.
        let _unheard = self.reply.send(answer);
    }
}

/// How to check a list.
enum CheckPlan {
    /// No check: clients of this variant get the same list as the gateway.
    Plain,
    /// Check it without comparing definitions.
    Immediate,
    /// Compare definitions.
    Compare,
}

impl StoreThread {
    /// Checks a list. If it needs no comparison it is answered at once; otherwise a thread of the pool
    /// compares it and then answers.
    pub(super) fn check(&mut self, seen: ReceivedList, reply: CheckReply) {
        let pending = PendingCheck {
            fingerprint: seen.fingerprint(),
            list: seen,
            reply,
            attempts: 0,
        };
        if let Some(answer) = self.cached_check(&pending.list, pending.fingerprint) {
            self.counters.count(WatchCounter::CacheHit);
            pending.respond(Ok(answer));
            return;
        }
        if let Err(error) = self.start(pending) {
            self.counters.count(WatchCounter::Failure);
            let (pending, error) = *error;
            pending.respond(Err(error));
        }
    }

    /// Compares a list with its pins, here or on another thread.
    fn start(&mut self, pending: PendingCheck) -> Result<(), Box<(PendingCheck, WatchError)>> {
        let seen = &pending.list;
        let failed = match self.plan(seen) {
            Ok(CheckPlan::Plain) => {
                let nothing = CheckedList::new(
                    seen,
                    ParsedList::new(false),
                    CheckOutcome::default(),
                    RecordOutcome::default(),
                );
                self.finish(pending, Ok(nothing));
                return Ok(());
            }
            Ok(CheckPlan::Immediate) => {
                let held = check_list(&self.store, seen, &self.approval());
                self.finish(pending, held);
                return Ok(());
            }
            Ok(CheckPlan::Compare) => {
                let server = seen.server.clone();
                if self.comparison_pool.has_room(&server) {
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
            let held = check_list(store, &pending.list, &approval);
            let Some(jobs) = jobs.upgrade() else {
                return;
            };
            let job: StoreJob = Box::new(move |desk| desk.finish_compared(pending, revision, held));
            // The watch may have ended.
            let _unheard = jobs.blocking_send(job);
        });
        // The check above ensured room, and only this thread adds to the queue.
        self.comparison_pool.submit(server, comparison);
        Ok(())
    }

    /// How to check a list that is not cached.
    fn plan(&mut self, seen: &ReceivedList) -> Result<CheckPlan, WatchError> {
        self.poll()?;
        let key = seen.key();
        if seen.variant.is_some() {
            if self.is_plain_variant(seen, &key)? {
                return Ok(CheckPlan::Plain);
            }
            self.prepare_variant(seen, &key, &self.approval())?;
        }
        // Lists of one server are judged in the order in which they were observed.
        if self.comparison_pool.is_busy(&seen.server) {
            return Ok(CheckPlan::Compare);
        }
        let pins = Pins::from_store(&self.store, &key)?;
        let is_pinned = |tool: &RawValue| pins.match_exact(tool.get()).is_some();
        // New tools are scanned for findings, which also takes time.
        if !seen.tools.iter().all(|tool| is_pinned(tool)) {
            return Ok(CheckPlan::Compare);
        }
        Ok(CheckPlan::Immediate)
    }

    /// Answers a compared list, unless pins changed meanwhile: then it is compared again.
    fn finish_compared(
        &mut self,
        mut pending: PendingCheck,
        revision: PinsRevision,
        held: Result<CheckedList, WatchError>,
    ) {
        let is_current = self.poll().is_ok() && self.revision == revision;
        let registered = matches!(&held, Ok(held) if !held.recorded.registered.is_empty());
        if is_current || registered || pending.attempts >= MAX_ATTEMPTS {
            self.finish(pending, held);
            return;
        }
        // Raised alerts stay raised, so subscribers get them now.
        if let Ok(held) = &held {
            self.publish_alerts(&pending.list.key(), &held.checked.drift, &held.recorded);
        }
        pending.attempts += 1;
        if let Err(error) = self.start(pending) {
            let (pending, error) = *error;
            pending.respond(Err(error));
        }
    }

    fn finish(&mut self, pending: PendingCheck, held: Result<CheckedList, WatchError>) {
        let answer = held.and_then(|held| {
            let (seen, read, recorded) = (pending.list, held.read, held.recorded);
            let checked = Arc::new(held.checked);
            self.counters.count(WatchCounter::ListChecked);
            self.publish_alerts(&seen.key(), &checked.drift, &recorded);
            self.scan_new_tools(&seen.key(), &read, &recorded.registered);
            let key = seen.key();
            self.cache_check(seen, pending.fingerprint, &read, &checked);
            // New pins affect other answers. This answer is not cached: the next one uses the new pins.
            self.pins_written()?;
            if !checked.registered.is_empty() {
                self.clear_server_cache(&key);
            }
            Ok(checked)
        });
        // The caller may have gone.
        let _unheard = pending.reply.send(answer);
    }

    /// Whether a variant of clients gets exactly the list that the gateway gets. Only its name is stored:
    /// anything it gets later in addition is new.
    fn is_plain_variant(
        &mut self,
        seen: &ReceivedList,
        key: &ServerKey,
    ) -> Result<bool, WatchError> {
        if self.store.server(key)?.is_some() {
            return Ok(false);
        }
        if seen.tools.is_empty() {
            if self.plain_variants.len() >= MAX_PLAIN_VARIANTS {
                self.plain_variants.clear();
            }
            self.plain_variants.insert(key.clone());
            return Ok(true);
        }
        if self.plain_variants.remove(key) {
            self.store.ensure_server(key, true, self.approval().at)?;
        }
        Ok(false)
    }

    /// Gives a variant the pins of the gateway's own list for tools that it has no pin for. A tool that is
    /// already pinned is compared with that pin; it is not pinned again because a client with other
    /// capabilities connected.
    fn prepare_variant(
        &self,
        seen: &ReceivedList,
        key: &ServerKey,
        approval: &Approval,
    ) -> Result<(), WatchError> {
        let names: Vec<String> = seen.tools.iter().filter_map(|it| tool_name(it)).collect();
        let names = || names.iter().map(String::as_str);
        let own = Pins::from_store_for_tools(&self.store, key, names())?;
        if !own.known {
            // Clients with invented capabilities must not take the room of clients with capabilities that
            // the protocol defines.
            let is_common = has_known_capabilities(&key.scope);
            let most = match is_common {
                true => MAX_KNOWN_VARIANTS,
                false => MAX_VARIANTS,
            };
            let servers = self.store.servers()?;
            let variants = servers.iter().filter(|it| {
                it.key.name == key.name && self::has_known_capabilities(&it.key.scope) == is_common
            });
            if variants.count() >= most {
                return Err(WatchError::TooManyVariants {
                    server: key.name.clone(),
                    most,
                });
            }
        }
        let base = Pins::from_store_for_tools(&self.store, &server_key(&seen.server), names())?;
        let missing = base.tools.iter();
        let missing = missing.filter(|(name, _)| !own.tools.contains_key(*name));
        let missing: Vec<(&String, &Pin)> = missing.collect();
        if missing.is_empty() {
            return Ok(());
        }
        self.store.write_transaction(|store| {
            let server = store.ensure_server(key, false, approval.at)?;
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
                    origin: BaselineOrigin::Registered,
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
            by: self.options.pinned_by.clone(),
            at: self.options.clock.wall(),
            why: None,
        }
    }
}

/// Judges a list and stores the result, under pins that did not change meanwhile.
fn check_list(
    store: &Store,
    seen: &ReceivedList,
    approval: &Approval,
) -> Result<CheckedList, WatchError> {
    let recording = RecordOptions {
        approval,
        version: UNKNOWN_VERSION,
        // Also if the list is incomplete: tools that appear later are new.
        seal: true,
        alert_on: &seen.settings.alert_on,
        alert_on_equivalent: false,
        wanted: &[],
    };
    let options = seen.settings.comparison_timeouts().options();
    let mut source = ReceivedListCheck {
        store,
        key: seen.key(),
        seen,
        read: ParsedList::default(),
    };
    let checked = run_check(&mut source, &options, &[], &recording)?;
    if seen.variant.is_some() && !checked.pins.sealed {
        store.ensure_server(&source.key, true, approval.at)?;
    }
    Ok(CheckedList::new(
        seen,
        source.read,
        checked.outcome,
        checked.recorded,
    ))
}

/// A list as an agent or the gateway received it.
struct ReceivedListCheck<'k, 'l> {
    store: &'k Store,
    key: ServerKey,
    seen: &'l ReceivedList,
    read: ParsedList,
}

impl<'k> CheckSource<'k> for ReceivedListCheck<'k, '_> {
    type Error = WatchError;

    fn load_pins(&mut self) -> Result<Pins<'k>, WatchError> {
        Ok(Pins::from_store(self.store, &self.key)?)
    }

    fn read_listing(&mut self, pins: &Pins<'k>) {
        let seen = self.seen;
        let mut read = ParsedList::new(seen.is_complete);
        for (place, tool) in seen.tools.iter().enumerate() {
            read.add_tool(place, tool, pins);
        }
        if let Some(instructions) = &seen.instructions {
            read.add_instructions(instructions);
        }
        read.listing
            .unchanged
            .extend(seen.unchanged.iter().cloned());
        self.read = read;
    }

    fn listing(&mut self) -> &mut ServerListing {
        &mut self.read.listing
    }

    fn review(&mut self, pins: &Pins<'k>, outcome: &mut CheckOutcome) -> Result<(), WatchError> {
        let settings = &self.seen.settings;
        withhold_new_tools(outcome, &self.read, settings);
        let is_reviewed = settings.trust != TrustMode::Review || !pins.tools.is_empty();
        self.read.is_unreviewed = !is_reviewed && !self.read.listing.observed.is_empty();
        Ok(())
    }
}

/// New tools that must not be pinned: those that share a name, and those with suspicious text; with
/// `trust: review` all new tools. They count as drift, so that they need approval.
fn withhold_new_tools(outcome: &mut CheckOutcome, read: &ParsedList, settings: &WatchSettings) {
    let mut aside: BTreeMap<String, Vec<TextFinding>> = BTreeMap::new();
    let newcomers: BTreeSet<&String> = outcome.new_tools.iter().collect();
    for seen in &read.listing.observed {
        if !newcomers.contains(&seen.name) {
            continue;
        }
        let findings = scan(seen.definition());
        let is_bad = settings.on_finding != OnDrift::Serve && findings.iter().any(is_withheld);
        let is_doubled = read.duplicates.contains(&seen.name);
        if is_bad || is_doubled || settings.trust == TrustMode::Review {
            let known = aside.entry(seen.name.clone()).or_default();
            known.extend(findings);
            if is_doubled {
                known.push(shadowing_finding(&seen.name));
            }
        }
    }
    outcome.new_tools.retain(|name| !aside.contains_key(name));
    let added = aside.into_iter();
    let added = added.map(|(tool, findings)| ToolDrift::Added { tool, findings });
    outcome.drift.tools.extend(added);
}

impl CheckedList {
    fn new(
        seen: &ReceivedList,
        read: ParsedList,
        outcome: CheckOutcome,
        recorded: RecordOutcome,
    ) -> Self {
        let drift = outcome.drift.tools;
        let alerts = recorded.alerts_by_tool();
        let (mut all, block_server) = decide_tool_actions(&read, &drift, &alerts, &seen.settings);
        let instructions = all.get(INSTRUCTIONS).cloned().unwrap_or(ToolAction::Serve);
        if !read.has_tool(INSTRUCTIONS) {
            all.remove(INSTRUCTIONS);
        }
        let checked = ListCheck {
            tool_actions: all,
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

/// The findings in the text of new tools and of changes.
fn findings(read: &ParsedList, drift: &[ToolDrift], registered: &[String]) -> Vec<ToolFinding> {
    let registered: BTreeSet<&String> = registered.iter().collect();
    let mut told = Vec::new();
    let mut tell = |tool: &str, findings: &mut dyn Iterator<Item = TextFinding>| {
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
                let reasons = drift
                    .changes
                    .iter()
                    .flat_map(|change| &change.evidence.reasons);
                tell(tool.tool(), &mut reasons.cloned());
            }
            ToolDrift::Removed { .. } => {}
        }
    }
    told
}
