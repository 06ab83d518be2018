//! Takes over the files of the toolwatch program.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::json;
use thiserror::Error;
use toolwarden_drift::toolwatch::{OldAlert, OldFingerprint};
use toolwarden_model::Fingerprint;
use toolwarden_store::{
    AlertStatus, Approval, NewAlert, NewBaseline, OldHashes, Origin, ServerKey, Store, StoreError,
};

use crate::guard::audit::record_approval;
use crate::{DEFAULT_SCOPE, LOCAL};

/// What the toolwatch program kept.
#[derive(Clone, Debug, Default)]
pub struct OldState {
    /// Its baselines.
    pub baselines: Vec<OldFingerprint>,
    /// Its alerts, with the JSON it wrote for each.
    pub alerts: Vec<(OldAlert, String)>,
}

/// What became of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Tools that are pinned by hash now.
    pub baselines: usize,
    /// Tools that were pinned before and stay as they are.
    pub known: usize,
    /// Alerts that are kept now.
    pub alerts: usize,
}

/// Why files cannot be taken over.
#[derive(Debug, Error)]
pub enum ImportError {
    /// The store cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A time is none.
    #[error("`{tool}`: not a time: `{found}`")]
    Time {
        /// The tool.
        tool: String,
        /// What was found.
        found: String,
    },
}

/// Takes over what the toolwatch program kept, and records who did it and why in the audit log. Doing it
/// again changes nothing.
///
/// # Errors
/// A time cannot be read, or the store cannot be written.
pub fn import(store: &Store, old: &OldState, approval: &Approval) -> Result<Imported, ImportError> {
    let key = ServerKey {
        name: LOCAL.to_owned(),
        scope: DEFAULT_SCOPE.to_owned(),
    };
    store.write(|store| {
        let server = store.keep_server(&key, false, approval.at)?;
        let known = store.baselines(server.id)?;
        let known: BTreeSet<&str> = known.iter().map(|it| it.tool.as_str()).collect();
        let mut imported = Imported::default();
        let mut tools = Vec::new();
        for baseline in &old.baselines {
            if known.contains(baseline.tool.as_str()) {
                imported.known += 1;
                continue;
            }
            let pinned = Approval {
                at: time(&baseline.tool, &baseline.captured_at)?,
                ..approval.clone()
            };
            store.add_baseline(
                server.id,
                &NewBaseline {
                    tool: &baseline.tool,
                    origin: Origin::Imported,
                    definition: None,
                    shape: None,
                    old: OldHashes {
                        schema: Some(baseline.schema_hash.clone()),
                        response: Some(baseline.response_pattern_hash.clone()),
                    },
                    version: &baseline.version,
                    approval: &pinned,
                },
            )?;
            imported.baselines += 1;
            tools.push(baseline.tool.as_str());
        }
        for (alert, document) in &old.alerts {
            let parts = [alert.tool.as_str(), &alert.detected_at, document];
            let id = Fingerprint::tagged("toolwarden/imported-alert/v1", parts).to_string();
            let id: String = id.chars().take(12).collect();
            let added = store.add_alert(
                server.id,
                &NewAlert {
                    id: &id,
                    tool: &alert.tool,
                    change_type: &alert.change_type,
                    severity: &alert.severity,
                    class: "unknown",
                    at: time(&alert.tool, &alert.detected_at)?,
                    document: "{}",
                    old_form: document,
                },
                AlertStatus::Closed,
            )?;
            imported.alerts += usize::from(added);
        }
        let pinned = (!tools.is_empty())
            .then(|| json!({"server": key.name, "scope": key.scope, "tools": tools}));
        record_approval(store, "imported", pinned, approval)?;
        Ok(imported)
    })
}

fn time(tool: &str, text: &str) -> Result<Timestamp, ImportError> {
    text.parse().map_err(|_| ImportError::Time {
        tool: tool.to_owned(),
        found: text.to_owned(),
    })
}
