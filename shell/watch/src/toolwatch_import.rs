//! Imports the files of the toolwatch program.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::json;
use thiserror::Error;
use toolwarden_drift::toolwatch::{ToolwatchAlert, ToolwatchFingerprint};
use toolwarden_model::Fingerprint;
use toolwarden_store::{
    AlertStatus, Approval, BaselineOrigin, NewAlert, NewBaseline, ServerKey, Store, StoreError,
    ToolwatchHashes,
};

use crate::{DEFAULT_SCOPE, LOCAL_SERVER};
use toolwarden_live_guard::audit::record_approval;

/// The data of the toolwatch program.
#[derive(Clone, Debug, Default)]
pub struct ToolwatchState {
    /// Its baselines.
    pub baselines: Vec<ToolwatchFingerprint>,
    /// Its alerts, with the JSON it wrote for each.
    pub alerts: Vec<(ToolwatchAlert, String)>,
}

/// The result of an import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// The number of tools that are now pinned by hash.
    pub baselines: usize,
    /// The number of tools that already had a pin and keep it.
    pub known: usize,
    /// The number of imported alerts.
    pub alerts: usize,
}

/// Why files cannot be imported.
#[derive(Debug, Error)]
pub enum ImportError {
    /// The store cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A time is invalid.
    #[error("`{tool}`: not a time: `{found}`")]
    Time {
        /// The tool.
        tool: String,
        /// The invalid text.
        found: String,
    },
}

/// Imports the data of the toolwatch program, and records who did it and why in the audit log. Importing
/// again changes nothing.
///
/// # Errors
/// A time cannot be parsed, or the store cannot be written.
pub fn import_toolwatch(
    store: &Store,
    old: &ToolwatchState,
    approval: &Approval,
) -> Result<ImportReport, ImportError> {
    let key = ServerKey {
        name: LOCAL_SERVER.to_owned(),
        scope: DEFAULT_SCOPE.to_owned(),
    };
    store.write_transaction(|store| {
        let server = store.ensure_server(&key, false, approval.at)?;
        let known = store.baselines(server.id)?;
        let known: BTreeSet<&str> = known.iter().map(|it| it.tool.as_str()).collect();
        let mut imported = ImportReport::default();
        let mut tools = Vec::new();
        for baseline in &old.baselines {
            if known.contains(baseline.tool.as_str()) {
                imported.known += 1;
                continue;
            }
            let pinned = Approval {
                at: parse_time(&baseline.tool, &baseline.captured_at)?,
                ..approval.clone()
            };
            store.add_baseline(
                server.id,
                &NewBaseline {
                    tool: &baseline.tool,
                    origin: BaselineOrigin::Imported,
                    definition: None,
                    shape: None,
                    old: ToolwatchHashes {
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
                    at: parse_time(&alert.tool, &alert.detected_at)?,
                    document: "{}",
                    toolwatch_document: document,
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

fn parse_time(tool: &str, text: &str) -> Result<Timestamp, ImportError> {
    text.parse().map_err(|_| ImportError::Time {
        tool: tool.to_owned(),
        found: text.to_owned(),
    })
}
