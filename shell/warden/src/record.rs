//! Keeps what a check found. Baselines are added for what was never pinned, and never replaced.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::json;
use toolwarden_drift::{ChangeType, Class, Options, RecordedCall, ToolDrift, document};
use toolwarden_model::Fingerprint;
use toolwarden_store::{
    AlertStatus, Approval, NewAlert, NewBaseline, NewSighting, OldHashes, Origin, Raised, ServerId,
    ServerKey, Store,
};

use crate::alert::{alert_id, drifted_results, severity};
use crate::judge::{Judged, Listing, Sampling, hash_of, judge};
use crate::observation::Observation;
use crate::parts::Parts;
use crate::pins::{Pin, Pins, PinsError};
use crate::results::Results;

/// The most alerts of a server that are kept though they are over without having been approved.
const MOST_CLOSED_ALERTS: usize = 200;

/// What a check left behind.
#[derive(Debug, Default)]
pub struct Recorded {
    /// The alerts of this check.
    pub alerts: Vec<RaisedAlert>,
    /// The tools that were pinned because they never were.
    pub registered: Vec<String>,
    /// Whether somebody else pinned a tool in the meantime, so that it has to be judged again.
    pub overtaken: bool,
}

impl Recorded {
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
    /// Whether it says something new.
    pub raised: Raised,
    /// Whether there is something to approve: not where two tools have one name.
    pub approvable: bool,
}

/// How a check is kept.
#[derive(Clone, Debug)]
pub struct Recording<'r> {
    /// When the check was made, and for whom tools are registered.
    pub approval: &'r Approval,
    /// The label of the versions seen.
    pub version: &'r str,
    /// Whether a server seen for the first time is sealed.
    pub seal: bool,
    /// The change types that alert.
    pub alert_on: &'r [ChangeType],
    /// Whether the same contract in other words, and what changes nothing, alerts too.
    pub alert_on_equivalent: bool,
    /// The tools that were looked at; none means all.
    pub wanted: &'r [String],
}

/// Holds a listing to the store and keeps what is found.
///
/// # Errors
/// The store cannot be read or written.
pub fn check(
    store: &Store,
    key: &ServerKey,
    listing: &mut Listing,
    options: &Options,
    calls: &[RecordedCall],
    recording: &Recording<'_>,
) -> Result<(Judged, Recorded), PinsError> {
    loop {
        let wanted = recording.wanted.iter().map(String::as_str);
        let pins = if recording.wanted.is_empty() {
            Pins::of_store(store, key)?
        } else {
            Pins::of_tools(store, key, wanted)?
        };
        let judged = judge(&pins, listing, options, calls)?;
        let recorded = record(store, &pins, listing, &judged, recording)?;
        // What another process pinned while this one looked is what tools are held to.
        if !recorded.overtaken {
            return Ok((judged, recorded));
        }
    }
}

/// Keeps what a check found, all of it or nothing.
///
/// # Errors
/// The store cannot be written.
pub fn record(
    store: &Store,
    pins: &Pins<'_>,
    listing: &Listing,
    judged: &Judged,
    recording: &Recording<'_>,
) -> Result<Recorded, PinsError> {
    let nothing = judged.drift.tools.is_empty()
        && judged.newcomers.is_empty()
        && judged.adopted.is_empty()
        && listing.results.is_empty();
    if let (true, Some(server)) = (nothing, &pins.server)
        && store.sightings(server.id)?.is_empty()
        && store.alerted_tools(server.id)?.is_empty()
    {
        return Ok(Recorded::default());
    }
    store.write(|store| {
        // Judged against what somebody else has replaced in the meantime, nothing holds.
        if is_overtaken(store, pins, judged)? {
            return Ok(Recorded {
                overtaken: true,
                ..Recorded::default()
            });
        }
        let seal = recording.seal && !pins.known;
        let server = store
            .keep_server(&pins.key, seal, recording.approval.at)?
            .id;
        let mut recorded = Recorded::default();
        let keeper = Keeper {
            store,
            server,
            pins,
            listing,
            observed: by_name(listing),
            unchanged: listing.unchanged.iter().map(String::as_str).collect(),
            counts: counts(listing),
            noted: noted(judged),
            recording,
        };
        keeper.baselines(judged, &mut recorded)?;
        for tool in &judged.drift.tools {
            keeper.drifted(tool, &mut recorded)?;
        }
        let mut open: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for alert in &recorded.alerts {
            open.entry(&alert.tool).or_default().push(alert.id.clone());
        }
        for name in judged.drift.tools.iter().map(ToolDrift::tool) {
            keeper.close(name, open.get(name).map_or(&[], Vec::as_slice))?;
        }
        for tool in &judged.drift.tools {
            if let ToolDrift::Renamed { rename, .. } = tool {
                keeper.close(&rename.from, &[])?;
            }
        }
        keeper.settle(judged)?;
        store.forget_old_alerts(server, MOST_CLOSED_ALERTS)?;
        // A look that could not find anything cannot err either, so later looks do not pay for it.
        let telling = |tool: &&String| {
            let said = judged.drift.results.iter().find(|(name, _)| name == *tool);
            listing.sampling == Sampling::Chance
                && said.is_none_or(|(_, said)| said.too_few().is_none())
        };
        for tool in listing.results.keys().filter(telling) {
            if let Some(baseline) = pins.tools.get(tool).and_then(|pin| pin.baseline) {
                store.count_look(baseline)?;
            }
        }
        Ok(recorded)
    })
}

/// Whether what tools are held to is not what they were judged by any more.
fn is_overtaken(store: &Store, pins: &Pins<'_>, judged: &Judged) -> Result<bool, PinsError> {
    let Some(server) = store.server(&pins.key)? else {
        return Ok(!pins.tools.is_empty());
    };
    for (name, pin) in &pins.tools {
        if store.last_baseline(server.id, name)? != pin.baseline {
            return Ok(true);
        }
    }
    for name in &judged.newcomers {
        if store.baseline(server.id, name)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

struct Keeper<'k> {
    store: &'k Store,
    server: ServerId,
    pins: &'k Pins<'k>,
    listing: &'k Listing,
    observed: BTreeMap<&'k str, &'k Observation>,
    unchanged: BTreeSet<&'k str>,
    /// How many tools have a name.
    counts: BTreeMap<&'k str, usize>,
    /// Tools whose results say something, but not enough.
    noted: BTreeSet<&'k str>,
    recording: &'k Recording<'k>,
}

impl Keeper<'_> {
    fn seen(&self, name: &str) -> Option<&Observation> {
        self.observed.get(name).copied()
    }

    /// Adds baselines for what was never pinned as a whole.
    fn baselines(&self, judged: &Judged, recorded: &mut Recorded) -> Result<(), PinsError> {
        let learned: BTreeSet<&String> = judged.learned.iter().collect();
        let adopted: BTreeSet<&String> = judged.adopted.iter().collect();
        let mut registered: BTreeSet<&String> = BTreeSet::new();
        for name in &judged.newcomers {
            if registered.insert(name) {
                self.add(name, Origin::Registered, None)?;
                recorded.registered.push(name.clone());
            }
        }
        for name in adopted.union(&learned) {
            let pin = self.pins.tools.get(*name);
            let origin = if adopted.contains(name) {
                Origin::Adopted
            } else {
                Origin::Learned
            };
            self.add(name, origin, pin)?;
        }
        Ok(())
    }

    fn add(&self, name: &str, origin: Origin, pin: Option<&Pin>) -> Result<(), PinsError> {
        let seen = self.seen(name);
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
        let old = OldHashes {
            schema: seen
                .map(hash_of)
                .or_else(|| pin.and_then(|pin| pin.old.schema.clone())),
            response: results
                .map(Results::pattern_hash)
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

    fn drifted(&self, tool: &ToolDrift, recorded: &mut Recorded) -> Result<(), PinsError> {
        let name = tool.tool();
        let approvable = self.sight(name, drifted_results(tool))?;
        if let ToolDrift::Renamed { rename, .. } = tool {
            self.sight(&rename.from, false)?;
        }
        let change_type = tool.change_type();
        let equivalent = tool.class() <= Class::Info && !self.recording.alert_on_equivalent;
        if equivalent || !self.recording.alert_on.contains(&change_type) {
            return Ok(());
        }
        let held = self.held_to(name, tool.change_type())?;
        let id = alert_id(&self.pins.key, tool, &held, self.listing);
        let at = self.recording.approval.at;
        let severity = severity(tool);
        let document = document::tool(tool).to_string();
        let old_form = self.old_form(tool).to_string();
        let raised = self.store.raise(
            self.server,
            &NewAlert {
                id: &id,
                tool: name,
                change_type: change_type.as_str(),
                severity: severity.as_str(),
                class: tool.class().as_str(),
                at,
                document: &document,
                old_form: &old_form,
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

    /// Keeps what was seen, so that it can be approved; of two tools with one name none can be.
    fn sight(&self, name: &str, with_results: bool) -> Result<bool, PinsError> {
        let unchanged = self.unchanged.contains(name);
        if self.counts.get(name).is_some_and(|count| *count > 1) {
            self.store.drop_sighting(self.server, name)?;
            return Ok(false);
        }
        let results = self.listing.results.get(name);
        let waits = self.store.sighting(self.server, name)?;
        // Results that wait go on waiting until results are seen again.
        let (shape, response_hash) = match (results, waits) {
            (Some(results), _) if with_results => (
                Some(results.shape().to_json().to_string()),
                Some(results.pattern_hash()),
            ),
            // Too few results to call it drift do not take the place of those that were enough.
            (results, Some(waits)) if results.is_none() || self.noted.contains(name) => {
                (waits.shape, waits.response_hash)
            }
            _ => (None, None),
        };
        let pinned = self.pins.tools.get(name).and_then(|pin| pin.definition);
        let text;
        let definition = match (self.seen(name), pinned) {
            (Some(seen), _) => Some((seen.kept(), seen.text())),
            (None, Some(kept)) if unchanged => {
                text = self.store.definition(kept.fingerprint)?;
                Some((kept, text.as_str()))
            }
            _ => None,
        };
        self.store.keep_sighting(
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

    /// What names the part of the pin that drifted; for a tool without one, what it was let go by.
    fn held_to(&self, name: &str, change_type: ChangeType) -> Result<String, PinsError> {
        let Some(pin) = self.pins.tools.get(name) else {
            let last = self.store.last_baseline(self.server, name)?;
            return Ok(last.map_or_else(String::new, |id| format!("let go by {id}")));
        };
        let mut held = String::new();
        if change_type != ChangeType::Response {
            let kept = pin.definition.map(|kept| kept.fingerprint.to_string());
            held.push_str(&kept.or_else(|| pin.old.schema.clone()).unwrap_or_default());
        }
        if change_type != ChangeType::Schema {
            // Hashes of values differ from store to store.
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

    /// What is as pinned again needs nobody's approval, and neither does what came and went.
    fn settle(&self, judged: &Judged) -> Result<(), PinsError> {
        let fine: BTreeSet<&String> = judged.unchanged.iter().collect();
        let mut drifted: BTreeSet<&str> = judged.drift.tools.iter().map(ToolDrift::tool).collect();
        for tool in &judged.drift.tools {
            if let ToolDrift::Renamed { rename, .. } = tool {
                drifted.insert(&rename.from);
            }
        }
        let wanted = self.recording.wanted;
        let is_over = |tool: &String| {
            // Of tools nobody looked at, nothing is known.
            if !wanted.is_empty() && !wanted.contains(tool) {
                return false;
            }
            let went = self.listing.whole
                && !self.pins.tools.contains_key(tool)
                && !self.observed.contains_key(tool.as_str());
            (fine.contains(tool) || went) && !drifted.contains(tool.as_str())
        };
        for tool in self.store.alerted_tools(self.server)? {
            if is_over(&tool) {
                self.close(&tool, &[])?;
            }
        }
        for sighting in self.store.sightings(self.server)? {
            let tool = &sighting.tool;
            if !is_over(tool) {
                continue;
            }
            let measured =
                self.listing.results.contains_key(tool) && !self.noted.contains(tool.as_str());
            if sighting.shape.is_some() && !measured {
                // The definition is as pinned; only the results still wait.
                self.sight(tool, false)?;
            } else {
                self.store.drop_sighting(self.server, tool)?;
            }
        }
        Ok(())
    }

    /// Closes the alerts of a tool. What is known of results stands until results are seen again.
    fn close(&self, tool: &str, except: &[String]) -> Result<(), PinsError> {
        let parts = Parts {
            definition: true,
            // Too few results to call it drift are too few to call it over.
            results: self.listing.results.contains_key(tool) && !self.noted.contains(tool),
        };
        parts.settle(self.store, self.server, tool, AlertStatus::Closed, except)?;
        Ok(())
    }

    /// The alert as the toolwatch program writes it.
    fn old_form(&self, tool: &ToolDrift) -> serde_json::Value {
        let name = tool.tool();
        let pin = self.pins.tools.get(name);
        let pinned = self.pins.observation(name).ok().flatten();
        let results = self.listing.results.get(name);
        let time = |at: Timestamp| format!("{at:.6}");
        let now = self.recording.approval.at;
        let none = || Results::NO_PATTERN.to_owned();
        let old_schema = pin.and_then(|pin| pin.old.schema.clone());
        let old_schema = old_schema.or_else(|| pinned.as_ref().map(hash_of));
        let old_response = pin.and_then(|pin| pin.old.response.clone());
        let seen_schema = self.seen(name).map(hash_of).or_else(|| old_schema.clone());
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
                    .map(Results::pattern_hash)
                    .or(old_response)
                    .unwrap_or_else(none),
                "captured_at": time(now),
            },
            "detected_at": time(now),
            "severity": if tool.change_type() == ChangeType::Behavior {
                "high"
            } else {
                "medium"
            },
        })
    }
}

fn counts(listing: &Listing) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    let observed = listing.observed.iter().map(|it| it.name.as_str());
    for name in observed.chain(listing.unchanged.iter().map(String::as_str)) {
        *counts.entry(name).or_default() += 1;
    }
    counts
}

fn noted(judged: &Judged) -> BTreeSet<&str> {
    let said = judged.drift.results.iter();
    let said = said.filter(|(_, said)| !said.notes.is_empty() || said.too_few().is_some());
    said.map(|(tool, _)| tool.as_str()).collect()
}

/// What was seen by name; of two tools of one name the one that is not as pinned.
fn by_name(listing: &Listing) -> BTreeMap<&str, &Observation> {
    let observed = listing.observed.iter();
    observed.map(|seen| (seen.name.as_str(), seen)).collect()
}
