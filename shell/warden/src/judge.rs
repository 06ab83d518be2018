//! What is seen of a server, held to its pins.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use toolwarden_drift::shape::{Confidence, ValueKey, compare as compare_shapes, compare_exactly};
use toolwarden_drift::toolwatch::schema_hash;
use toolwarden_drift::{
    ChangeType, Class, Drift, ListDrift, Options, RecordedCall, ToolDrift, compare,
    compare_lists_among, unlike_import,
};
use toolwarden_model::Definition;
use toolwarden_store::ApprovedChange;

use crate::observation::{Observation, share_words};
use crate::pins::{Pins, PinsError};
use crate::results::Results;

/// What was seen of a server.
#[derive(Debug, Default)]
pub struct Listing {
    /// The tools whose text is not the pinned one.
    pub observed: Vec<Observation>,
    /// The tools whose text is the pinned one, by name.
    pub unchanged: Vec<String>,
    /// Whether this is everything the server offers.
    pub whole: bool,
    /// What tools returned, by name.
    pub results: BTreeMap<String, Results>,
    /// How these results come about.
    pub sampling: Sampling,
}

/// How results come about, which decides how they are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sampling {
    /// Whatever calls brought: members and values come and go by chance.
    #[default]
    Chance,
    /// The same calls, answered the same way every time: any difference is a change.
    Fixtures,
}

impl Listing {
    /// Takes in what a tool returned, beside what the tool promises for it now or did when pinned.
    ///
    /// # Errors
    /// What is pinned cannot be read.
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
                .insert(tool.to_owned(), Results::new(key, promised));
        }
        if let Some(results) = self.results.get_mut(tool) {
            results.observe(result, key);
        }
        Ok(())
    }

    /// A name that two of the tools have.
    #[must_use]
    pub fn doubled(&self) -> Option<&str> {
        let mut seen = BTreeSet::new();
        let observed = self.observed.iter().map(|it| it.name.as_str());
        let mut names = observed.chain(self.unchanged.iter().map(String::as_str));
        names.find(|name| !seen.insert(*name))
    }
}

/// What a listing means, and what there is to be kept of it.
#[derive(Debug, Default)]
pub struct Judged {
    /// What drifted; what was approved is not in it.
    pub drift: ListDrift,
    /// Tools without a pin of a server that is not sealed.
    pub newcomers: Vec<String>,
    /// Tools of which a hash was known, and that have it.
    pub adopted: Vec<String>,
    /// Tools whose results were seen for the first time.
    pub learned: Vec<String>,
    /// Tools with approved changes, and how many of them.
    pub approved: Vec<(String, usize)>,
    /// Tools that are as pinned.
    pub unchanged: Vec<String>,
}

/// Holds a listing to the pins of its server.
///
/// # Errors
/// What is pinned cannot be read.
pub fn judge(
    pins: &Pins<'_>,
    listing: &mut Listing,
    options: &Options,
    calls: &[RecordedCall],
) -> Result<Judged, PinsError> {
    let mut judged = Judged::default();
    let exact: BTreeSet<String> = listing.unchanged.iter().cloned().collect();
    let mut old: BTreeMap<String, Observation> = BTreeMap::new();
    let mut doubles: BTreeMap<String, Observation> = BTreeMap::new();
    let mut compared: Vec<usize> = Vec::new();
    for (index, seen) in listing.observed.iter().enumerate() {
        let name = &seen.name;
        match pins.tools.get(name) {
            None if pins.sealed => compared.push(index),
            None => judged.newcomers.push(name.clone()),
            Some(pin) if pin.definition.is_none() => match &pin.old.schema {
                Some(known) if *known != hash_of(seen) => {
                    let drift = Drift::since_import(name);
                    judged.drift.tools.push(ToolDrift::Changed(drift));
                }
                _ => judged.adopted.push(name.clone()),
            },
            Some(_) => {
                compared.push(index);
                let Some(pinned) = pins.observation(name)? else {
                    continue;
                };
                // A second tool of a name that is pinned and there: it passes for the first.
                if exact.contains(name) {
                    doubles.insert(name.clone(), pinned.clone());
                }
                old.insert(name.clone(), pinned);
            }
        }
    }
    if listing.whole {
        let seen: BTreeSet<&str> = listing.observed.iter().map(|it| it.name.as_str()).collect();
        for name in pins.tools.keys() {
            if seen.contains(name.as_str()) || exact.contains(name) {
                continue;
            }
            match pins.observation(name)? {
                Some(pinned) => {
                    old.insert(name.clone(), pinned);
                }
                None => judged
                    .drift
                    .tools
                    .push(ToolDrift::Removed { tool: name.clone() }),
            }
        }
    }
    let names: BTreeSet<&str> = pins.tools.keys().map(String::as_str).collect();
    compare_all(
        &mut judged,
        listing,
        (old, doubles),
        &compared,
        &Comparing {
            options,
            calls,
            names: &names,
        },
    );
    let drifted: BTreeSet<&str> = judged.drift.tools.iter().map(ToolDrift::tool).collect();
    let mut unchanged: BTreeSet<String> = exact;
    let named = compared
        .iter()
        .filter_map(|index| listing.observed.get(*index));
    unchanged.extend(named.map(|it| it.name.clone()));
    unchanged.extend(judged.adopted.iter().cloned());
    unchanged.retain(|name| !drifted.contains(name.as_str()));
    judged.unchanged = unchanged.into_iter().collect();
    take_approved(&mut judged, pins, listing, options)?;
    hold_results(&mut judged, pins, listing)?;
    judged.drift.unchanged = judged.unchanged.len();
    Ok(judged)
}

/// How definitions are compared, and beside which tools.
struct Comparing<'c> {
    options: &'c Options,
    calls: &'c [RecordedCall],
    /// The names of all tools that are pinned.
    names: &'c BTreeSet<&'c str>,
}

fn compare_all(
    judged: &mut Judged,
    listing: &mut Listing,
    (mut old, mut doubles): (BTreeMap<String, Observation>, BTreeMap<String, Observation>),
    compared: &[usize],
    comparing: &Comparing<'_>,
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
        if !share_words(pinned, seen) {
            let change = toolwarden_drift::reformatted(&seen.name, formats.0, formats.1);
            reformatted.push((seen.name.clone(), change));
        }
    }
    let before: Vec<_> = old.values().map(Observation::observed).collect();
    let after: Vec<_> = new.iter().map(|seen| seen.observed()).collect();
    let Comparing {
        options,
        calls,
        names,
    } = comparing;
    let drift = compare_lists_among(&before, &after, options, calls, names);
    judged.drift.tools.extend(drift.tools);
    for seen in new.iter().filter(|it| it.opaque) {
        judged.drift.doubt(&seen.name);
    }
    for (tool, change) in reformatted {
        judged
            .drift
            .add(Drift::of_results(&tool, None, vec![change]));
    }
}

/// The hash the toolwatch program would have of a definition.
pub(crate) fn hash_of(seen: &Observation) -> String {
    let text = Definition::parse(seen.text());
    text.map_or_else(|_| String::new(), |(_, parsed)| schema_hash(&parsed.value))
}

/// Takes out changes that were approved by themselves.
///
/// An approval is of a change in a definition; it holds for a later definition only if that one means
/// the same.
fn take_approved(
    judged: &mut Judged,
    pins: &Pins<'_>,
    listing: &Listing,
    options: &Options,
) -> Result<(), PinsError> {
    let Some(store) = pins.store() else {
        return Ok(());
    };
    let mut kept = Vec::new();
    for tool in std::mem::take(&mut judged.drift.tools) {
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
        drift.leave_out(|id| valid.contains(&id.to_string()));
        let taken = before - drift.changes.len();
        if taken > 0 {
            judged.approved.push((drift.tool.clone(), taken));
        }
        if drift.changes.is_empty() && taken > 0 {
            judged.unchanged.push(drift.tool);
        } else {
            kept.push(ToolDrift::Changed(drift));
        }
    }
    judged.drift.tools = kept;
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
    let approved = pins.read(&seen.name, approval.definition)?;
    // What approvals are bound to does not depend on how the rest is compared.
    let strict = Options {
        budget: options.budget,
        ..Options::default()
    };
    let later = compare(&approved.observed(), &seen.observed(), &strict, &[]);
    Ok(later
        .changes
        .iter()
        .all(|change| change.class == Class::Equivalent))
}

/// Holds results to the pinned shape and to what the tool promises.
fn hold_results(judged: &mut Judged, pins: &Pins<'_>, listing: &Listing) -> Result<(), PinsError> {
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
                    (Some(store), Some(baseline)) => u64::from(store.looks(baseline)?) + 1,
                    _ => 1,
                };
                let confidence = Confidence {
                    look,
                    ..Confidence::default()
                };
                compared = Some(match listing.sampling {
                    Sampling::Chance => compare_shapes(&pinned, results.shape(), &confidence),
                    Sampling::Fixtures => compare_exactly(&pinned, results.shape()),
                });
            }
            None => match &pin.old.response {
                Some(known)
                    if *known != Results::NO_PATTERN && *known != results.pattern_hash() =>
                {
                    changes.push(unlike_import(tool));
                }
                _ => judged.learned.push(tool.clone()),
            },
        }
        let drift = Drift::of_results(tool, compared, changes);
        if !drift.changes.is_empty() {
            drifted.insert(tool.as_str());
        }
        judged.drift.add(drift);
    }
    judged
        .unchanged
        .retain(|name| !drifted.contains(name.as_str()));
    Ok(())
}

/// How the toolwatch program would call the difference between a pin and what is seen now.
///
/// # Errors
/// What is pinned cannot be read.
pub fn mutation(
    pins: &Pins<'_>,
    seen: &Observation,
    results: Option<&Results>,
) -> Result<Option<ChangeType>, PinsError> {
    let Some(pin) = pins.tools.get(&seen.name) else {
        return Ok(None);
    };
    let pinned = match (&pin.old.schema, pins.observation(&seen.name)?) {
        (Some(hash), _) => Some(hash.clone()),
        (None, Some(pinned)) => Some(hash_of(&pinned)),
        (None, None) => None,
    };
    let schema = pinned.is_some_and(|pinned| pinned != hash_of(seen));
    let known = pin.old.response.as_deref();
    let response = match (known, results) {
        (Some(known), Some(results)) => known != results.pattern_hash(),
        _ => false,
    };
    Ok(match (schema, response) {
        (true, true) => Some(ChangeType::Behavior),
        (true, false) => Some(ChangeType::Schema),
        (false, true) => Some(ChangeType::Response),
        (false, false) => None,
    })
}
