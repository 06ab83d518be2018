//! Holds what tools returned to the shape of earlier results.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use toolwarden_drift::text::Weight;
use toolwarden_drift::{ChangeType, Class, Severity};
use toolwarden_model::Fingerprint;
use toolwarden_store::{Approval, NewAlert, ServerId, ServerKey, Store};

use super::desk::{Desk, Job, server_key};
use super::error::WatchError;
use super::list::ReadList;
use super::notice::{Figure, RaisedNotice, ResultFinding};
use crate::UNKNOWN_VERSION;
use crate::comparison::ComparisonTime;
use crate::judge::{Judged, judge};
use crate::observation::Observation;
use crate::pins::Pins;
use crate::pool::pool;
use crate::record::{Recorded, Recording, record};
use crate::results::Results;

/// Results by server and tool.
pub(super) type Batch = BTreeMap<String, BTreeMap<String, Results>>;

/// Something that is dropped once everything before it is kept.
pub(super) type Kept = Arc<Option<KeptSignal>>;

/// Reports when it is dropped.
#[derive(Debug)]
pub(super) struct KeptSignal(Option<oneshot::Sender<()>>);

impl KeptSignal {
    pub(super) const fn new(done: oneshot::Sender<()>) -> Self {
        Self(Some(done))
    }
}

impl Drop for KeptSignal {
    fn drop(&mut self) {
        if let Some(done) = self.0.take() {
            // The caller may have gone.
            let _unheard = done.send(());
        }
    }
}

/// Results that are about to be held to their shape.
struct PendingResults {
    key: ServerKey,
    /// The tools the results are of.
    wanted: Vec<String>,
    /// Their definitions, as they were seen last.
    texts: Vec<Box<RawValue>>,
    time: ComparisonTime,
    approval: Approval,
}

/// What results were found to be, and what was kept of it.
type HeldResults = (Option<ServerId>, Judged, Recorded);

/// What the results of a tool are taken in beside.
#[derive(Debug, Default)]
pub(super) struct Promised {
    /// The schema the tool promises for them.
    pub(super) schema: Option<Value>,
}

impl Desk {
    /// What a tool promises for its results now; nothing if they are not held to anything.
    pub(super) fn promised(
        &self,
        server: &str,
        tool: &str,
    ) -> Result<Option<Promised>, WatchError> {
        let Some((key, known)) = self.source(server, tool) else {
            return Ok(None);
        };
        let is_wanted = known.settings.as_ref().is_some_and(|it| it.shapes);
        let Some(text) = known.texts.get(tool).filter(|_| is_wanted) else {
            return Ok(None);
        };
        let pins = Pins::of_tools(&self.store, key, [tool])?;
        if !pins.tools.contains_key(tool) {
            return Ok(None);
        }
        // Most tools promise nothing, and to find that out by reading them costs far more.
        if !may_promise(text.get()) && pins.holds(text.get()) == Some(tool) {
            return Ok(Some(Promised::default()));
        }
        let mut read = ReadList::new(false);
        read.add_tool(0, text, &pins);
        let seen = read.listing.observed.pop();
        let seen = match seen {
            Some(seen) => Some(seen),
            None => pins.observation(tool)?,
        };
        let schema = seen.as_ref().and_then(Observation::output_schema).cloned();
        Ok(Some(Promised { schema }))
    }

    /// Takes in results of every server. What cannot be kept is counted and lost.
    pub(super) fn take(&mut self, batch: Batch, kept: &Kept) {
        for (server, results) in batch {
            let mut by_source: BTreeMap<ServerKey, BTreeMap<String, Results>> = BTreeMap::new();
            for (tool, results) in results {
                if let Some((key, _)) = self.source(&server, &tool) {
                    let of_source = by_source.entry(key.clone()).or_default();
                    of_source.insert(tool, results);
                }
            }
            for (key, results) in by_source {
                if self.take_results(&key, results, kept).is_err() {
                    self.figures.count(Figure::Failure);
                }
            }
        }
    }

    fn take_results(
        &mut self,
        key: &ServerKey,
        mut results: BTreeMap<String, Results>,
        kept: &Kept,
    ) -> Result<(), WatchError> {
        let Some(known) = self.servers.get(key) else {
            return Ok(());
        };
        self.store.require_place()?;
        let server = key.name.as_str();
        let pins = Pins::of_tools(&self.store, key, results.keys().map(String::as_str))?;
        results.retain(|tool, _| pins.tools.contains_key(tool) && known.texts.contains_key(tool));
        let approval = self.approval();
        let gathering = self.options.gathering;
        let pooled = |store: &Store| pool(store, &pins, &mut results, gathering, approval.at);
        self.store.write(pooled)?;
        results.retain(|tool, it| self.is_due(server, tool) || !it.violations(tool).is_empty());
        if results.is_empty() {
            return Ok(());
        }
        let wanted: Vec<String> = results.keys().cloned().collect();
        let texts = wanted.iter().filter_map(|tool| known.texts.get(tool));
        let is_pinned = |text: &RawValue| pins.holds(text.get()).is_some();
        let needs_comparison = !texts.clone().all(|text| is_pinned(text));
        let time = known.settings.as_ref().map(|it| it.comparison_time());
        let pending = PendingResults {
            key: key.clone(),
            texts: texts.cloned().collect(),
            wanted,
            time: time.unwrap_or_default(),
            approval,
        };
        if !needs_comparison {
            let held = hold_results(&self.store, &pending, results)?;
            return self.conclude_results(&pending, &held);
        }
        let (jobs, kept) = (self.jobs.clone(), Arc::clone(kept));
        let comparison = Box::new(move |store: &Store| {
            let held = hold_results(store, &pending, results);
            let Some(jobs) = jobs.upgrade() else {
                return;
            };
            let job: Job = Box::new(move |desk| {
                let done = held.and_then(|held| desk.conclude_results(&pending, &held));
                if done.is_err() {
                    desk.figures.count(Figure::Failure);
                }
                drop(kept);
            });
            // The watch may have ended.
            let _unheard = jobs.blocking_send(job);
        });
        self.submit(&key.name, comparison)
    }

    fn conclude_results(
        &mut self,
        pending: &PendingResults,
        (server_id, judged, recorded): &HeldResults,
    ) -> Result<(), WatchError> {
        self.tell(&pending.key, &judged.drift.tools, recorded);
        if let Some(id) = server_id {
            for tool in &judged.learned {
                self.store.drop_observed_shapes(*id, tool)?;
            }
        }
        let now = self.options.clock.monotonic();
        for tool in &pending.wanted {
            let key = (pending.key.name.clone(), tool.clone());
            self.looked.insert(key, now);
        }
        Ok(self.pinned()?)
    }

    /// Whether the last look at the results of a tool is long enough ago.
    fn is_due(&self, server: &str, tool: &str) -> bool {
        let last = self.looked.get(&(server.to_owned(), tool.to_owned()));
        let pause = u64::try_from(self.options.judge_every.as_nanos()).unwrap_or(u64::MAX);
        let now = self.options.clock.monotonic();
        last.is_none_or(|last| now.saturating_sub(*last) >= pause)
    }

    /// Raises an alert for what the text of a result carries.
    pub(super) fn raise_finding(&self, found: &ResultFinding) -> Result<(), WatchError> {
        let key = server_key(&found.server);
        let Some(server) = self.store.server(&key)? else {
            return Ok(());
        };
        let severity = match found.weight {
            Weight::High => Severity::High,
            Weight::Medium | Weight::Low => Severity::Medium,
        };
        let (class, change_type) = (Class::Trust, ChangeType::Response);
        let parts = [&key.name, &key.scope, &found.tool, "text", found.rule];
        let id = Fingerprint::tagged("toolwarden/alert/v1", parts).to_string();
        let id: String = id.chars().take(12).collect();
        let drift = json!({
            "tool": found.tool,
            "outcome": "text",
            "class": class.as_str(),
            "change_type": change_type.as_str(),
            "severity": severity.as_str(),
            "reasons": [{"detector": found.rule, "weight": found.weight.as_str(),
                "message": found.excerpt}],
        });
        let old_form = json!({
            "tool_name": found.tool,
            "change_type": change_type.as_str(),
            "detected_at": format!("{:.6}", found.at),
            "severity": severity.as_str(),
        });
        let alert = NewAlert {
            id: &id,
            tool: &found.tool,
            change_type: change_type.as_str(),
            severity: severity.as_str(),
            class: class.as_str(),
            at: found.at,
            document: &drift.to_string(),
            old_form: &old_form.to_string(),
        };
        self.store.write(|store| store.raise(server.id, &alert))?;
        self.publish(RaisedNotice {
            id,
            server: found.server.clone(),
            variant: None,
            tool: found.tool.clone(),
            severity,
            class,
            change_type,
            summary: format!("a result {}", found.excerpt),
            at: found.at,
            drift,
        });
        Ok(())
    }
}

/// Holds results to their shape and their promises, and keeps what is found.
fn hold_results(
    store: &Store,
    pending: &PendingResults,
    mut results: BTreeMap<String, Results>,
) -> Result<HeldResults, WatchError> {
    let wanted = &pending.wanted;
    let recording = Recording {
        approval: &pending.approval,
        version: UNKNOWN_VERSION,
        seal: false,
        alert_on: &ChangeType::ALL,
        alert_on_equivalent: false,
        wanted,
    };
    let options = pending.time.options();
    loop {
        let pins = Pins::of_tools(store, &pending.key, wanted.iter().map(String::as_str))?;
        let mut read = ReadList::new(false);
        for (place, text) in pending.texts.iter().enumerate() {
            read.add_tool(place, text, &pins);
        }
        read.listing.results = std::mem::take(&mut results);
        let judged = judge(&pins, &mut read.listing, &options, &[])?;
        let recorded = record(store, &pins, &read.listing, &judged, &recording)?;
        if !recorded.overtaken {
            return Ok((pins.server.map(|it| it.id), judged, recorded));
        }
        results = read.listing.results;
    }
}

/// Whether a definition may have a schema for results. A name may be written with escapes.
fn may_promise(definition: &str) -> bool {
    definition.contains("outputSchema") || definition.contains("\\u")
}
