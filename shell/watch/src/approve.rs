//! Approves observed changes.

use std::collections::BTreeSet;

use thiserror::Error;
use toolwarden_drift::shape::{InvalidShape, Shape, Significance};
use toolwarden_drift::text::{Weight, scan};
use toolwarden_drift::{Change, ChangeClass, Options, compare_in_server};
use toolwarden_store::{
    AlertFilter, AlertStatus, Approval, BaselineOrigin, NewBaseline, NewSighting, Server,
    ServerKey, Sighting, Store, StoreError, ToolwatchHashes,
};

use crate::approval::{ApprovedItem, PendingApproval};
use crate::json_documents;
use crate::judge::toolwatch_hash;
use crate::observation::{Observation, UnreadableDefinition};
use crate::pin::retire;
use crate::pins::{Pin, Pins, PinsError};
use crate::tool_parts::{FINDING_CHANGE_TYPE, ToolParts};
use toolwarden_live_guard::audit::record_approval;
use toolwarden_settings::ComparisonTimeouts;

/// What to approve.
#[derive(Clone, Debug, Default)]
pub struct ApprovalSelection {
    /// Everything.
    pub all: bool,
    /// These tools, with all their changes.
    pub tools: Vec<String>,
    /// These changes or alerts, by id.
    pub ids: Vec<String>,
    /// Every change of text, except those that affect trust.
    pub text: bool,
}

/// Why something cannot be approved.
#[derive(Debug, Error)]
pub enum ApproveError {
    /// The pins cannot be read or written.
    #[error(transparent)]
    Pins(#[from] PinsError),
    /// The observation cannot be read.
    #[error("cannot read the observation of `{tool}`")]
    Sighting {
        /// The tool.
        tool: String,
        /// Why.
        source: UnreadableDefinition,
    },
    /// The same change is pending in several places.
    #[error("{id} is pending at server `{}` (scope {}) and at `{}` (scope {})", first.name, first.scope, second.name, second.scope)]
    SeveralServers {
        /// The id.
        id: String,
        /// One place.
        first: ServerKey,
        /// Another.
        second: ServerKey,
    },
    /// No pending approval has this name or id.
    #[error("no pending change, alert or tool is called `{word}`{suggestion}")]
    NotPending {
        /// The word.
        word: String,
        /// The text that suggests the closest name.
        suggestion: String,
    },
}

impl From<StoreError> for ApproveError {
    fn from(error: StoreError) -> Self {
        Self::Pins(PinsError::Store(error))
    }
}

const NO_PARTS: ToolParts = ToolParts {
    definition: false,
    results: false,
};

/// All pending approvals, by server and tool.
///
/// # Errors
/// The store cannot be read.
pub fn pending_approvals(
    store: &Store,
    servers: &[Server],
) -> Result<Vec<PendingApproval>, ApproveError> {
    pending_approvals_within(store, servers, Some(ComparisonTimeouts::default()))
}

/// All pending approvals. Each server has its own time limit, so that none uses up that of another; without
/// a limit, definitions are not compared and their changes are not listed.
fn pending_approvals_within(
    store: &Store,
    servers: &[Server],
    time: Option<ComparisonTimeouts>,
) -> Result<Vec<PendingApproval>, ApproveError> {
    // Another process may replace an observation meanwhile, and delete its definition.
    store.read_transaction(|store| read_pending_approvals(store, servers, time))
}

fn read_pending_approvals(
    store: &Store,
    servers: &[Server],
    time: Option<ComparisonTimeouts>,
) -> Result<Vec<PendingApproval>, ApproveError> {
    let mut pending_approvals = Vec::new();
    let open = store.alerts(&AlertFilter {
        status: Some(AlertStatus::Open),
        ..AlertFilter::default()
    })?;
    for server in servers {
        let options = time.map(|time| time.options());
        let pins = Pins::from_store(store, &server.key)?;
        for sighting in store.sightings(server.id)? {
            let pin = pins.tools.get(&sighting.tool).cloned();
            let changes = match &options {
                Some(options) => definition_changes(store, &pins, &sighting, options)?,
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
            pending_approvals.push(PendingApproval {
                server: server.clone(),
                alerts: alerts.collect(),
                renamed_from,
                pin,
                results: result_changes(&pins, &sighting)?,
                findings,
                sighting,
                changes,
                approved,
            });
        }
    }
    Ok(pending_approvals)
}

fn renamed_from(document: &str) -> Option<String> {
    let document: serde_json::Value = serde_json::from_str(document).ok()?;
    Some(document.pointer("/rename/from")?.as_str()?.to_owned())
}

/// The pending changes of results.
fn result_changes(pins: &Pins<'_>, sighting: &Sighting) -> Result<Vec<String>, ApproveError> {
    let (Some(pinned), Some(text)) = (pins.shape(&sighting.tool)?, &sighting.shape) else {
        return Ok(Vec::new());
    };
    let seen = serde_json::from_str(text).map_err(|_| InvalidShape::Version);
    let seen = seen.and_then(|json| Shape::from_json(&json));
    let seen = seen.map_err(|source| PinsError::Shape {
        tool: sighting.tool.clone(),
        source,
    })?;
    let mut drift = toolwarden_drift::shape::compare(&pinned, &seen, &Significance::default());
    // Fixtures can be pending because of differences that chance could explain.
    if drift.is_empty() {
        drift = toolwarden_drift::shape::compare_exactly(&pinned, &seen);
    }
    Ok(drift.changes.into_iter().map(|it| it.message).collect())
}

/// The changes of an observation that were approved individually.
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

fn definition_changes(
    store: &Store,
    pins: &Pins<'_>,
    sighting: &Sighting,
    options: &Options,
) -> Result<Vec<Change>, ApproveError> {
    let Some(seen) = read_sighting(store, sighting)? else {
        return Ok(Vec::new());
    };
    let Some(mut pinned) = pins.observation(&sighting.tool)? else {
        return Ok(Vec::new());
    };
    let mut seen = seen;
    crate::align_formats(&mut pinned, &mut seen);
    let names: BTreeSet<&str> = pins.tools.keys().map(String::as_str).collect();
    let (before, after) = (pinned.observed(), seen.observed());
    let mut drift = compare_in_server(&before, &after, options, &[], &names);
    if seen.opaque {
        drift.mark_unknown();
    }
    Ok(drift.changes)
}

/// The findings in the observed text that are rare in honest tools.
fn findings(store: &Store, sighting: &Sighting) -> Result<Vec<String>, ApproveError> {
    let Some(seen) = read_sighting(store, sighting)? else {
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

fn read_sighting(store: &Store, sighting: &Sighting) -> Result<Option<Observation>, ApproveError> {
    let Some(kept) = sighting.definition else {
        return Ok(None);
    };
    let text = store.definition(kept.fingerprint)?;
    let read = Observation::parse(&sighting.tool, kept.format, &text);
    read.map(Some).map_err(|source| ApproveError::Sighting {
        tool: sighting.tool.clone(),
        source,
    })
}

/// Approves the selection among the servers, all of it or nothing, and records who approved it and why in
/// the audit log.
///
/// # Errors
/// A selected item is not pending, or the store cannot be written.
pub fn approve(
    store: &Store,
    servers: &[Server],
    selection: &ApprovalSelection,
    approval: &Approval,
) -> Result<Vec<ApprovedItem>, ApproveError> {
    loop {
        // Comparing definitions takes time, during which the store must not be locked.
        let time = needs_comparison(store, servers, selection)?.then(ComparisonTimeouts::default);
        let compared = pending_approvals_within(store, servers, time)?;
        let approved = store.write_transaction(|store| {
            let now = pending_approvals_within(store, servers, None)?;
            if !is_unchanged(&compared, &now) {
                return Ok::<_, ApproveError>(None);
            }
            let approved = approve_selected(store, (servers, &compared), selection, approval)?;
            let entries = approved.iter().map(json_documents::approved_item);
            record_approval(store, "approved", entries, approval)?;
            Ok(Some(approved))
        })?;
        if let Some(approved) = approved {
            return Ok(approved);
        }
    }
}

/// Whether the selection may contain a single change: only a comparison reveals those.
pub(crate) fn needs_comparison(
    store: &Store,
    servers: &[Server],
    selection: &ApprovalSelection,
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

/// Whether the same approvals are pending as when they were compared.
fn is_unchanged(compared: &[PendingApproval], now: &[PendingApproval]) -> bool {
    let facts = |it: &PendingApproval| {
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
    (servers, pending_approvals): (&[Server], &[PendingApproval]),
    selection: &ApprovalSelection,
    approval: &Approval,
) -> Result<Vec<ApprovedItem>, ApproveError> {
    refuse_ambiguous(pending_approvals, selection)?;
    // Approving a new name also approves that the old one is gone.
    let renamed: BTreeSet<(&ServerKey, &String)> = pending_approvals
        .iter()
        .filter(|it| {
            let by_alert = it.alerts.iter().any(|(id, _)| selection.ids.contains(id));
            by_alert || selection.tools.contains(&it.sighting.tool)
        })
        .filter_map(|it| Some((&it.server.key, it.renamed_from.as_ref()?)))
        .collect();
    let mut approved = Vec::new();
    let mut used: BTreeSet<&String> = BTreeSet::new();
    for pending_approvals in pending_approvals {
        let tool = &pending_approvals.sighting.tool;
        let by_name: Vec<&String> = selection.tools.iter().filter(|it| *it == tool).collect();
        let by_alert = pending_approvals
            .alerts
            .iter()
            .filter(|(id, _)| selection.ids.contains(id));
        let by_alert: Vec<&(String, String)> = by_alert.collect();
        used.extend(&by_name);
        used.extend(by_alert.iter().map(|(id, _)| id));
        let is_old_name = renamed.contains(&(&pending_approvals.server.key, tool));
        if selection.all || !by_name.is_empty() || is_old_name {
            approved.push(approve_parts(
                store,
                pending_approvals,
                ToolParts::ALL,
                approval,
            )?);
            continue;
        }
        if !by_alert.is_empty() {
            let parts = by_alert
                .iter()
                .map(|(_, change_type)| ToolParts::from_change_type(change_type));
            let parts = parts.fold(NO_PARTS, ToolParts::with);
            approved.push(approve_parts(store, pending_approvals, parts, approval)?);
            continue;
        }
        let ids: Vec<&String> = selection
            .ids
            .iter()
            .filter(|id| {
                pending_approvals
                    .changes
                    .iter()
                    .any(|it| it.id.to_string() == **id)
            })
            .collect();
        used.extend(&ids);
        let texts = text_change_ids(pending_approvals, selection);
        let ids: Vec<&String> = ids.into_iter().chain(&texts).collect();
        if !ids.is_empty() {
            approved.extend(approve_changes(store, pending_approvals, &ids, approval)?);
        }
    }
    let acknowledged = acknowledge(store, servers, selection)?;
    for (id, done) in acknowledged {
        used.insert(id);
        approved.push(done);
    }
    let words = selection.tools.iter().chain(&selection.ids);
    if let Some(word) = words.clone().find(|word| !used.contains(*word)) {
        let known = pending_approvals
            .iter()
            .map(|pending_approvals| pending_approvals.sighting.tool.as_str());
        return Err(ApproveError::NotPending {
            word: word.clone(),
            suggestion: toolwarden_model::did_you_mean(word, known),
        });
    }
    Ok(approved)
}

/// The text changes of a tool, if those are selected, together with its changes that have no effect.
fn text_change_ids(
    pending_approvals: &PendingApproval,
    selection: &ApprovalSelection,
) -> Vec<String> {
    let is_left = |it: &&Change| !pending_approvals.approved.contains(&it.id.to_string());
    let mut left = pending_approvals.changes.iter().filter(is_left);
    if !selection.text || !left.clone().any(|it| it.class == ChangeClass::Text) {
        return Vec::new();
    }
    let mut ids = Vec::new();
    for change in left.by_ref() {
        let is_trust = change.has_class(ChangeClass::Trust);
        if matches!(
            change.class,
            ChangeClass::Text | ChangeClass::Info | ChangeClass::Equivalent
        ) && !is_trust
        {
            ids.push(change.id.to_string());
        }
    }
    ids
}

/// Settles selected alerts about tools that are served unchanged: there is nothing to pin.
fn acknowledge<'s>(
    store: &Store,
    servers: &[Server],
    selection: &'s ApprovalSelection,
) -> Result<Vec<(&'s String, ApprovedItem)>, ApproveError> {
    let open = store.alerts(&AlertFilter {
        status: Some(AlertStatus::Open),
        ..AlertFilter::default()
    })?;
    let mut done = Vec::new();
    for alert in open
        .iter()
        .filter(|it| it.change_type == FINDING_CHANGE_TYPE)
    {
        let Some(id) = selection.ids.iter().find(|id| **id == alert.id) else {
            continue;
        };
        let Some(server) = servers.iter().find(|it| it.key == alert.server) else {
            continue;
        };
        let status = AlertStatus::Approved;
        store.settle_alerts(server.id, &alert.tool, FINDING_CHANGE_TYPE, status, &[])?;
        let approved = ApprovedItem::Change {
            server: server.key.name.clone(),
            tool: alert.tool.clone(),
            id: id.clone(),
            left: 0,
        };
        done.push((id, approved));
    }
    Ok(done)
}

/// Rejects an id or a tool name that is pending at several servers.
fn refuse_ambiguous(
    pending_approvals: &[PendingApproval],
    selection: &ApprovalSelection,
) -> Result<(), ApproveError> {
    let matches = |id: &String, pending_approvals: &PendingApproval| {
        pending_approvals
            .alerts
            .iter()
            .any(|(alert, _)| alert == id)
            || pending_approvals
                .changes
                .iter()
                .any(|it| it.id.to_string() == *id)
    };
    let words = selection.ids.iter().chain(&selection.tools);
    for id in words {
        let mut servers = pending_approvals
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

/// Pins a tool to its observation, or to a part of it. The rest stays pending.
fn approve_parts(
    store: &Store,
    pending_approvals: &PendingApproval,
    parts: ToolParts,
    approval: &Approval,
) -> Result<ApprovedItem, ApproveError> {
    let PendingApproval {
        server,
        sighting,
        pin: before,
        ..
    } = pending_approvals;
    let (name, tool) = (server.key.name.clone(), sighting.tool.clone());
    let Some(seen) = read_sighting(store, sighting)? else {
        retire(store, server.id, &tool, &sighting.version, approval)?;
        return Ok(ApprovedItem::RemovedTool { server: name, tool });
    };
    let before = before.as_ref();
    let results = parts.results && sighting.shape.is_some();
    let (shape, response) = if results {
        // The approval covers exactly the observation: a shape that mixes old and new results fits neither.
        (sighting.shape.clone(), sighting.response_hash.clone())
    } else {
        let shape = before.and_then(|pin| pin.stored_shape().map(ToOwned::to_owned));
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
        None => ((seen.kept(), seen.text()), Some(toolwatch_hash(&seen))),
    };
    store.add_baseline(
        server.id,
        &NewBaseline {
            tool: &tool,
            origin: BaselineOrigin::Approved,
            definition: Some(definition),
            shape,
            old: ToolwatchHashes { schema, response },
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
        store.save_sighting(server.id, &still)?;
    } else {
        store.delete_sighting(server.id, &tool)?;
    }
    if results {
        store.delete_observed_shapes(server.id, &tool)?;
    }
    parts.close_alerts(store, server.id, &tool, AlertStatus::Approved, &[])?;
    Ok(ApprovedItem::Tool { server: name, tool })
}

/// Approves single changes; if none is left, approves the tool as a whole.
fn approve_changes(
    store: &Store,
    pending_approvals: &PendingApproval,
    ids: &[&String],
    approval: &Approval,
) -> Result<Vec<ApprovedItem>, ApproveError> {
    let PendingApproval {
        server,
        sighting,
        changes,
        pin,
        ..
    } = pending_approvals;
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
            pending_approvals,
            ToolParts::DEFINITION,
            approval,
        )?]);
    }
    Ok(ids
        .iter()
        .map(|id| ApprovedItem::Change {
            server: server.key.name.clone(),
            tool: sighting.tool.clone(),
            id: (*id).clone(),
            left,
        })
        .collect())
}
