//! Compares results with the shape of earlier results.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use toolwarden_drift::text::Weight;
use toolwarden_drift::{ChangeClass, ToolwatchChangeType, ToolwatchSeverity};
use toolwarden_model::{Fingerprint, Severity};
use toolwarden_store::{Approval, NewAlert, ServerId, ServerKey, Store};

use super::alert::{ResultFinding, WatchAlert, WatchCounter};
use super::error::WatchError;
use super::parsed_list::ParsedList;
use super::store_thread::{StoreJob, StoreThread, server_key};
use crate::UNKNOWN_VERSION;
use crate::check_transaction::{CheckSource, run_check};
use crate::judge::{CheckOutcome, ServerListing};
use crate::observation::Observation;
use crate::observed_results::ObservedResults;
use crate::pins::Pins;
use crate::record::{RecordOptions, RecordOutcome};
use crate::result_pooling::{ResultPooling, add_recent_results};
use toolwarden_settings::ComparisonTimeouts;

/// Results by server and tool.
pub(super) type ResultBatch = BTreeMap<String, BTreeMap<String, ObservedResults>>;

/// A value that is dropped once everything before it is stored.
pub(super) type SharedFlushGuard = Arc<Option<FlushGuard>>;

/// Signals the end of a flush when it is dropped.
#[derive(Debug)]
pub(super) struct FlushGuard(Option<oneshot::Sender<()>>);

impl FlushGuard {
    pub(super) const fn new(done: oneshot::Sender<()>) -> Self {
        Self(Some(done))
    }
}

impl Drop for FlushGuard {
    fn drop(&mut self) {
        if let Some(done) = self.0.take() {
            // The caller may have gone.
            let _unheard = done.send(());
        }
    }
}

/// Results that are about to be compared with their shape.
struct PendingResults {
    key: ServerKey,
    /// The tools with results.
    tools: Vec<String>,
    /// Their latest observed definitions.
    texts: Vec<Box<RawValue>>,
    timeouts: ComparisonTimeouts,
    alert_on: Vec<ToolwatchChangeType>,
    approval: Approval,
}

/// The result of the comparison, and what was stored.
type ResultCheckOutcome = (Option<ServerId>, CheckOutcome, RecordOutcome);

/// The context in which the results of a tool are read.
#[derive(Debug, Default)]
pub(super) struct ExpectedOutput {
    /// The output schema of the tool.
    pub(super) schema: Option<Value>,
}

impl StoreThread {
    /// What a tool declares for its results now; `None` if they are not compared.
    pub(super) fn expected_output(
        &self,
        server: &str,
        tool: &str,
    ) -> Result<Option<ExpectedOutput>, WatchError> {
        let Some((key, known)) = self.find_source(server, tool) else {
            return Ok(None);
        };
        let is_wanted = known.settings.as_ref().is_some_and(|it| it.shapes);
        let Some(text) = known.texts.get(tool).filter(|_| is_wanted) else {
            return Ok(None);
        };
        let pins = Pins::from_store_for_tools(&self.store, key, [tool])?;
        if !pins.tools.contains_key(tool) {
            return Ok(None);
        }
        // Most tools declare no output schema, and a full parse to find that out is far more expensive.
        if !may_have_output_schema(text.get()) && pins.match_exact(text.get()) == Some(tool) {
            return Ok(Some(ExpectedOutput::default()));
        }
        let mut read = ParsedList::new(false);
        read.add_tool(0, text, &pins);
        let seen = read.listing.observed.pop();
        let seen = match seen {
            Some(seen) => Some(seen),
            None => pins.observation(tool)?,
        };
        let schema = seen.as_ref().and_then(Observation::output_schema).cloned();
        Ok(Some(ExpectedOutput { schema }))
    }

    /// Stores results of every server. Results that cannot be stored are counted and lost.
    pub(super) fn check_batch(&mut self, batch: ResultBatch, kept: &SharedFlushGuard) {
        for (server, results) in batch {
            let mut by_source: BTreeMap<ServerKey, BTreeMap<String, ObservedResults>> =
                BTreeMap::new();
            for (tool, results) in results {
                if let Some((key, _)) = self.find_source(&server, &tool) {
                    let of_source = by_source.entry(key.clone()).or_default();
                    of_source.insert(tool, results);
                }
            }
            for (key, results) in by_source {
                if self.check_results(&key, results, kept).is_err() {
                    self.counters.count(WatchCounter::Failure);
                }
            }
        }
    }

    fn check_results(
        &mut self,
        key: &ServerKey,
        mut results: BTreeMap<String, ObservedResults>,
        kept: &SharedFlushGuard,
    ) -> Result<(), WatchError> {
        let Some(known) = self.servers.get(key) else {
            return Ok(());
        };
        self.store.require_same_file()?;
        let server = key.name.as_str();
        let pins =
            Pins::from_store_for_tools(&self.store, key, results.keys().map(String::as_str))?;
        results.retain(|tool, _| pins.tools.contains_key(tool) && known.texts.contains_key(tool));
        let approval = self.approval();
        let settings = known.settings.as_deref().cloned().unwrap_or_default();
        let gathering = ResultPooling::of_settings(&settings);
        let pooled =
            |store: &Store| add_recent_results(store, &pins, &mut results, gathering, approval.at);
        self.store.write_transaction(pooled)?;
        results.retain(|tool, it| self.is_due(server, tool) || !it.violations(tool).is_empty());
        if results.is_empty() {
            return Ok(());
        }
        let wanted: Vec<String> = results.keys().cloned().collect();
        let texts = wanted.iter().filter_map(|tool| known.texts.get(tool));
        let is_pinned = |text: &RawValue| pins.match_exact(text.get()).is_some();
        let needs_comparison = !texts.clone().all(|text| is_pinned(text));
        let pending = PendingResults {
            key: key.clone(),
            texts: texts.cloned().collect(),
            tools: wanted,
            timeouts: settings.comparison_timeouts(),
            alert_on: settings.alert_on,
            approval,
        };
        if !needs_comparison {
            let held = compare_results(&self.store, &pending, results)?;
            return self.finish_results(&pending, &held);
        }
        let (jobs, kept) = (self.jobs.clone(), Arc::clone(kept));
        let comparison = Box::new(move |store: &Store| {
            let held = compare_results(store, &pending, results);
            let Some(jobs) = jobs.upgrade() else {
                return;
            };
            let job: StoreJob = Box::new(move |desk| {
                let done = held.and_then(|held| desk.finish_results(&pending, &held));
                if done.is_err() {
                    desk.counters.count(WatchCounter::Failure);
                }
                drop(kept);
            });
            // The watch may have ended.
            let _unheard = jobs.blocking_send(job);
        });
        self.submit(&key.name, comparison)
    }

    fn finish_results(
        &mut self,
        pending: &PendingResults,
        (server_id, outcome, recorded): &ResultCheckOutcome,
    ) -> Result<(), WatchError> {
        self.publish_alerts(&pending.key, &outcome.drift.tools, recorded);
        if let Some(id) = server_id {
            for tool in &outcome.first_results {
                self.store.delete_observed_shapes(*id, tool)?;
            }
        }
        let now = self.options.clock.monotonic();
        for tool in &pending.tools {
            let key = (pending.key.name.clone(), tool.clone());
            self.last_checked.insert(key, now);
        }
        Ok(self.pins_written()?)
    }

    /// Whether the last comparison of a tool's results is long enough ago.
    fn is_due(&self, server: &str, tool: &str) -> bool {
        let last = self.last_checked.get(&(server.to_owned(), tool.to_owned()));
        let pause =
            u64::try_from(self.options.result_check_interval.as_nanos()).unwrap_or(u64::MAX);
        let now = self.options.clock.monotonic();
        last.is_none_or(|last| now.saturating_sub(*last) >= pause)
    }

    /// Raises an alert for a finding in the text of a result.
    pub(super) fn raise_finding(&self, found: &ResultFinding) -> Result<(), WatchError> {
        let key = server_key(&found.server);
        let Some(server) = self.store.server(&key)? else {
            return Ok(());
        };
        let severity = match found.weight {
            Weight::High => Severity::Breaking,
            Weight::Medium | Weight::Low => Severity::Warning,
        };
        let severity_word = ToolwatchSeverity::from(severity).as_str();
        let (class, change_type) = (ChangeClass::Trust, ToolwatchChangeType::Response);
        let parts = [&key.name, &key.scope, &found.tool, "text", found.rule];
        let id = Fingerprint::tagged("toolwarden/alert/v1", parts).to_string();
        let id: String = id.chars().take(12).collect();
        let drift = json!({
            "tool": found.tool,
            "outcome": "text",
            "class": class.as_str(),
            "change_type": change_type.as_str(),
            "severity": severity_word,
            "reasons": [{"detector": found.rule, "weight": found.weight.as_str(),
                "message": found.excerpt}],
        });
        let old_form = json!({
            "tool_name": found.tool,
            "change_type": change_type.as_str(),
            "detected_at": format!("{:.6}", found.at),
            "severity": severity_word,
        });
        let alert = NewAlert {
            id: &id,
            tool: &found.tool,
            change_type: change_type.as_str(),
            severity: severity_word,
            class: class.as_str(),
            at: found.at,
            document: &drift.to_string(),
            toolwatch_document: &old_form.to_string(),
        };
        self.store
            .write_transaction(|store| store.raise_alert(server.id, &alert))?;
        self.publish_alert(WatchAlert {
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

/// Compares results with their shape and their output schema, and stores the outcome.
fn compare_results(
    store: &Store,
    pending: &PendingResults,
    results: BTreeMap<String, ObservedResults>,
) -> Result<ResultCheckOutcome, WatchError> {
    let wanted = &pending.tools;
    let recording = RecordOptions {
        approval: &pending.approval,
        version: UNKNOWN_VERSION,
        seal: false,
        alert_on: &pending.alert_on,
        alert_on_equivalent: false,
        wanted,
    };
    let options = pending.timeouts.options();
    let mut read = ParsedList::new(false);
    read.listing.results = results;
    let mut source = PendingResultsCheck {
        store,
        pending,
        read,
    };
    let checked = run_check(&mut source, &options, &[], &recording)?;
    let server = checked.pins.server.map(|it| it.id);
    Ok((server, checked.outcome, checked.recorded))
}

/// Results, with the latest observed definitions of their tools.
struct PendingResultsCheck<'k, 'p> {
    store: &'k Store,
    pending: &'p PendingResults,
    read: ParsedList,
}

impl<'k> CheckSource<'k> for PendingResultsCheck<'k, '_> {
    type Error = WatchError;

    fn load_pins(&mut self) -> Result<Pins<'k>, WatchError> {
        let tools = self.pending.tools.iter().map(String::as_str);
        Ok(Pins::from_store_for_tools(
            self.store,
            &self.pending.key,
            tools,
        )?)
    }

    fn read_listing(&mut self, pins: &Pins<'k>) {
        let mut read = ParsedList::new(false);
        for (place, text) in self.pending.texts.iter().enumerate() {
            read.add_tool(place, text, pins);
        }
        read.listing.results = std::mem::take(&mut self.read.listing.results);
        self.read = read;
    }

    fn listing(&mut self) -> &mut ServerListing {
        &mut self.read.listing
    }
}

/// Whether a definition may have an output schema. The key may be written with escapes.
fn may_have_output_schema(definition: &str) -> bool {
    definition.contains("outputSchema") || definition.contains("\\u")
}
