//! The id, severity and summary of an alert.

use toolwarden_drift::text::Weight;
use toolwarden_drift::{Facet, ToolDrift, ToolwatchChangeType};
use toolwarden_model::{Fingerprint, Severity, summarize_changes};
use toolwarden_store::ServerKey;

use crate::judge::ServerListing;

/// The severity of drift: it depends on the class, and on whether definition and results both drifted.
pub(crate) fn severity(tool: &ToolDrift) -> Severity {
    let both = tool.change_type() == ToolwatchChangeType::Behavior;
    let by_class = tool.class().severity();
    if both { Severity::Breaking } else { by_class }
}

pub(crate) fn has_result_drift(tool: &ToolDrift) -> bool {
    let (ToolDrift::Changed(drift) | ToolDrift::Renamed { drift, .. }) = tool else {
        return false;
    };
    drift
        .changes
        .iter()
        .any(|change| change.evidence.facet == Facet::Result)
}

/// Derives the id of drift from the baseline and the observation. So the same drift observed again is the
/// same alert, and an approval covers exactly what was shown.
pub(crate) fn alert_id(
    key: &ServerKey,
    tool: &ToolDrift,
    held_to: &str,
    listing: &ServerListing,
) -> String {
    let name = tool.tool();
    let outcome = match tool {
        ToolDrift::Changed(_) => "changed",
        ToolDrift::Added { .. } => "added",
        ToolDrift::Removed { .. } => "removed",
        ToolDrift::Renamed { .. } => "renamed",
    };
    let mut parts = vec![
        key.name.clone(),
        key.scope.clone(),
        name.to_owned(),
        outcome.to_owned(),
        held_to.to_owned(),
    ];
    let mut seen: Vec<String> = Vec::new();
    if let ToolDrift::Changed(drift) = tool {
        seen.extend(drift.changes.iter().map(|it| it.id.to_string()));
    }
    if tool.change_type() != ToolwatchChangeType::Response {
        let observed = listing.observed.iter().filter(|it| it.name == name);
        seen.extend(observed.map(|it| it.semantic_fingerprint().to_string()));
    }
    seen.sort_unstable();
    parts.extend(seen);
    let digest = Fingerprint::tagged("toolwarden/alert/v1", parts.iter().map(String::as_str));
    digest.to_string().chars().take(12).collect()
}

/// A one-line summary of drift.
#[must_use]
pub fn summary_line(drift: &ToolDrift) -> String {
    match drift {
        ToolDrift::Added { findings, .. } => {
            let worst = findings.iter().max_by_key(|it| it.weight);
            match worst.filter(|it| it.weight >= Weight::Medium) {
                Some(found) => format!(
                    "the tool is new, and its definition is suspicious ({}): {}",
                    found.detector, found.message
                ),
                None => "the tool is new".to_owned(),
            }
        }
        ToolDrift::Removed { .. } => "the tool is gone".to_owned(),
        ToolDrift::Renamed { rename, .. } => format!("`{}` was renamed to this name", rename.from),
        ToolDrift::Changed(drift) => summarize_changes(&drift.changes),
    }
}
