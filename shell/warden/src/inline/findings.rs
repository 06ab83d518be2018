//! What the text of results carries besides its meaning.

use std::collections::BTreeMap;

use serde_json::Value;
use toolwarden_drift::text::{Detector, Finding, scan};

use super::treat::is_suspicious;

/// How much of a finding is told.
const LONGEST: usize = 300;

/// The first finding of each rule in what a model reads of a result.
pub(super) fn of_result(result: &Value) -> BTreeMap<&'static str, Finding> {
    let mut found = BTreeMap::new();
    let mut see = |text: Option<&Value>| {
        let findings = text.map(scan).unwrap_or_default();
        let told = findings.into_iter().filter(is_suspicious);
        for finding in told.filter(|it| is_about_text(it.detector)) {
            found.entry(finding.detector.as_str()).or_insert(finding);
        }
    };
    for part in result
        .get("content")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        see(part.get("text"));
        see(part.pointer("/resource/text"));
    }
    see(result.get("structuredContent"));
    found
}

/// The finding in a line that can be printed.
pub(super) fn excerpt(finding: &Finding) -> String {
    let mut told = finding.message.clone();
    if let Some(decoded) = &finding.decoded {
        told.push_str(&format!(" (reads: {decoded})"));
    }
    match told.char_indices().nth(LONGEST) {
        Some((end, _)) => told.get(..end).unwrap_or_default().to_owned() + "…",
        None => told,
    }
}

/// The others are about definitions.
const fn is_about_text(detector: Detector) -> bool {
    matches!(
        detector,
        Detector::HiddenUnicode
            | Detector::BidiControl
            | Detector::TerminalEscape
            | Detector::Injection
    )
}
