//! Pins the observation of a server, by command.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};
use toolwarden_store::{
    AlertStatus, Approval, BaselineOrigin, NewBaseline, NewSighting, ServerId, ServerKey, Store,
    StoreError, ToolwatchHashes,
};

use crate::judge::{ServerListing, toolwatch_hash};
use crate::observation::Observation;
use crate::observed_results::ObservedResults;
use crate::pins::{Pins, PinsError};
use crate::tool_parts::ToolParts;
use toolwarden_live_guard::audit::record_approval;

/// The result of pinning a server.
#[derive(Debug)]
pub struct PinReport {
    /// Each tool, in the order of the observation.
    pub tools: Vec<PinReportTool>,
    /// Tools that were pinned and are no longer offered.
    pub retired: Vec<String>,
    /// Whether another tool of the server counts as drift from now on.
    pub sealed: bool,
}

/// A pinned tool.
#[derive(Clone, Debug)]
pub struct PinReportTool {
    /// Its name.
    pub name: String,
    /// Whether it already had this pin.
    pub already_pinned: bool,
    /// The toolwatch hash of its definition.
    pub schema_hash: String,
    /// The toolwatch hash of its results.
    pub response_hash: String,
    /// The number of results that its shape is based on.
    pub results: u64,
    /// When it was pinned in this form.
    pub at: Timestamp,
}

/// Pins the observation of a server. If that changes anything, the audit log records who did it and why.
///
/// # Errors
/// The store cannot be written.
pub fn pin(
    store: &Store,
    key: &ServerKey,
    listing: &ServerListing,
    seal: bool,
    version: &str,
    approval: &Approval,
) -> Result<PinReport, PinsError> {
    store.write_transaction(|store| {
        let was_sealed = store.server(key)?.is_some_and(|server| server.sealed);
        let pinned = pin_listing(store, key, listing, seal, version, approval)?;
        let done = pinned.document(key, was_sealed);
        record_approval(store, "pinned", done, approval)?;
        Ok(pinned)
    })
}

impl PinReport {
    /// The changes, for the audit log; `None` if there are none.
    fn document(&self, key: &ServerKey, was_sealed: bool) -> Option<Value> {
        let new = self.tools.iter().filter(|tool| !tool.already_pinned);
        let tools: Vec<&str> = new.map(|tool| tool.name.as_str()).collect();
        if tools.is_empty() && self.retired.is_empty() && self.sealed == was_sealed {
            return None;
        }
        Some(json!({
            "server": key.name,
            "scope": key.scope,
            "tools": tools,
            "retired": self.retired,
            "sealed": self.sealed,
        }))
    }
}

fn pin_listing(
    store: &Store,
    key: &ServerKey,
    listing: &ServerListing,
    seal: bool,
    version: &str,
    approval: &Approval,
) -> Result<PinReport, PinsError> {
    let pins = Pins::from_store(store, key)?;
    let server = store.ensure_server(key, seal, approval.at)?;
    let mut pinned = PinReport {
        tools: Vec::new(),
        retired: Vec::new(),
        sealed: server.sealed,
    };
    for seen in &listing.observed {
        let (schema_hash, kept) = (toolwatch_hash(seen), seen.kept());
        let results = listing.results.get(&seen.name);
        let before = pins.tools.get(&seen.name);
        let known = before.filter(|pin| {
            pin.definition == Some(kept) && results.is_none() && pin.version == version
        });
        let response = results.map(ObservedResults::pattern_hash);
        let response = response.or_else(|| before.and_then(|pin| pin.old.response.clone()));
        if known.is_none() {
            let shape = match (results, before) {
                (Some(results), _) => Some(results.shape().to_json().to_string()),
                (None, Some(before)) => before.stored_shape().map(ToOwned::to_owned),
                (None, None) => None,
            };
            store.add_baseline(
                server.id,
                &NewBaseline {
                    tool: &seen.name,
                    origin: BaselineOrigin::Pinned,
                    definition: Some((kept, seen.text())),
                    shape,
                    old: ToolwatchHashes {
                        schema: Some(schema_hash.clone()),
                        response: response.clone(),
                    },
                    version,
                    approval,
                },
            )?;
        }
        let parts = ToolParts {
            definition: true,
            results: results.is_some(),
        };
        close_pending(store, server.id, seen, parts)?;
        pinned.tools.push(PinReportTool {
            name: seen.name.clone(),
            already_pinned: known.is_some(),
            schema_hash,
            response_hash: response.unwrap_or_else(|| ObservedResults::NO_PATTERN.to_owned()),
            results: results.map_or(0, |results| results.shape().results()),
            at: known.and_then(|pin| pin.at).unwrap_or(approval.at),
        });
    }
    if listing.is_complete {
        let observed = listing.observed.iter();
        let seen: BTreeSet<&str> = observed.map(|seen| seen.name.as_str()).collect();
        for name in pins
            .tools
            .keys()
            .filter(|name| !seen.contains(name.as_str()))
        {
            retire(store, server.id, name, version, approval)?;
            pinned.retired.push(name.clone());
        }
        // A tool that appeared and disappeared since was never pinned, and needs no approval.
        for sighting in store.sightings(server.id)? {
            let tool = sighting.tool.as_str();
            if !seen.contains(tool) {
                store.delete_sighting(server.id, tool)?;
                ToolParts::ALL.close_alerts(store, server.id, tool, AlertStatus::Closed, &[])?;
            }
        }
    }
    Ok(pinned)
}

/// Settles the alerts of a pinned tool; results that were not examined stay pending.
fn close_pending(
    store: &Store,
    server: ServerId,
    seen: &Observation,
    parts: ToolParts,
) -> Result<(), StoreError> {
    let waits = store.sighting(server, &seen.name)?;
    // Pinning the observation of an alert approves it; pinning another one closes it.
    let approved = waits
        .as_ref()
        .is_some_and(|waits| waits.definition == Some(seen.kept()));
    let status = if approved {
        AlertStatus::Approved
    } else {
        AlertStatus::Closed
    };
    match waits.filter(|waits| waits.shape.is_some() && !parts.results) {
        Some(waits) => store.save_sighting(
            server,
            &NewSighting {
                tool: &seen.name,
                definition: Some((seen.kept(), seen.text())),
                shape: waits.shape,
                response_hash: waits.response_hash,
                version: &waits.version,
                at: waits.at,
            },
        )?,
        None => store.delete_sighting(server, &seen.name)?,
    }
    if parts.results {
        store.delete_observed_shapes(server, &seen.name)?;
    }
    parts.close_alerts(store, server, &seen.name, status, &[])
}

/// Retires a tool: it has no pin from now on.
pub(crate) fn retire(
    store: &Store,
    server: ServerId,
    name: &str,
    version: &str,
    approval: &Approval,
) -> Result<(), StoreError> {
    store.add_baseline(
        server,
        &NewBaseline {
            tool: name,
            origin: BaselineOrigin::Retired,
            definition: None,
            shape: None,
            old: ToolwatchHashes::default(),
            version,
            approval,
        },
    )?;
    store.delete_sighting(server, name)?;
    store.delete_observed_shapes(server, name)?;
    ToolParts::ALL.close_alerts(store, server, name, AlertStatus::Approved, &[])?;
    Ok(())
}
