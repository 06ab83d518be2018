//! Compares the observation of a server with its pins.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use toolwarden_drift::shape::{Significance, ValueKey, compare as compare_shapes, compare_exactly};
use toolwarden_drift::toolwatch::schema_hash;
use toolwarden_drift::{
    Change, ChangeClass, Drift, ListDrift, Options, RecordedCall, ToolDrift, ToolwatchChangeType,
    compare, compare_lists_in_server, missing_fixtures, toolwatch_hash_mismatch,
};
use toolwarden_model::Definition;
use toolwarden_store::ApprovedChange;

use crate::observation::{Observation, align_formats};
use crate::observed_results::ObservedResults;
use crate::pins::{Pins, PinsError};

/// The observation of a server.
#[derive(Debug, Default)]
pub struct ServerListing {
    /// The tools whose text differs from the pinned one.
    pub observed: Vec<Observation>,
    /// The tools whose text equals the pinned one, by name.
    pub unchanged: Vec<String>,
    /// Whether this is the complete list of the server.
    pub is_complete: bool,
    /// The results of tools, by name.
    pub results: BTreeMap<String, ObservedResults>,
    /// How these results were sampled.
    pub sampling: ResultSampling,
}

/// How results were sampled, which decides how they are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResultSampling {
    /// From arbitrary calls: members and values vary by chance.
    #[default]
    Chance,
    /// From the same calls with deterministic answers: any difference is a change.
    Fixtures,
}

impl ServerListing {
    /// Adds a result of a tool. The result is checked against the output schema of the observed definition
    /// or, if the tool was not observed, of its pin.
    ///
    /// # Errors
    /// A pin cannot be read.
    pub fn observe_result(
        &mut self,
        tool: &str,
        result: &Value,
        pins: Option<&Pins<'_>>,
        key: &ValueKey,
    ) -> Result<(), PinsError> {
        if !self.results.contains_key(tool) {
            let pinned = match pins {
                Some(pins) => pins.observation(tool)?,
                None => None,
            };
            let mut observed = self.observed.iter();
            let seen = observed.find(|seen| seen.name == tool).or(pinned.as_ref());
            let promised = seen.and_then(Observation::output_schema);
            self.results
                .insert(tool.to_owned(), ObservedResults::new(key, promised));
        }
        if let Some(results) = self.results.get_mut(tool) {
            results.observe(result, key);
        }
        Ok(())
    }

    /// Treats the tools that match these pins as observed definitions, to compare them with other pins.
    pub(crate) fn parse_unchanged(&mut self, pins: &Pins<'_>) -> Result<(), PinsError> {
        for name in std::mem::take(&mut self.unchanged) {
            self.observed.extend(pins.observation(&name)?);
        }
        Ok(())
    }

    /// A name that two of the tools share.
    #[must_use]
    pub fn duplicate_name(&self) -> Option<&str> {
        let mut seen = BTreeSet::new();
        let observed = self.observed.iter().map(|it| it.name.as_str());
        let mut names = observed.chain(self.unchanged.iter().map(String::as_str));
        names.find(|name| !seen.insert(*name))
    }
}

/// The outcome of comparing a listing, and what to store.
#[derive(Debug, Default)]
pub struct CheckOutcome {
    /// The drift, without approved changes.
    pub drift: ListDrift,
    /// Tools without a pin, of a server that is not sealed.
    pub new_tools: Vec<String>,
    /// Tools that match a pin of which only the hash was known.
    pub adopted: Vec<String>,
    /// Tools whose results were observed for the first time.
    pub first_results: Vec<String>,
    /// Tools with approved changes, and how many.
    pub approved: Vec<(String, usize)>,
    /// Tools that match their pin.
    pub unchanged: Vec<String>,
}

/// Compares a listing with the pins of its server.
///
/// # Errors
/// A pin cannot be read.
pub(crate) fn judge(
    pins: &Pins<'_>,
    listing: &mut ServerListing,
    options: &Options,
    calls: &[RecordedCall],
) -> Result<CheckOutcome, PinsError> {
    let mut outcome = CheckOutcome::default();
    let exact: BTreeSet<String> = listing.unchanged.iter().cloned().collect();
    let mut old: BTreeMap<String, Observation> = BTreeMap::new();
    let mut doubles: BTreeMap<String, Observation> = BTreeMap::new();
    let mut compared: Vec<usize> = Vec::new();
    for (index, seen) in listing.observed.iter().enumerate() {
        let name = &seen.name;
        match pins.tools.get(name) {
            None if pins.sealed => compared.push(index),
            None => outcome.new_tools.push(name.clone()),
            Some(pin) if pin.definition.is_none() => match &pin.old.schema {
                Some(known) if *known != toolwatch_hash(seen) => {
                    let drift = Drift::from_toolwatch_hash(name);
                    outcome.drift.tools.push(ToolDrift::Changed(drift));
                }
                _ => outcome.adopted.push(name.clone()),
            },
            Some(_) => {
                compared.push(index);
                let Some(pinned) = pins.observation(name)? else {
                    continue;
                };
                // A second tool with the name of a pinned tool that still exists: it imitates the first.
                if exact.contains(name) {
                    doubles.insert(name.clone(), pinned.clone());
                }
                old.insert(name.clone(), pinned);
            }
        }
    }
    if listing.is_complete {
        let seen: BTreeSet<&str> = listing.observed.iter().map(|it| it.name.as_str()).collect();
        for name in pins.tools.keys() {
            if seen.contains(name.as_str()) || exact.contains(name) {
                continue;
            }
            match pins.observation(name)? {
                Some(pinned) => {
                    old.insert(name.clone(), pinned);
                }
                None => outcome
                    .drift
                    .tools
                    .push(ToolDrift::Removed { tool: name.clone() }),
            }
        }
    }
    let names: BTreeSet<&str> = pins.tools.keys().map(String::as_str).collect();
    compare_all(
        &mut outcome,
        listing,
        (old, doubles),
        &compared,
        &CompareContext {
            options,
            calls,
            names: &names,
        },
    );
    // Two tools with the same text both match the pin, and are still two tools.
    let mut once = BTreeSet::new();
    for name in listing.unchanged.iter().filter(|name| !once.insert(*name)) {
        outcome.drift.add_double(name);
    }
    let drifted: BTreeSet<&str> = outcome.drift.tools.iter().map(ToolDrift::tool).collect();
    let mut unchanged: BTreeSet<String> = exact;
    let named = compared
        .iter()
        .filter_map(|index| listing.observed.get(*index));
    unchanged.extend(named.map(|it| it.name.clone()));
    unchanged.extend(outcome.adopted.iter().cloned());
    unchanged.retain(|name| !drifted.contains(name.as_str()));
    outcome.unchanged = unchanged.into_iter().collect();
    remove_approved(&mut outcome, pins, listing, options)?;
    check_results(&mut outcome, pins, listing)?;
    outcome.drift.unchanged = outcome.unchanged.len();
    Ok(outcome)
}

/// How definitions are compared, and together with which tools.
struct CompareContext<'c> {
    options: &'c Options,
    calls: &'c [RecordedCall],
    /// The names of all pinned tools.
    names: &'c BTreeSet<&'c str>,
}

fn compare_all(
    outcome: &mut CheckOutcome,
    listing: &mut ServerListing,
    (mut old, mut doubles): (BTreeMap<String, Observation>, BTreeMap<String, Observation>),
    compared: &[usize],
    comparing: &CompareContext<'_>,
) {
    if old.is_empty() && compared.is_empty() {
        return;
    }
    let is_compared = |index: usize| compared.binary_search(&index).is_ok();
    let observed = listing.observed.iter_mut().enumerate();
    let observed = observed.filter(|(index, _)| is_compared(*index));
    let mut new: Vec<&mut Observation> = doubles.values_mut().collect();
    new.extend(observed.map(|(_, seen)| seen));
    let mut reformatted = Vec::new();
    for seen in &mut new {
        let Some(pinned) = old.get_mut(&seen.name) else {
            continue;
        };
        let formats = (pinned.view().id(), seen.view().id());
        if !align_formats(pinned, seen) {
            let change = toolwarden_drift::format_change(&seen.name, formats.0, formats.1);
            reformatted.push((seen.name.clone(), change));
        }
    }
    let before: Vec<_> = old.values().map(Observation::observed).collect();
    let after: Vec<_> = new.iter().map(|seen| seen.observed()).collect();
    let CompareContext {
        options,
        calls,
        names,
    } = comparing;
    let drift = compare_lists_in_server(&before, &after, options, calls, names);
    outcome.drift.tools.extend(drift.tools);
    for seen in new.iter().filter(|it| it.opaque) {
        outcome.drift.mark_unknown(&seen.name);
    }
    for (tool, change) in reformatted {
        outcome
            .drift
            .add(Drift::of_results(&tool, None, vec![change]));
    }
}

/// The hash that the toolwatch program would compute for a definition.
pub(crate) fn toolwatch_hash(seen: &Observation) -> String {
    let text = Definition::parse(seen.text());
    text.map_or_else(|_| String::new(), |(_, parsed)| schema_hash(&parsed.value))
}

/// Removes changes that were approved individually.
///
/// An approval covers a change in one definition; it applies to a later definition only if that one means
/// the same.
fn remove_approved(
    outcome: &mut CheckOutcome,
    pins: &Pins<'_>,
    listing: &ServerListing,
    options: &Options,
) -> Result<(), PinsError> {
    let Some(store) = pins.store() else {
        return Ok(());
    };
    let mut kept = Vec::new();
    for tool in std::mem::take(&mut outcome.drift.tools) {
        let ToolDrift::Changed(mut drift) = tool else {
            kept.push(tool);
            continue;
        };
        let baseline = pins.tools.get(&drift.tool).and_then(|pin| pin.baseline);
        let approved = match baseline {
            Some(baseline) => store.approved_changes(baseline)?,
            None => Vec::new(),
        };
        let seen = listing.observed.iter().find(|it| it.name == drift.tool);
        let mut valid = Vec::new();
        for approval in approved {
            if let Some(seen) = seen
                && still_holds(pins, &approval, seen, options)?
            {
                valid.push(approval.change);
            }
        }
        let before = drift.changes.len();
        drift.remove_changes(|id| valid.contains(&id.to_string()));
        let taken = before - drift.changes.len();
        if taken > 0 {
            outcome.approved.push((drift.tool.clone(), taken));
        }
        if drift.changes.is_empty() && taken > 0 {
            outcome.unchanged.push(drift.tool);
        } else {
            kept.push(ToolDrift::Changed(drift));
        }
    }
    outcome.drift.tools = kept;
    Ok(())
}

fn still_holds(
    pins: &Pins<'_>,
    approval: &ApprovedChange,
    seen: &Observation,
    options: &Options,
) -> Result<bool, PinsError> {
    if approval.definition.fingerprint == seen.kept().fingerprint {
        return Ok(true);
    }
    let approved = pins.read_definition(&seen.name, approval.definition)?;
    // The binding of approvals does not depend on how the rest is compared.
    let strict = Options {
        budget: options.budget,
        ..Options::default()
    };
    let later = compare(&approved.observed(), &seen.observed(), &strict, &[]);
    Ok(later
        .changes
        .iter()
        .all(|change| change.class == ChangeClass::Equivalent))
}

/// Compares results with the pinned shape and with the tool's output schema.
fn check_results(
    outcome: &mut CheckOutcome,
    pins: &Pins<'_>,
    listing: &ServerListing,
) -> Result<(), PinsError> {
    let mut drifted = BTreeSet::new();
    for (tool, results) in &listing.results {
        let Some(pin) = pins.tools.get(tool) else {
            continue;
        };
        let mut changes = results.violations(tool);
        let mut compared = None;
        match pins.shape(tool)? {
            Some(pinned) => {
                let look = match (pins.store(), pin.baseline) {
                    (Some(store), Some(baseline)) => {
                        u64::from(store.comparison_count(baseline)?) + 1
                    }
                    _ => 1,
                };
                let confidence = Significance {
                    look,
                    ..Significance::default()
                };
                compared = Some(match listing.sampling {
                    ResultSampling::Chance => compare_shapes(&pinned, results.shape(), &confidence),
                    ResultSampling::Fixtures => compare_exactly(&pinned, results.shape()),
                });
            }
            None => match &pin.old.response {
                Some(known)
                    if *known != ObservedResults::NO_PATTERN
                        && *known != results.pattern_hash() =>
                {
                    changes.push(toolwatch_hash_mismatch(tool));
                }
                _ => outcome.first_results.push(tool.clone()),
            },
        }
        let drift = Drift::of_results(tool, compared, changes);
        if !drift.changes.is_empty() {
            drifted.insert(tool.as_str());
        }
        outcome.drift.add(drift);
    }
    let missing = missing_fixtures_of(pins, listing)?;
    for (tool, change) in &missing {
        drifted.insert(tool.as_str());
        outcome
            .drift
            .add(Drift::of_results(tool, None, vec![change.clone()]));
    }
    outcome
        .unchanged
        .retain(|name| !drifted.contains(name.as_str()));
    Ok(())
}

/// Tools that are still offered and whose pinned fixtures have no counterpart.
fn missing_fixtures_of(
    pins: &Pins<'_>,
    listing: &ServerListing,
) -> Result<Vec<(String, Change)>, PinsError> {
    let mut missing = Vec::new();
    if listing.sampling != ResultSampling::Fixtures {
        return Ok(missing);
    }
    let observed = listing.observed.iter().map(|it| &it.name);
    let offered: BTreeSet<&String> = observed.chain(&listing.unchanged).collect();
    for tool in pins.tools.keys() {
        if listing.results.contains_key(tool) || !offered.contains(tool) {
            continue;
        }
        if let Some(pinned) = pins.shape(tool)? {
            let change = missing_fixtures(tool, pinned.results());
            missing.push((tool.clone(), change));
        }
    }
    Ok(missing)
}

/// The toolwatch program's name for the difference between a pin and the current observation.
///
/// # Errors
/// A pin cannot be read.
pub fn toolwatch_mutation(
    pins: &Pins<'_>,
    seen: &Observation,
    results: Option<&ObservedResults>,
) -> Result<Option<ToolwatchChangeType>, PinsError> {
    let Some(pin) = pins.tools.get(&seen.name) else {
        return Ok(None);
    };
    let pinned = match (&pin.old.schema, pins.observation(&seen.name)?) {
        (Some(hash), _) => Some(hash.clone()),
        (None, Some(pinned)) => Some(toolwatch_hash(&pinned)),
        (None, None) => None,
    };
    let schema = pinned.is_some_and(|pinned| pinned != toolwatch_hash(seen));
    let known = pin.old.response.as_deref();
    let response = match (known, results) {
        (Some(known), Some(results)) => known != results.pattern_hash(),
        _ => false,
    };
    Ok(match (schema, response) {
        (true, true) => Some(ToolwatchChangeType::Behavior),
        (true, false) => Some(ToolwatchChangeType::Schema),
        (false, true) => Some(ToolwatchChangeType::Response),
        (false, false) => None,
    })
}
