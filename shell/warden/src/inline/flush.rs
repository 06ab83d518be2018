//! Holds what tools returned to the shape of earlier results.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolwarden_drift::text::Weight;
use toolwarden_drift::{ChangeType, Class, Options, Severity};
use toolwarden_model::Fingerprint;
use toolwarden_store::{NewAlert, ServerKey, Store};

use super::desk::{Desk, server_key};
use super::error::WatchError;
use super::list::ReadList;
use super::notice::{Figure, RaisedNotice, ResultFinding};
use crate::UNKNOWN_VERSION;
use crate::judge::judge;
use crate::observation::Observation;
use crate::pins::Pins;
use crate::pool::pool;
use crate::record::{Recording, record};
use crate::results::Results;

/// Results by server and tool.
pub(super) type Batch = BTreeMap<String, BTreeMap<String, Results>>;

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
    pub(super) fn take(&mut self, batch: Batch) {
        for (server, results) in batch {
            let mut by_source: BTreeMap<ServerKey, BTreeMap<String, Results>> = BTreeMap::new();
            for (tool, results) in results {
                if let Some((key, _)) = self.source(&server, &tool) {
                    let of_source = by_source.entry(key.clone()).or_default();
                    of_source.insert(tool, results);
                }
            }
            for (key, results) in by_source {
                if self.take_results(&key, results).is_err() {
                    self.figures.count(Figure::Failure);
                }
            }
        }
    }

    fn take_results(
        &mut self,
        key: &ServerKey,
        mut results: BTreeMap<String, Results>,
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
        let recording = Recording {
            approval: &approval,
            version: UNKNOWN_VERSION,
            seal: false,
            alert_on: &ChangeType::ALL,
            alert_on_equivalent: false,
            wanted: &wanted,
        };
        let (server_id, judged, recorded) = loop {
            let pins = Pins::of_tools(&self.store, key, wanted.iter().map(String::as_str))?;
            let mut read = ReadList::new(false);
            for (place, tool) in wanted.iter().enumerate() {
                if let Some(text) = known.texts.get(tool) {
                    read.add_tool(place, text, &pins);
                }
            }
            read.listing.results = std::mem::take(&mut results);
            let judged = judge(&pins, &mut read.listing, &Options::default(), &[])?;
            let recorded = record(&self.store, &pins, &read.listing, &judged, &recording)?;
            if !recorded.overtaken {
                break (pins.server.map(|it| it.id), judged, recorded);
            }
            results = read.listing.results;
        };
        self.tell(key, &judged.drift.tools, &recorded);
        if let Some(id) = server_id {
            for tool in &judged.learned {
                self.store.drop_observed_shapes(id, tool)?;
            }
        }
        let now = self.options.clock.monotonic();
        for tool in wanted {
            self.looked.insert((server.to_owned(), tool), now);
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

/// Whether a definition may have a schema for results. A name may be written with escapes.
fn may_promise(definition: &str) -> bool {
    definition.contains("outputSchema") || definition.contains("\\u")
}
