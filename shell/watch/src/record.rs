//! Stores the outcome of a check. It adds baselines for tools that were never pinned, and never replaces
//! one.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::json;
use toolwarden_drift::{
    ChangeClass, ToolDrift, ToolwatchChangeType, ToolwatchSeverity, drift_json,
};
use toolwarden_model::Fingerprint;
use toolwarden_store::{
    AlertNovelty, AlertStatus, Approval, BaselineOrigin, NewAlert, NewBaseline, NewSighting,
    ServerId, Store, ToolwatchHashes,
};

use crate::alert::{alert_id, has_result_drift, severity};
use crate::judge::{CheckOutcome, ResultSampling, ServerListing, toolwatch_hash};
use crate::observation::Observation;
use crate::observed_results::ObservedResults;
use crate::pins::{Pin, Pins, PinsError};
use crate::tool_parts::ToolParts;

/// The maximum number of alerts per server that are kept after they closed without an approval.
const MAX_CLOSED_ALERTS: usize = 200;

/// What a check stored.
#[derive(Debug, Default)]
pub struct RecordOutcome {
    /// The alerts of this check.
    pub alerts: Vec<RaisedAlert>,
    /// The tools that were pinned because they were new.
    pub registered: Vec<String>,
    /// Whether another process pinned a tool meanwhile, so that the listing must be judged again.
    pub pins_changed: bool,
}

impl RecordOutcome {
    /// The first alert about each tool.
    pub(crate) fn alerts_by_tool(&self) -> AlertsByTool<'_> {
        let mut by_tool = BTreeMap::new();
        for alert in &self.alerts {
            by_tool.entry(alert.tool.as_str()).or_insert(alert);
        }
        by_tool
    }
}

/// Alerts of a check, by tool.
pub(crate) type AlertsByTool<'r> = BTreeMap<&'r str, &'r RaisedAlert>;

/// An alert of a check.
#[derive(Clone, Debug)]
pub struct RaisedAlert {
    /// Its id.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// Whether it is new.
    pub raised: AlertNovelty,
    /// Whether there is something to approve: not if two tools share a name.
    pub approvable: bool,
}

/// How to store a check.
#[derive(Clone, Debug)]
pub struct RecordOptions<'r> {
    /// The time of the check, and the name under which tools are registered.
    pub approval: &'r Approval,
    /// The version label of the observation.
    pub version: &'r str,
    /// Whether a new server is sealed.
    pub seal: bool,
    /// The change types that raise alerts.
    pub alert_on: &'r [ToolwatchChangeType],
    /// Whether the same contract in other words, and changes without effect, also raise alerts.
    pub alert_on_equivalent: bool,
    /// The tools that were checked; an empty list means all.
    pub wanted: &'r [String],
}

/// Stores the outcome of a check, all of it or nothing.
///
/// # Errors
/// The store cannot be written.
pub(crate) fn record(
    store: &Store,
    pins: &Pins<'_>,
    listing: &ServerListing,
    outcome: &CheckOutcome,
    recording: &RecordOptions<'_>,
) -> Result<RecordOutcome, PinsError> {
    let nothing = outcome.drift.tools.is_empty()
        && outcome.new_tools.is_empty()
        && outcome.adopted.is_empty()
        && listing.results.is_empty();
    if let (true, Some(server)) = (nothing, &pins.server)
        && store.sightings(server.id)?.is_empty()
        && store.alerted_tools(server.id)?.is_empty()
    {
        return Ok(RecordOutcome::default());
    }
    store.write_transaction(|store| {
        // If another process replaced the pins meanwhile, the outcome is not valid.
        if have_pins_changed(store, pins, outcome)? {
            return Ok(RecordOutcome {
                pins_changed: true,
                ..RecordOutcome::default()
            });
        }
        let seal = recording.seal && !pins.known;
        let server = store
            .ensure_server(&pins.key, seal, recording.approval.at)?
            .id;
        let mut recorded = RecordOutcome::default();
        let keeper = CheckRecorder {
            store,
            server,
            pins,
            listing,
            observed: observations_by_name(listing),
            unchanged: listing.unchanged.iter().map(String::as_str).collect(),
            counts: name_counts(listing),
            inconclusive: inconclusive_tools(outcome),
            recording,
        };
        keeper.add_baselines(outcome, &mut recorded)?;
        for tool in &outcome.drift.tools {
            keeper.record_drift(tool, &mut recorded)?;
        }
        let mut open: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for alert in &recorded.alerts {
            open.entry(&alert.tool).or_default().push(alert.id.clone());
        }
        for name in outcome.drift.tools.iter().map(ToolDrift::tool) {
            keeper.close_alerts(name, open.get(name).map_or(&[], Vec::as_slice))?;
        }
        for tool in &outcome.drift.tools {
            if let ToolDrift::Renamed { rename, .. } = tool {
                keeper.close_alerts(&rename.from, &[])?;
            }
        }
        keeper.close_resolved(outcome)?;
        store.prune_alerts(server, MAX_CLOSED_ALERTS)?;
        // A comparison that could not find anything cannot be wrong, so later comparisons do not pay for
        // it.
        let telling = |tool: &&String| {
            let said = outcome.drift.results.iter().find(|(name, _)| name == *tool);
            listing.sampling == ResultSampling::Chance
                && said.is_none_or(|(_, said)| said.too_few().is_none())
        };
        for tool in listing.results.keys().filter(telling) {
            if let Some(baseline) = pins.tools.get(tool).and_then(|pin| pin.baseline) {
                store.count_comparison(baseline)?;
            }
        }
        Ok(recorded)
    })
}

/// Whether the pins are no longer those that the tools were judged by.
fn have_pins_changed(
    store: &Store,
    pins: &Pins<'_>,
    outcome: &CheckOutcome,
) -> Result<bool, PinsError> {
    let Some(server) = store.server(&pins.key)? else {
        return Ok(!pins.tools.is_empty());
    };
    for (name, pin) in &pins.tools {
        if store.last_baseline(server.id, name)? != pin.baseline {
            return Ok(true);
        }
    }
    for name in &outcome.new_tools {
        if store.baseline(server.id, name)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

struct CheckRecorder<'k> {
    store: &'k Store,
    server: ServerId,
    pins: &'k Pins<'k>,
    listing: &'k ServerListing,
    observed: BTreeMap<&'k str, &'k Observation>,
    unchanged: BTreeSet<&'k str>,
    /// The number of tools with each name.
    counts: BTreeMap<&'k str, usize>,
    /// Tools whose results show a difference, but not enough evidence.
    inconclusive: BTreeSet<&'k str>,
    recording: &'k RecordOptions<'k>,
}

impl CheckRecorder<'_> {
    fn find_observation(&self, name: &str) -> Option<&Observation> {
        self.observed.get(name).copied()
    }

    /// Adds baselines for tools that were never pinned as a whole.
    fn add_baselines(
        &self,
        outcome: &CheckOutcome,
        recorded: &mut RecordOutcome,
    ) -> Result<(), PinsError> {
        let learned: BTreeSet<&String> = outcome.first_results.iter().collect();
        let adopted: BTreeSet<&String> = outcome.adopted.iter().collect();
        let mut registered: BTreeSet<&String> = BTreeSet::new();
        for name in &outcome.new_tools {
            if registered.insert(name) {
                self.add_baseline(name, BaselineOrigin::Registered, None)?;
                recorded.registered.push(name.clone());
            }
        }
        for name in adopted.union(&learned) {
            let pin = self.pins.tools.get(*name);
            let origin = if adopted.contains(name) {
                BaselineOrigin::Adopted
            } else {
                BaselineOrigin::Learned
            };
            self.add_baseline(name, origin, pin)?;
        }
        Ok(())
    }

    fn add_baseline(
        &self,
        name: &str,
        origin: BaselineOrigin,
        pin: Option<&Pin>,
    ) -> Result<(), PinsError> {
        let seen = self.find_observation(name);
        let results = self.listing.results.get(name);
        let text;
        let definition = match (seen, pin.and_then(|pin| pin.definition)) {
            (Some(seen), None) => Some((seen.kept(), seen.text())),
            // Results were learned; the definition stays the pinned one.
            (_, Some(kept)) => {
                text = self.store.definition(kept.fingerprint)?;
                Some((kept, text.as_str()))
            }
            (None, None) => None,
        };
        let old = ToolwatchHashes {
            schema: seen
                .map(toolwatch_hash)
                .or_else(|| pin.and_then(|pin| pin.old.schema.clone())),
            response: results
                .map(ObservedResults::pattern_hash)
                .or_else(|| pin.and_then(|pin| pin.old.response.clone())),
        };
        let kept_version = pin.map_or(self.recording.version, |pin| pin.version.as_str());
        self.store.add_baseline(
            self.server,
            &NewBaseline {
                tool: name,
                origin,
                definition,
                shape: results.map(|results| results.shape().to_json().to_string()),
                old,
                version: kept_version,
                approval: self.recording.approval,
            },
        )?;
        Ok(())
    }

    fn record_drift(
        &self,
        tool: &ToolDrift,
        recorded: &mut RecordOutcome,
    ) -> Result<(), PinsError> {
        let name = tool.tool();
        let approvable = self.record_sighting(name, has_result_drift(tool))?;
        if let ToolDrift::Renamed { rename, .. } = tool {
            self.record_sighting(&rename.from, false)?;
        }
        let change_type = tool.change_type();
        let equivalent = tool.class() <= ChangeClass::Info && !self.recording.alert_on_equivalent;
        if equivalent || !self.recording.alert_on.contains(&change_type) {
            return Ok(());
        }
        let held = self.pin_fingerprint(name, tool.change_type())?;
        let id = alert_id(&self.pins.key, tool, &held, self.listing);
        let at = self.recording.approval.at;
        let severity = severity(tool);
        let document = drift_json::tool(tool).to_string();
        let old_form = self.toolwatch_alert(tool).to_string();
        let raised = self.store.raise_alert(
            self.server,
            &NewAlert {
                id: &id,
                tool: name,
                change_type: change_type.as_str(),
                severity: ToolwatchSeverity::from(severity).as_str(),
                class: tool.class().as_str(),
                at,
                document: &document,
                toolwatch_document: &old_form,
            },
        )?;
        recorded.alerts.push(RaisedAlert {
            id,
            tool: name.to_owned(),
            raised,
            approvable,
        });
        Ok(())
    }

    /// Stores an observation, so that it can be approved; if two tools share a name, neither can be.
    fn record_sighting(&self, name: &str, with_results: bool) -> Result<bool, PinsError> {
        let unchanged = self.unchanged.contains(name);
        if self.counts.get(name).is_some_and(|count| *count > 1) {
            self.store.delete_sighting(self.server, name)?;
            return Ok(false);
        }
        let results = self.listing.results.get(name);
        let waits = self.store.sighting(self.server, name)?;
        // Pending results stay pending until new results are observed.
        let (shape, response_hash) = match (results, waits) {
            (Some(results), _) if with_results => (
                Some(results.shape().to_json().to_string()),
                Some(results.pattern_hash()),
            ),
            // Results without enough evidence of drift do not replace those that had enough.
            (results, Some(waits)) if results.is_none() || self.inconclusive.contains(name) => {
                (waits.shape, waits.response_hash)
            }
            _ => (None, None),
        };
        let pinned = self.pins.tools.get(name).and_then(|pin| pin.definition);
        let text;
        let definition = match (self.find_observation(name), pinned) {
            (Some(seen), _) => Some((seen.kept(), seen.text())),
            (None, Some(kept)) if unchanged => {
                text = self.store.definition(kept.fingerprint)?;
                Some((kept, text.as_str()))
            }
            _ => None,
        };
        self.store.save_sighting(
            self.server,
            &NewSighting {
                tool: name,
                definition,
                shape,
                response_hash,
                version: self.recording.version,
                at: self.recording.approval.at,
            },
        )?;
        Ok(true)
    }

    /// Identifies the part of the pin that drifted; for a tool without a pin, its last retirement.
    fn pin_fingerprint(
        &self,
        name: &str,
        change_type: ToolwatchChangeType,
    ) -> Result<String, PinsError> {
        let Some(pin) = self.pins.tools.get(name) else {
            let last = self.store.last_baseline(self.server, name)?;
            return Ok(last.map_or_else(String::new, |id| format!("let go by {id}")));
        };
        let mut held = String::new();
        if change_type != ToolwatchChangeType::Response {
            let kept = pin.definition.map(|kept| kept.fingerprint.to_string());
            held.push_str(&kept.or_else(|| pin.old.schema.clone()).unwrap_or_default());
        }
        if change_type != ToolwatchChangeType::Schema {
            // Hashes of values differ between stores.
            let shape = self
                .pins
                .shape(name)?
                .map(|it| it.without_values().to_json());
            let shape = shape.map(|it| Fingerprint::of(&it).to_string());
            held.push_str(
                &shape
                    .or_else(|| pin.old.response.clone())
                    .unwrap_or_default(),
            );
        }
        Ok(held)
    }

    /// Closes what needs no approval: tools that match their pin again, and tools that came and went.
    fn close_resolved(&self, outcome: &CheckOutcome) -> Result<(), PinsError> {
        let fine: BTreeSet<&String> = outcome.unchanged.iter().collect();
        let mut drifted: BTreeSet<&str> = outcome.drift.tools.iter().map(ToolDrift::tool).collect();
        for tool in &outcome.drift.tools {
            if let ToolDrift::Renamed { rename, .. } = tool {
                drifted.insert(&rename.from);
            }
        }
        let wanted = self.recording.wanted;
        let is_over = |tool: &String| {
            // The check says nothing about tools that it did not include.
            if !wanted.is_empty() && !wanted.contains(tool) {
                return false;
            }
            let went = self.listing.is_complete
                && !self.pins.tools.contains_key(tool)
                && !self.observed.contains_key(tool.as_str());
            (fine.contains(tool) || went) && !drifted.contains(tool.as_str())
        };
        for tool in self.store.alerted_tools(self.server)? {
            if is_over(&tool) {
                self.close_alerts(&tool, &[])?;
            }
        }
        for sighting in self.store.sightings(self.server)? {
            let tool = &sighting.tool;
            if !is_over(tool) {
                continue;
            }
            let measured = self.listing.results.contains_key(tool)
                && !self.inconclusive.contains(tool.as_str());
            if sighting.shape.is_some() && !measured {
                // The definition matches its pin; only the results are still pending.
                self.record_sighting(tool, false)?;
            } else {
                self.store.delete_sighting(self.server, tool)?;
            }
        }
        Ok(())
    }

    /// Closes the alerts of a tool. Alerts about results stay until new results are observed.
    fn close_alerts(&self, tool: &str, except: &[String]) -> Result<(), PinsError> {
        let parts = ToolParts {
            definition: true,
            // Too few results to call it drift are also too few to close the alert.
            results: self.listing.results.contains_key(tool) && !self.inconclusive.contains(tool),
        };
        parts.close_alerts(self.store, self.server, tool, AlertStatus::Closed, except)?;
        Ok(())
    }

    /// The alert in the format of the toolwatch program.
    fn toolwatch_alert(&self, tool: &ToolDrift) -> serde_json::Value {
        let name = tool.tool();
        let pin = self.pins.tools.get(name);
        let pinned = self.pins.observation(name).ok().flatten();
        let results = self.listing.results.get(name);
        let time = |at: Timestamp| format!("{at:.6}");
        let now = self.recording.approval.at;
        let none = || ObservedResults::NO_PATTERN.to_owned();
        let old_schema = pin.and_then(|pin| pin.old.schema.clone());
        let old_schema = old_schema.or_else(|| pinned.as_ref().map(toolwatch_hash));
        let old_response = pin.and_then(|pin| pin.old.response.clone());
        let seen_schema = self
            .find_observation(name)
            .map(toolwatch_hash)
            .or_else(|| old_schema.clone());
        json!({
            "tool_name": name,
            "change_type": tool.change_type().as_str(),
            "old_fingerprint": {
                "tool_name": name,
                "version": pin.map_or(crate::UNKNOWN_VERSION, |pin| pin.version.as_str()),
                "schema_hash": old_schema,
                "response_pattern_hash": old_response.clone().unwrap_or_else(none),
                "captured_at": pin.and_then(|pin| pin.at).map(time),
            },
            "new_fingerprint": {
                "tool_name": name,
                "version": self.recording.version,
                "schema_hash": seen_schema,
                "response_pattern_hash": results
                    .map(ObservedResults::pattern_hash)
                    .or(old_response)
                    .unwrap_or_else(none),
                "captured_at": time(now),
            },
            "detected_at": time(now),
            "severity": if tool.change_type() == ToolwatchChangeType::Behavior {
                "high"
            } else {
                "medium"
            },
        })
    }
}

fn name_counts(listing: &ServerListing) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    let observed = listing.observed.iter().map(|it| it.name.as_str());
    for name in observed.chain(listing.unchanged.iter().map(String::as_str)) {
        *counts.entry(name).or_default() += 1;
    }
    counts
}

fn inconclusive_tools(outcome: &CheckOutcome) -> BTreeSet<&str> {
    let said = outcome.drift.results.iter();
    let said = said.filter(|(_, said)| !said.notes.is_empty() || said.too_few().is_some());
    said.map(|(tool, _)| tool.as_str()).collect()
}

/// The observations by name; if two tools share a name, the one that does not match its pin.
fn observations_by_name(listing: &ServerListing) -> BTreeMap<&str, &Observation> {
    let observed = listing.observed.iter();
    observed.map(|seen| (seen.name.as_str(), seen)).collect()
}
