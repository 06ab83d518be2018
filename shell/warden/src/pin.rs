//! Pins what is seen, by command.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};
use toolwarden_store::{
    AlertStatus, Approval, NewBaseline, NewSighting, OldHashes, Origin, ServerId, ServerKey, Store,
    StoreError,
};

use crate::guard::audit::record_approval;
use crate::judge::{Listing, hash_of};
use crate::observation::Observation;
use crate::parts::Parts;
use crate::pins::{Pins, PinsError};
use crate::results::Results;

/// What pinning a server did.
#[derive(Debug)]
pub struct Pinned {
    /// Each tool, in the order they were seen.
    pub tools: Vec<PinnedTool>,
    /// Tools that were pinned and are not offered any more.
    pub retired: Vec<String>,
    /// Whether a further tool of the server is drift from now on.
    pub sealed: bool,
}

/// A tool that was pinned.
#[derive(Clone, Debug)]
pub struct PinnedTool {
    /// Its name.
    pub name: String,
    /// Whether it was pinned as it is already.
    pub known: bool,
    /// The toolwatch hash of its definition.
    pub schema_hash: String,
    /// The toolwatch hash of its results.
    pub response_hash: String,
    /// How many results its shape rests on.
    pub results: u64,
    /// Since when it is pinned like this.
    pub at: Timestamp,
}

/// Pins what is seen of a server. If that changes anything, the audit log says who
/// did it and why.
///
/// # Errors
/// The store cannot be written.
pub fn pin(
    store: &Store,
    key: &ServerKey,
    listing: &Listing,
    seal: bool,
    version: &str,
    approval: &Approval,
) -> Result<Pinned, PinsError> {
    store.write(|store| {
        let was_sealed = store.server(key)?.is_some_and(|server| server.sealed);
        let pinned = pin_listing(store, key, listing, seal, version, approval)?;
        let done = pinned.document(key, was_sealed);
        record_approval(store, "pinned", done, approval)?;
        Ok(pinned)
    })
}

impl Pinned {
    /// What changed, for the audit log; none if nothing did.
    fn document(&self, key: &ServerKey, was_sealed: bool) -> Option<Value> {
        let new = self.tools.iter().filter(|tool| !tool.known);
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
    listing: &Listing,
    seal: bool,
    version: &str,
    approval: &Approval,
) -> Result<Pinned, PinsError> {
    let pins = Pins::of_store(store, key)?;
    let server = store.keep_server(key, seal, approval.at)?;
    let mut pinned = Pinned {
        tools: Vec::new(),
        retired: Vec::new(),
        sealed: server.sealed,
    };
    for seen in &listing.observed {
        let (schema_hash, kept) = (hash_of(seen), seen.kept());
        let results = listing.results.get(&seen.name);
        let before = pins.tools.get(&seen.name);
        let known = before.filter(|pin| {
            pin.definition == Some(kept) && results.is_none() && pin.version == version
        });
        let response = results.map(Results::pattern_hash);
        let response = response.or_else(|| before.and_then(|pin| pin.old.response.clone()));
        if known.is_none() {
            let shape = match (results, before) {
                (Some(results), _) => Some(results.shape().to_json().to_string()),
                (None, Some(before)) => before.kept_shape().map(ToOwned::to_owned),
                (None, None) => None,
            };
            store.add_baseline(
                server.id,
                &NewBaseline {
                    tool: &seen.name,
                    origin: Origin::Pinned,
                    definition: Some((kept, seen.text())),
                    shape,
                    old: OldHashes {
                        schema: Some(schema_hash.clone()),
                        response: response.clone(),
                    },
                    version,
                    approval,
                },
            )?;
        }
        let parts = Parts {
            definition: true,
            results: results.is_some(),
        };
        settle(store, server.id, seen, parts)?;
        pinned.tools.push(PinnedTool {
            name: seen.name.clone(),
            known: known.is_some(),
            schema_hash,
            response_hash: response.unwrap_or_else(|| Results::NO_PATTERN.to_owned()),
            results: results.map_or(0, |results| results.shape().results()),
            at: known.and_then(|pin| pin.at).unwrap_or(approval.at),
        });
    }
    if listing.whole {
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
        // What came and went since was never pinned, and needs no approval.
        for sighting in store.sightings(server.id)? {
            let tool = sighting.tool.as_str();
            if !seen.contains(tool) {
                store.drop_sighting(server.id, tool)?;
                Parts::ALL.settle(store, server.id, tool, AlertStatus::Closed, &[])?;
            }
        }
    }
    Ok(pinned)
}

/// What was pinned waits for nobody; results that were not looked at go on waiting.
fn settle(
    store: &Store,
    server: ServerId,
    seen: &Observation,
    parts: Parts,
) -> Result<(), StoreError> {
    let waits = store.sighting(server, &seen.name)?;
    // Pinning what an alert is about approves it; pinning something else ends it.
    let approved = waits
        .as_ref()
        .is_some_and(|waits| waits.definition == Some(seen.kept()));
    let status = if approved {
        AlertStatus::Approved
    } else {
        AlertStatus::Closed
    };
    match waits.filter(|waits| waits.shape.is_some() && !parts.results) {
        Some(waits) => store.keep_sighting(
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
        None => store.drop_sighting(server, &seen.name)?,
    }
    if parts.results {
        store.drop_observed_shapes(server, &seen.name)?;
    }
    parts.settle(store, server, &seen.name, status, &[])
}

/// Lets a tool go: it is held to nothing from now on.
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
            origin: Origin::Retired,
            definition: None,
            shape: None,
            old: OldHashes::default(),
            version,
            approval,
        },
    )?;
    store.drop_sighting(server, name)?;
    store.drop_observed_shapes(server, name)?;
    Parts::ALL.settle(store, server, name, AlertStatus::Approved, &[])?;
    Ok(())
}
