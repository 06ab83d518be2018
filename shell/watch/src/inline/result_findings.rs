//! Hidden text and prompt injection in results.

use std::collections::BTreeMap;

use serde_json::Value;
use toolwarden_drift::text::{Detector, TextFinding, scan};

use super::apply_policy::is_suspicious;

/// The maximum length of a reported finding.
const MAX_EXCERPT_LEN: usize = 300;

/// The first finding of each rule in the text of a result that a model reads.
pub(super) fn scan_result(result: &Value) -> BTreeMap<&'static str, TextFinding> {
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

/// The finding as a printable line.
pub(super) fn excerpt(finding: &TextFinding) -> String {
    let mut told = finding.message.clone();
    if let Some(decoded) = &finding.decoded {
        told.push_str(&format!(" (reads: {decoded})"));
    }
    match told.char_indices().nth(MAX_EXCERPT_LEN) {
        Some((end, _)) => told.get(..end).unwrap_or_default().to_owned() + "…",
        None => told,
    }
}

/// Whether a detector applies to results; the others apply to definitions.
const fn is_about_text(detector: Detector) -> bool {
    matches!(
        detector,
        Detector::HiddenUnicode
            | Detector::BidiControl
            | Detector::TerminalEscape
            | Detector::Injection
    )
}
