//! The treatment of drifted tools.

use std::collections::BTreeMap;

use serde_json::Value;
use toolwarden_drift::text::{Detector, TextFinding, Weight, printable, scan};
use toolwarden_drift::{ChangeClass, ToolDrift};

use super::observed::{ChangeSummary, ToolAction};
use super::parsed_list::ParsedList;
use super::result_findings;
use super::store_thread::summarize;
use crate::record::AlertsByTool;
use toolwarden_settings::{OnDrift, TrustMode, WatchSettings};

/// The treatment of each name in a list, and why nothing of the server is served, if so.
pub(super) fn decide_tool_actions(
    read: &ParsedList,
    drift: &[ToolDrift],
    alerts: &AlertsByTool<'_>,
    settings: &WatchSettings,
) -> (BTreeMap<String, ToolAction>, Option<String>) {
    let observed = read.listing.observed.iter().map(|it| &it.name);
    let names = observed.chain(&read.listing.unchanged).cloned();
    let mut tool_actions: BTreeMap<String, ToolAction> =
        names.map(|name| (name, ToolAction::Serve)).collect();
    let mut blocked = read
        .is_unreviewed
        .then(|| "its tools are pending approval (`trust: review`)".to_owned());
    for tool in drift {
        let measure = strictest_action(settings, tool);
        let told = summarize(tool, alerts);
        let why = reason(tool, &told, settings);
        if measure == OnDrift::BlockServer && blocked.is_none() {
            blocked = Some(format!("`{}`: {why}", printable(tool.tool())));
        }
        let tool_action = match measure {
            OnDrift::Serve => continue,
            OnDrift::Hide => ToolAction::Hide { why },
            OnDrift::Quarantine | OnDrift::BlockServer => ToolAction::Quarantine {
                why,
                alert: told.alert,
            },
        };
        let known = tool_actions
            .entry(tool.tool().to_owned())
            .or_insert(ToolAction::Serve);
        if !matches!(known, ToolAction::Quarantine { .. }) {
            *known = tool_action;
        }
    }
    for name in &read.duplicates {
        let alert = alerts.get(name.as_str());
        let quarantine = ToolAction::Quarantine {
            why: "two tools of the list have this name".to_owned(),
            alert: alert.map(|it| it.id.clone()),
        };
        tool_actions.insert(name.clone(), quarantine);
    }
    for (name, why) in &read.unreadable {
        let quarantine = ToolAction::Quarantine {
            why: why.clone(),
            alert: None,
        };
        tool_actions.insert(name.clone(), quarantine);
    }
    (tool_actions, blocked)
}

/// Why a tool is not served, for people.
fn reason(tool: &ToolDrift, told: &ChangeSummary, settings: &WatchSettings) -> String {
    let findings = match tool {
        ToolDrift::Added { findings, .. } => findings.as_slice(),
        _ => &[],
    };
    if let Some(finding) = findings.iter().find(|it| is_withheld(it)) {
        return format!(
            "its definition was found to be suspicious when it was first seen ({}): {}",
            finding.detector,
            result_findings::excerpt(finding)
        );
    }
    if matches!(tool, ToolDrift::Added { .. }) && settings.trust == TrustMode::Review {
        return "it was not approved yet (the server has `trust: review`)".to_owned();
    }
    format!(
        "it does not match its pin ({}): {}",
        told.class.as_str(),
        told.summary
    )
}

/// Whether a new tool with this finding is withheld. Names that resemble others and mentions of other
/// servers occur in honest tools; they raise an alert.
pub(super) fn is_withheld(finding: &TextFinding) -> bool {
    let is_about_names = matches!(
        finding.detector,
        Detector::ConfusableName | Detector::CollidingName | Detector::CrossServerReference
    );
    is_suspicious(finding) && !is_about_names
}

/// Whether the text of a definition is so suspicious that a new tool is withheld.
#[must_use]
pub fn is_withheld_on_first_use(definition: &Value) -> bool {
    scan(definition).iter().any(is_withheld)
}

/// The minimum weight of a finding that counts on its own: honest tools have weaker findings too.
pub(super) const MIN_SUSPICIOUS_WEIGHT: Weight = Weight::Medium;

/// Whether a finding counts on its own.
pub(super) fn is_suspicious(finding: &TextFinding) -> bool {
    finding.weight >= MIN_SUSPICIOUS_WEIGHT
}

/// The strictest of all applicable measures.
fn strictest_action(settings: &WatchSettings, tool: &ToolDrift) -> OnDrift {
    let mut measures = Vec::new();
    match tool {
        // There is nothing to serve.
        ToolDrift::Removed { .. } => {}
        ToolDrift::Added { findings, .. } => {
            measures.push(settings.on_new);
            if findings.iter().any(is_withheld) {
                measures.push(settings.on_finding);
            }
            if settings.trust == TrustMode::Review {
                measures.push(OnDrift::Quarantine);
            }
        }
        ToolDrift::Renamed { drift, .. } | ToolDrift::Changed(drift) => {
            if matches!(tool, ToolDrift::Renamed { .. }) {
                measures.push(settings.on_new);
            }
            let classes = ChangeClass::ALL
                .into_iter()
                .filter(|class| tool.has_class(*class));
            measures.extend(classes.map(|class| action_for_class(settings, class)));
            let mut reasons = drift
                .changes
                .iter()
                .flat_map(|change| &change.evidence.reasons);
            if reasons.any(is_suspicious) {
                measures.push(settings.on_finding);
            }
        }
    }
    let strictest = measures.into_iter().max_by_key(|it| action_rank(*it));
    strictest.unwrap_or(OnDrift::Serve)
}

/// A class without a setting is withheld, except for the same contract in other words and changes without
/// effect.
fn action_for_class(settings: &WatchSettings, class: ChangeClass) -> OnDrift {
    let said = settings.on_drift.get(&class).copied();
    said.unwrap_or(match class {
        ChangeClass::Equivalent | ChangeClass::Info => OnDrift::Serve,
        _ => OnDrift::Quarantine,
    })
}

const fn action_rank(measure: OnDrift) -> u8 {
    match measure {
        OnDrift::Serve => 0,
        OnDrift::Hide => 1,
        OnDrift::Quarantine => 2,
        OnDrift::BlockServer => 3,
    }
}
