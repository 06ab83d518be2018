//! What becomes of what drifted.

use std::collections::BTreeMap;

use serde_json::Value;
use toolwarden_drift::text::{Detector, Finding, Weight, printable, scan};
use toolwarden_drift::{Class, ToolDrift};

use super::desk::summarize;
use super::findings;
use super::list::ReadList;
use super::seen::{ChangeSummary, Treatment};
use crate::record::AlertsByTool;
use crate::settings::{OnDrift, Trust, WatchSettings};

/// What becomes of each name of a list, and why nothing of the server is served.
pub(super) fn treatments(
    read: &ReadList,
    drift: &[ToolDrift],
    alerts: &AlertsByTool<'_>,
    settings: &WatchSettings,
) -> (BTreeMap<String, Treatment>, Option<String>) {
    let observed = read.listing.observed.iter().map(|it| &it.name);
    let names = observed.chain(&read.listing.unchanged).cloned();
    let mut treatments: BTreeMap<String, Treatment> =
        names.map(|name| (name, Treatment::Serve)).collect();
    let mut blocked = read
        .is_unreviewed
        .then(|| "its tools wait for approval (`trust: review`)".to_owned());
    for tool in drift {
        let measure = measure(settings, tool);
        let told = summarize(tool, alerts);
        let why = reason(tool, &told, settings);
        if measure == OnDrift::BlockServer && blocked.is_none() {
            blocked = Some(format!("`{}`: {why}", printable(tool.tool())));
        }
        let treatment = match measure {
            OnDrift::Serve => continue,
            OnDrift::Hide => Treatment::Hide { why },
            OnDrift::Quarantine | OnDrift::BlockServer => Treatment::Quarantine {
                why,
                alert: told.alert,
            },
        };
        let known = treatments
            .entry(tool.tool().to_owned())
            .or_insert(Treatment::Serve);
        if !matches!(known, Treatment::Quarantine { .. }) {
            *known = treatment;
        }
    }
    for name in &read.doubled {
        let alert = alerts.get(name.as_str());
        let quarantine = Treatment::Quarantine {
            why: "two tools of the list have this name".to_owned(),
            alert: alert.map(|it| it.id.clone()),
        };
        treatments.insert(name.clone(), quarantine);
    }
    for (name, why) in &read.unreadable {
        let quarantine = Treatment::Quarantine {
            why: why.clone(),
            alert: None,
        };
        treatments.insert(name.clone(), quarantine);
    }
    (treatments, blocked)
}

/// Why a tool is not served, for people.
fn reason(tool: &ToolDrift, told: &ChangeSummary, settings: &WatchSettings) -> String {
    let findings = match tool {
        ToolDrift::Added { findings, .. } => findings.as_slice(),
        _ => &[],
    };
    if let Some(finding) = findings.iter().find(|it| withholds(it)) {
        return format!(
            "its definition was found to be suspicious when it was first seen ({}): {}",
            finding.detector,
            findings::excerpt(finding)
        );
    }
    if matches!(tool, ToolDrift::Added { .. }) && settings.trust == Trust::Review {
        return "it was not approved yet (the server has `trust: review`)".to_owned();
    }
    format!(
        "it is not as pinned ({}): {}",
        told.class.as_str(),
        told.summary
    )
}

/// Whether a tool with this finding is withheld when it is first seen. Names that pass for others and
/// mentions of other servers occur in honest tools; they raise an alert.
pub(super) fn withholds(finding: &Finding) -> bool {
    let is_about_names = matches!(
        finding.detector,
        Detector::ConfusableName | Detector::CollidingName | Detector::CrossServerReference
    );
    is_suspicious(finding) && !is_about_names
}

/// Whether the text of a definition speaks against it, so that it is withheld when it is first seen.
#[must_use]
pub fn is_suspicious_at_first_sight(definition: &Value) -> bool {
    scan(definition).iter().any(withholds)
}

/// The least weight of a finding that counts by itself: honest tools look like the others too.
pub(super) const SUSPICIOUS: Weight = Weight::Medium;

/// Whether a finding counts by itself.
pub(super) fn is_suspicious(finding: &Finding) -> bool {
    finding.weight >= SUSPICIOUS
}

/// The strictest measure of all that apply.
fn measure(settings: &WatchSettings, tool: &ToolDrift) -> OnDrift {
    let mut measures = Vec::new();
    match tool {
        // There is nothing to serve.
        ToolDrift::Removed { .. } => {}
        ToolDrift::Added { findings, .. } => {
            measures.push(settings.on_new);
            if findings.iter().any(withholds) {
                measures.push(settings.on_finding);
            }
            if settings.trust == Trust::Review {
                measures.push(OnDrift::Quarantine);
            }
        }
        ToolDrift::Renamed { drift, .. } | ToolDrift::Changed(drift) => {
            if matches!(tool, ToolDrift::Renamed { .. }) {
                measures.push(settings.on_new);
            }
            let classes = Class::ALL.into_iter().filter(|class| tool.is(*class));
            measures.extend(classes.map(|class| on_drift(settings, class)));
            let mut reasons = drift.changes.iter().flat_map(|change| &change.reasons);
            if reasons.any(is_suspicious) {
                measures.push(settings.on_finding);
            }
        }
    }
    let strictest = measures.into_iter().max_by_key(|it| rank(*it));
    strictest.unwrap_or(OnDrift::Serve)
}

/// A class that nobody spoke of is withheld, but for the same contract in other words and what changes
/// nothing.
fn on_drift(settings: &WatchSettings, class: Class) -> OnDrift {
    let said = settings.on_drift.get(&class).copied();
    said.unwrap_or(match class {
        Class::Equivalent | Class::Info => OnDrift::Serve,
        _ => OnDrift::Quarantine,
    })
}

const fn rank(measure: OnDrift) -> u8 {
    match measure {
        OnDrift::Serve => 0,
        OnDrift::Hide => 1,
        OnDrift::Quarantine => 2,
        OnDrift::BlockServer => 3,
    }
}
