//! Approves what was seen.

use std::collections::BTreeSet;

use thiserror::Error;
use toolwarden_drift::shape::{Confidence, InvalidShape, Shape};
use toolwarden_drift::text::{Weight, scan};
use toolwarden_drift::{Change, Class, Options, compare_among};
use toolwarden_store::{
    AlertFilter, AlertStatus, Approval, NewBaseline, NewSighting, OldHashes, Origin, Server,
    ServerKey, Sighting, Store, StoreError,
};

use crate::comparison::ComparisonTime;
use crate::document;
use crate::guard::audit::record_approval;
use crate::judge::hash_of;
use crate::observation::{Observation, UnreadableDefinition};
use crate::parts::{FINDING, Parts};
use crate::pin::retire;
use crate::pins::{Pin, Pins, PinsError};

/// What waits for approval of one tool.
#[derive(Debug)]
pub struct Waiting {
    /// The server.
    pub server: Server,
    /// What was seen.
    pub sighting: Sighting,
    /// The changes of the definition since it was pinned; none for a tool that is new or gone.
    pub changes: Vec<Change>,
    /// What the text of a new tool carries, in sentences.
    pub findings: Vec<String>,
    /// What the results say that wait, in sentences.
    pub results: Vec<String>,
    /// The changes that were approved by themselves.
    pub approved: BTreeSet<String>,
    /// What the tool is held to, where it is pinned at all.
    pub pin: Option<Pin>,
    /// The name it had, where it is a tool that goes by another one now.
    pub renamed_from: Option<String>,
    /// The open alerts about it: their ids and change types.
    pub alerts: Vec<(String, String)>,
}

impl Waiting {
    /// What kind of thing waits, in a few words.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        let has_shape = self.sighting.shape.is_some();
        match (&self.pin, &self.sighting.definition) {
            (_, None) => "gone",
            (None, Some(_)) => "new",
            (Some(pin), Some(_)) if pin.definition.is_none() => "not as imported",
            (Some(_), Some(_)) if self.changes.is_empty() && !has_shape => "in another format",
            (Some(_), Some(_)) if self.changes.is_empty() => "other results",
            (Some(_), Some(_)) if has_shape => "changed, with other results",
            (Some(_), Some(_)) => "changed",
        }
    }
}

/// What is to be approved.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Everything.
    pub all: bool,
    /// These tools, whatever changed.
    pub tools: Vec<String>,
    /// These changes or alerts, by id.
    pub ids: Vec<String>,
    /// Every change of text; not those that are a matter of trust.
    pub text: bool,
}

/// Something that was approved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Approved {
    /// A tool is held to what was seen from now on.
    Tool {
        /// Its server.
        server: String,
        /// Its name.
        tool: String,
    },
    /// A tool that is gone is held to nothing from now on.
    Gone {
        /// Its server.
        server: String,
        /// Its name.
        tool: String,
    },
    /// One change; others of the tool still wait.
    Change {
        /// Its server.
        server: String,
        /// Its tool.
        tool: String,
        /// The change.
        id: String,
        /// How many still wait.
        left: usize,
    },
}

/// Why something cannot be approved.
#[derive(Debug, Error)]
pub enum ApproveError {
    /// The pins cannot be read or written.
    #[error(transparent)]
    Pins(#[from] PinsError),
    /// What was seen cannot be read again.
    #[error("what was seen of `{tool}` cannot be read")]
    Sighting {
        /// The tool.
        tool: String,
        /// Why.
        source: UnreadableDefinition,
    },
    /// The same change waits in several places.
    #[error("{id} waits for server `{}` (scope {}) and for `{}` (scope {})", first.name, first.scope, second.name, second.scope)]
    SeveralServers {
        /// The id.
        id: String,
        /// One place.
        first: ServerKey,
        /// Another.
        second: ServerKey,
    },
    /// Nothing that waits has this name or id.
    #[error("nothing called `{word}` waits for approval{suggestion}")]
    NotWaiting {
        /// The word.
        word: String,
        /// What may have been meant.
        suggestion: String,
    },
}

impl From<StoreError> for ApproveError {
    fn from(error: StoreError) -> Self {
        Self::Pins(PinsError::Store(error))
    }
}

const NOTHING: Parts = Parts {
    definition: false,
    results: false,
};

/// Everything that waits for approval, by server and tool.
///
/// # Errors
/// The store cannot be read.
pub fn waiting(store: &Store, servers: &[Server]) -> Result<Vec<Waiting>, ApproveError> {
    waiting_with(store, servers, Some(ComparisonTime::default()))
}

/// Everything that waits for approval. The time is for each server, so that none uses up that of another;
/// without it, definitions are not compared, and nothing is said of what changed in them.
fn waiting_with(
    store: &Store,
    servers: &[Server],
    time: Option<ComparisonTime>,
) -> Result<Vec<Waiting>, ApproveError> {
    // What was seen may be replaced meanwhile, and its definition forgotten.
    store.snapshot(|store| waiting_now(store, servers, time))
}

fn waiting_now(
    store: &Store,
    servers: &[Server],
    time: Option<ComparisonTime>,
) -> Result<Vec<Waiting>, ApproveError> {
    let mut waiting = Vec::new();
    let open = store.alerts(&AlertFilter {
        status: Some(AlertStatus::Open),
        ..AlertFilter::default()
    })?;
    for server in servers {
        let options = time.map(|time| time.options());
        let pins = Pins::of_store(store, &server.key)?;
        for sighting in store.sightings(server.id)? {
            let pin = pins.tools.get(&sighting.tool).cloned();
            let changes = match &options {
                Some(options) => changes(store, &pins, &sighting, options)?,
                None => Vec::new(),
            };
            let findings = match (&pin, &options) {
                (None, Some(_)) => findings(store, &sighting)?,
                _ => Vec::new(),
            };
            let approved = approved_ids(store, pin.as_ref(), &sighting)?;
            let about = open
                .iter()
                .filter(|alert| alert.server == server.key && alert.tool == sighting.tool);
            let about: Vec<_> = about.collect();
            let alerts = about
                .iter()
                .map(|alert| (alert.id.clone(), alert.change_type.clone()));
            let renamed_from = about.iter().find_map(|alert| renamed_from(&alert.document));
            waiting.push(Waiting {
                server: server.clone(),
                alerts: alerts.collect(),
                renamed_from,
                pin,
                results: results(&pins, &sighting)?,
                findings,
                sighting,
                changes,
                approved,
            });
        }
    }
    Ok(waiting)
}

fn renamed_from(document: &str) -> Option<String> {
    let document: serde_json::Value = serde_json::from_str(document).ok()?;
    Some(document.pointer("/rename/from")?.as_str()?.to_owned())
}

/// What changed in results that wait.
fn results(pins: &Pins<'_>, sighting: &Sighting) -> Result<Vec<String>, ApproveError> {
    let (Some(pinned), Some(text)) = (pins.shape(&sighting.tool)?, &sighting.shape) else {
        return Ok(Vec::new());
    };
    let seen = serde_json::from_str(text).map_err(|_| InvalidShape::Version);
    let seen = seen.and_then(|json| Shape::from_json(&json));
    let seen = seen.map_err(|source| PinsError::Shape {
        tool: sighting.tool.clone(),
        source,
    })?;
    let mut drift = toolwarden_drift::shape::compare(&pinned, &seen, &Confidence::default());
    // Fixtures wait for differences that chance could explain.
    if drift.is_empty() {
        drift = toolwarden_drift::shape::compare_exactly(&pinned, &seen);
    }
    Ok(drift.changes.into_iter().map(|it| it.message).collect())
}

/// The changes of what was seen that were approved by themselves.
fn approved_ids(
    store: &Store,
    pin: Option<&Pin>,
    sighting: &Sighting,
) -> Result<BTreeSet<String>, ApproveError> {
    let Some(baseline) = pin.and_then(|pin| pin.baseline) else {
        return Ok(BTreeSet::new());
    };
    let known = store.approved_changes(baseline)?.into_iter();
    let same = known.filter(|it| Some(it.definition) == sighting.definition);
    Ok(same.map(|it| it.change).collect())
}

fn changes(
    store: &Store,
    pins: &Pins<'_>,
    sighting: &Sighting,
    options: &Options,
) -> Result<Vec<Change>, ApproveError> {
    let Some(seen) = seen(store, sighting)? else {
        return Ok(Vec::new());
    };
    let Some(mut pinned) = pins.observation(&sighting.tool)? else {
        return Ok(Vec::new());
    };
    let mut seen = seen;
    crate::share_words(&mut pinned, &mut seen);
    let names: BTreeSet<&str> = pins.tools.keys().map(String::as_str).collect();
    let (before, after) = (pinned.observed(), seen.observed());
    let mut drift = compare_among(&before, &after, options, &[], &names);
    if seen.opaque {
        drift.doubt();
    }
    Ok(drift.changes)
}

/// What the text of what was seen carries that honest tools rarely do.
fn findings(store: &Store, sighting: &Sighting) -> Result<Vec<String>, ApproveError> {
    let Some(seen) = seen(store, sighting)? else {
        return Ok(Vec::new());
    };
    let mut findings = scan(seen.definition());
    findings.retain(|it| it.weight >= Weight::Medium);
    let told = findings.into_iter().map(|it| {
        let decoded = it.decoded.as_ref();
        let reads = decoded.map_or_else(String::new, |it| format!(" (reads: {it})"));
        format!("{} {}: {}{reads}", it.weight, it.detector, it.message)
    });
    Ok(told.collect())
}

fn seen(store: &Store, sighting: &Sighting) -> Result<Option<Observation>, ApproveError> {
    let Some(kept) = sighting.definition else {
        return Ok(None);
    };
    let text = store.definition(kept.fingerprint)?;
    let read = Observation::read(&sighting.tool, kept.format, &text);
    read.map(Some).map_err(|source| ApproveError::Sighting {
        tool: sighting.tool.clone(),
        source,
    })
}

/// Approves what is selected among the servers, all of it or nothing, and records who did and why in
/// the audit log.
///
/// # Errors
/// Something selected does not wait, or the store cannot be written.
pub fn approve(
    store: &Store,
    servers: &[Server],
    selection: &Selection,
    approval: &Approval,
) -> Result<Vec<Approved>, ApproveError> {
    loop {
        // Comparing definitions takes time, in which the store must not be locked.
        let time = needs_comparison(store, servers, selection)?.then(ComparisonTime::default);
        let compared = waiting_with(store, servers, time)?;
        let approved = store.write(|store| {
            let now = waiting_with(store, servers, None)?;
            if !is_same(&compared, &now) {
                return Ok::<_, ApproveError>(None);
            }
            let approved = approve_selected(store, (servers, &compared), selection, approval)?;
            let entries = approved.iter().map(document::approved);
            record_approval(store, "approved", entries, approval)?;
            Ok(Some(approved))
        })?;
        if let Some(approved) = approved {
            return Ok(approved);
        }
    }
}

/// Whether some of what is selected may be a single change: those are only known by a comparison.
pub(crate) fn needs_comparison(
    store: &Store,
    servers: &[Server],
    selection: &Selection,
) -> Result<bool, ApproveError> {
    if selection.text {
        return Ok(true);
    }
    if selection.ids.is_empty() || selection.all {
        return Ok(false);
    }
    let open = store.alerts(&AlertFilter {
        status: Some(AlertStatus::Open),
        ..AlertFilter::default()
    })?;
    let is_alert = |id: &String| {
        let mut about = open.iter().filter(|alert| alert.id == *id);
        about.any(|alert| servers.iter().any(|server| server.key == alert.server))
    };
    Ok(!selection.ids.iter().all(is_alert))
}

/// Whether the same things wait as when they were compared.
fn is_same(compared: &[Waiting], now: &[Waiting]) -> bool {
    let facts = |it: &Waiting| {
        let baseline = it.pin.as_ref().and_then(|pin| pin.baseline);
        (it.server.clone(), it.sighting.clone(), baseline)
    };
    compared.len() == now.len()
        && compared.iter().zip(now).all(|(compared, now)| {
            facts(compared) == facts(now) && compared.approved == now.approved
        })
}

fn approve_selected(
    store: &Store,
    (servers, waiting): (&[Server], &[Waiting]),
    selection: &Selection,
    approval: &Approval,
) -> Result<Vec<Approved>, ApproveError> {
    refuse_ambiguous(waiting, selection)?;
    // Approving a new name approves that the old one is gone.
    let renamed: BTreeSet<(&ServerKey, &String)> = waiting
        .iter()
        .filter(|it| {
            let by_alert = it.alerts.iter().any(|(id, _)| selection.ids.contains(id));
            by_alert || selection.tools.contains(&it.sighting.tool)
        })
        .filter_map(|it| Some((&it.server.key, it.renamed_from.as_ref()?)))
        .collect();
    let mut approved = Vec::new();
    let mut used: BTreeSet<&String> = BTreeSet::new();
    for waiting in waiting {
        let tool = &waiting.sighting.tool;
        let by_name: Vec<&String> = selection.tools.iter().filter(|it| *it == tool).collect();
        let by_alert = waiting
            .alerts
            .iter()
            .filter(|(id, _)| selection.ids.contains(id));
        let by_alert: Vec<&(String, String)> = by_alert.collect();
        used.extend(&by_name);
        used.extend(by_alert.iter().map(|(id, _)| id));
        let is_old_name = renamed.contains(&(&waiting.server.key, tool));
        if selection.all || !by_name.is_empty() || is_old_name {
            approved.push(approve_parts(store, waiting, Parts::ALL, approval)?);
            continue;
        }
        if !by_alert.is_empty() {
            let parts = by_alert
                .iter()
                .map(|(_, change_type)| Parts::of(change_type));
            let parts = parts.fold(NOTHING, Parts::with);
            approved.push(approve_parts(store, waiting, parts, approval)?);
            continue;
        }
        let ids: Vec<&String> = selection
            .ids
            .iter()
            .filter(|id| waiting.changes.iter().any(|it| it.id.to_string() == **id))
            .collect();
        used.extend(&ids);
        let texts = texts(waiting, selection);
        let ids: Vec<&String> = ids.into_iter().chain(&texts).collect();
        if !ids.is_empty() {
            approved.extend(approve_changes(store, waiting, &ids, approval)?);
        }
    }
    let acknowledged = acknowledge(store, servers, selection)?;
    for (id, done) in acknowledged {
        used.insert(id);
        approved.push(done);
    }
    let words = selection.tools.iter().chain(&selection.ids);
    if let Some(word) = words.clone().find(|word| !used.contains(*word)) {
        let known = waiting.iter().map(|waiting| waiting.sighting.tool.as_str());
        return Err(ApproveError::NotWaiting {
            word: word.clone(),
            suggestion: toolwarden_model::closest(word, known),
        });
    }
    Ok(approved)
}

/// The changes of text of a tool, if those are selected, with what changes nothing beside them.
fn texts(waiting: &Waiting, selection: &Selection) -> Vec<String> {
    let is_left = |it: &&Change| !waiting.approved.contains(&it.id.to_string());
    let mut left = waiting.changes.iter().filter(is_left);
    if !selection.text || !left.clone().any(|it| it.class == Class::Text) {
        return Vec::new();
    }
    let mut ids = Vec::new();
    for change in left.by_ref() {
        let is_trust = change.is(Class::Trust);
        if matches!(change.class, Class::Text | Class::Info | Class::Equivalent) && !is_trust {
            ids.push(change.id.to_string());
        }
    }
    ids
}

/// Settles selected alerts about tools that are served as they are: there is nothing to pin.
fn acknowledge<'s>(
    store: &Store,
    servers: &[Server],
    selection: &'s Selection,
) -> Result<Vec<(&'s String, Approved)>, ApproveError> {
    let open = store.alerts(&AlertFilter {
        status: Some(AlertStatus::Open),
        ..AlertFilter::default()
    })?;
    let mut done = Vec::new();
    for alert in open.iter().filter(|it| it.change_type == FINDING) {
        let Some(id) = selection.ids.iter().find(|id| **id == alert.id) else {
            continue;
        };
        let Some(server) = servers.iter().find(|it| it.key == alert.server) else {
            continue;
        };
        let status = AlertStatus::Approved;
        store.settle(server.id, &alert.tool, FINDING, status, &[])?;
        let approved = Approved::Change {
            server: server.key.name.clone(),
            tool: alert.tool.clone(),
            id: id.clone(),
            left: 0,
        };
        done.push((id, approved));
    }
    Ok(done)
}

/// Refuses an id or a tool name that waits at several servers.
fn refuse_ambiguous(waiting: &[Waiting], selection: &Selection) -> Result<(), ApproveError> {
    let matches = |id: &String, waiting: &Waiting| {
        waiting.alerts.iter().any(|(alert, _)| alert == id)
            || waiting.changes.iter().any(|it| it.id.to_string() == *id)
    };
    let words = selection.ids.iter().chain(&selection.tools);
    for id in words {
        let mut servers = waiting
            .iter()
            .filter(|it| matches(id, it) || selection.tools.contains(id) && it.sighting.tool == *id)
            .map(|it| &it.server.key);
        if let (Some(first), Some(second)) = (servers.next(), servers.next()) {
            return Err(ApproveError::SeveralServers {
                id: id.clone(),
                first: first.clone(),
                second: second.clone(),
            });
        }
    }
    Ok(())
}

/// Makes what was seen of a tool, or a part of it, what it is held to. The rest goes on waiting.
fn approve_parts(
    store: &Store,
    waiting: &Waiting,
    parts: Parts,
    approval: &Approval,
) -> Result<Approved, ApproveError> {
    let Waiting {
        server,
        sighting,
        pin: before,
        ..
    } = waiting;
    let (name, tool) = (server.key.name.clone(), sighting.tool.clone());
    let Some(seen) = seen(store, sighting)? else {
        retire(store, server.id, &tool, &sighting.version, approval)?;
        return Ok(Approved::Gone { server: name, tool });
    };
    let before = before.as_ref();
    let results = parts.results && sighting.shape.is_some();
    let (shape, response) = if results {
        // What was approved is what was seen: a shape that mixes old and new results fits neither.
        (sighting.shape.clone(), sighting.response_hash.clone())
    } else {
        let shape = before.and_then(|pin| pin.kept_shape().map(ToOwned::to_owned));
        (shape, before.and_then(|pin| pin.old.response.clone()))
    };
    let pinned = before.and_then(|pin| pin.definition);
    let text;
    let (definition, schema) = match pinned.filter(|_| !parts.definition) {
        Some(kept) => {
            text = store.definition(kept.fingerprint)?;
            (
                (kept, text.as_str()),
                before.and_then(|pin| pin.old.schema.clone()),
            )
        }
        None => ((seen.kept(), seen.text()), Some(hash_of(&seen))),
    };
    store.add_baseline(
        server.id,
        &NewBaseline {
            tool: &tool,
            origin: Origin::Approved,
            definition: Some(definition),
            shape,
            old: OldHashes { schema, response },
            version: &sighting.version,
            approval,
        },
    )?;
    let definition_waits = !parts.definition && pinned != sighting.definition;
    let results_wait = !parts.results && sighting.shape.is_some();
    if definition_waits || results_wait {
        let still = NewSighting {
            tool: &tool,
            definition: Some((seen.kept(), seen.text())),
            shape: sighting.shape.clone().filter(|_| results_wait),
            response_hash: sighting.response_hash.clone().filter(|_| results_wait),
            version: &sighting.version,
            at: sighting.at,
        };
        store.keep_sighting(server.id, &still)?;
    } else {
        store.drop_sighting(server.id, &tool)?;
    }
    if results {
        store.drop_observed_shapes(server.id, &tool)?;
    }
    parts.settle(store, server.id, &tool, AlertStatus::Approved, &[])?;
    Ok(Approved::Tool { server: name, tool })
}

/// Approves single changes; the tool as a whole once none is left.
fn approve_changes(
    store: &Store,
    waiting: &Waiting,
    ids: &[&String],
    approval: &Approval,
) -> Result<Vec<Approved>, ApproveError> {
    let Waiting {
        server,
        sighting,
        changes,
        pin,
        ..
    } = waiting;
    let baseline = pin.as_ref().and_then(|pin| pin.baseline);
    let (Some(baseline), Some(kept)) = (baseline, sighting.definition) else {
        return Ok(Vec::new());
    };
    let known = store.approved_changes(baseline)?;
    let mut done: BTreeSet<String> = known
        .into_iter()
        .filter(|it| it.definition == kept)
        .map(|it| it.change)
        .collect();
    for id in ids {
        if done.insert((*id).clone()) {
            store.approve_change(baseline, id, kept, approval)?;
        }
    }
    let left = changes
        .iter()
        .filter(|change| !done.contains(&change.id.to_string()))
        .count();
    if left == 0 {
        return Ok(vec![approve_parts(
            store,
            waiting,
            Parts::DEFINITION,
            approval,
        )?]);
    }
    Ok(ids
        .iter()
        .map(|id| Approved::Change {
            server: server.key.name.clone(),
            tool: sighting.tool.clone(),
            id: (*id).clone(),
            left,
        })
        .collect())
}
