//! Keeps what a check found. Baselines are added for what was never pinned, and never replaced.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::json;
use toolwarden_drift::{ChangeType, Class, Severity, ToolDrift, document};
use toolwarden_model::Fingerprint;
use toolwarden_store::{
    AlertStatus, Approval, NewAlert, NewBaseline, NewSighting, OldHashes, Origin, Raised, ServerId,
    Store,
};

use crate::judge::{Judged, Listing, hash_of};
use crate::observation::Observation;
use crate::pins::{Pin, Pins, PinsError};
use crate::results::Results;

/// What a check left behind.
#[derive(Debug, Default)]
pub struct Recorded {
    /// The alerts of this check.
    pub alerts: Vec<RaisedAlert>,
    /// The tools that were pinned because they never were.
    pub registered: Vec<String>,
}

/// An alert of a check.
#[derive(Clone, Debug)]
pub struct RaisedAlert {
    /// Its id.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// Whether it says something new.
    pub raised: Raised,
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
            recording,
        };
        keeper.baselines(judged, &mut recorded)?;
        for tool in &judged.drift.tools {
            keeper.drifted(tool, &mut recorded)?;
        }
        keeper.settle(judged)?;
        for tool in listing.results.keys() {
            if let Some(baseline) = pins.tools.get(tool).and_then(|pin| pin.baseline) {
                store.count_look(baseline)?;
            }
        }
        Ok(recorded)
    })
}

struct Keeper<'k> {
    store: &'k Store,
    server: ServerId,
    pins: &'k Pins<'k>,
    listing: &'k Listing,
    observed: BTreeMap<&'k str, &'k Observation>,
    recording: &'k Recording<'k>,
}

impl Keeper<'_> {
    fn seen(&self, name: &str) -> Option<&Observation> {
        self.observed.get(name).copied()
    }

    /// Adds baselines for what was never pinned as a whole.
    fn baselines(&self, judged: &Judged, recorded: &mut Recorded) -> Result<(), PinsError> {
        // Another process may have been faster.
        let known = self.store.baselines(self.server)?;
        let known: BTreeMap<&str, i64> = known.iter().map(|it| (it.tool.as_str(), it.id)).collect();
        let learned: BTreeSet<&String> = judged.learned.iter().collect();
        let adopted: BTreeSet<&String> = judged.adopted.iter().collect();
        let mut registered: BTreeSet<&String> = BTreeSet::new();
        for name in &judged.newcomers {
            if !known.contains_key(name.as_str()) && registered.insert(name) {
                self.add(name, Origin::Registered, None)?;
                recorded.registered.push(name.clone());
            }
        }
        for name in adopted.union(&learned) {
            let pin = self.pins.tools.get(*name);
            let same = pin.and_then(|pin| pin.baseline) == known.get(name.as_str()).copied();
            if same {
                let origin = if adopted.contains(name) {
                    Origin::Adopted
                } else {
                    Origin::Learned
                };
                self.add(name, origin, pin)?;
            }
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
        if tool.class() == Class::Equivalent {
            return Ok(());
        }
        self.sight(name)?;
        if let ToolDrift::Renamed { rename, .. } = tool {
            self.sight(&rename.from)?;
        }
        let change_type = tool.change_type();
        if !self.recording.alert_on.contains(&change_type) {
            return Ok(());
        }
        let id = alert_id(self.pins, tool, self.seen(name));
        let at = self.recording.approval.at;
        let severity = severity(tool);
        let document = document::tool(tool).to_string();
        let old_form = self.old_form(tool, severity).to_string();
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
        self.store
            .settle(self.server, name, AlertStatus::Closed, Some(&id))?;
        recorded.alerts.push(RaisedAlert {
            id,
            tool: name.to_owned(),
            raised,
        });
        Ok(())
    }

    /// Keeps what was seen, so that it can be approved.
    fn sight(&self, name: &str) -> Result<(), PinsError> {
        let results = self.listing.results.get(name);
        let seen = self.seen(name);
        let unchanged = self.listing.unchanged.iter().any(|it| it == name);
        let text;
        let definition = match (
            seen,
            self.pins.tools.get(name).and_then(|pin| pin.definition),
        ) {
            (Some(seen), _) => Some((seen.kept(), seen.text())),
            (None, Some(kept)) if unchanged || (results.is_some() && !self.listing.whole) => {
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
                shape: results.map(|results| results.shape().to_json().to_string()),
                response_hash: results.map(Results::pattern_hash),
                version: self.recording.version,
                at: self.recording.approval.at,
            },
        )?;
        Ok(())
    }

    /// What is as pinned again needs nobody's approval.
    fn settle(&self, judged: &Judged) -> Result<(), PinsError> {
        let fine: BTreeSet<&String> = judged.unchanged.iter().collect();
        for tool in self.store.alerted_tools(self.server)? {
            if fine.contains(&tool) {
                self.store
                    .settle(self.server, &tool, AlertStatus::Closed, None)?;
            }
        }
        for sighting in self.store.sightings(self.server)? {
            if fine.contains(&sighting.tool) {
                self.store.drop_sighting(self.server, &sighting.tool)?;
            }
        }
        Ok(())
    }

    /// The alert as the toolwatch program writes it.
    fn old_form(&self, tool: &ToolDrift, severity: Severity) -> serde_json::Value {
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
            "severity": severity.as_str(),
        })
    }
}

/// What was seen by name; of two tools of one name the one that is not as pinned.
fn by_name(listing: &Listing) -> BTreeMap<&str, &Observation> {
    let observed = listing.observed.iter();
    observed.map(|seen| (seen.name.as_str(), seen)).collect()
}

/// How grave drift is: the class counts, and so does drift of definition and results at once.
fn severity(tool: &ToolDrift) -> Severity {
    let both = tool.change_type() == ChangeType::Behavior;
    let by_class = tool.class().severity();
    if both { Severity::High } else { by_class }
}

/// Names drift by what it is held to and what changed, so that seeing it again is no news.
fn alert_id(pins: &Pins<'_>, tool: &ToolDrift, seen: Option<&Observation>) -> String {
    let name = tool.tool();
    let baseline = pins.tools.get(name).and_then(|pin| pin.baseline);
    let mut parts = vec![
        pins.key.name.clone(),
        pins.key.scope.clone(),
        name.to_owned(),
        baseline.map_or_else(String::new, |id| id.to_string()),
    ];
    match tool {
        ToolDrift::Changed(drift) => {
            let mut ids: Vec<String> = drift.changes.iter().map(|it| it.id.to_string()).collect();
            ids.sort_unstable();
            parts.extend(ids);
        }
        ToolDrift::Added { .. } | ToolDrift::Removed { .. } | ToolDrift::Renamed { .. } => {
            let kept = seen.map(|seen| seen.kept().fingerprint.to_string());
            parts.push(kept.unwrap_or_else(|| "gone".to_owned()));
        }
    }
    let digest = Fingerprint::tagged("toolwarden/alert/v1", parts.iter().map(String::as_str));
    digest.to_string().chars().take(12).collect()
}
