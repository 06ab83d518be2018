use toolwarden_model::json::Pointer;

use super::finding::{Detector, TextFinding, Weight};

/// The maximum number of findings of one detector in one string.
pub(super) const MAX_FINDINGS: usize = 16;

/// The findings of one detector in one string: without duplicates, and bounded in number.
pub(super) struct FindingCollector<'p> {
    detector: Detector,
    pointer: &'p Pointer,
    findings: Vec<TextFinding>,
    omitted: usize,
    heaviest: Weight,
}

impl<'p> FindingCollector<'p> {
    pub(super) const fn new(detector: Detector, pointer: &'p Pointer) -> Self {
        Self {
            detector,
            pointer,
            findings: Vec::new(),
            omitted: 0,
            heaviest: Weight::Low,
        }
    }

    pub(super) fn add(&mut self, weight: Weight, message: String, decoded: Option<String>) {
        let known =
            |finding: &TextFinding| finding.message == message && finding.decoded == decoded;
        if self.findings.iter().any(known) {
            return;
        }
        if self.findings.len() >= MAX_FINDINGS {
            self.omitted += 1;
            self.heaviest = self.heaviest.max(weight);
            return;
        }
        self.findings.push(TextFinding {
            detector: self.detector,
            weight,
            pointer: self.pointer.clone(),
            message,
            decoded,
        });
    }

    /// The findings, plus one that counts the omitted ones, so that a change among them still shows.
    pub(super) fn finish(mut self, findings: &mut Vec<TextFinding>) {
        if self.omitted > 0 {
            self.findings.push(TextFinding {
                detector: self.detector,
                weight: self.heaviest,
                pointer: self.pointer.clone(),
                message: format!("{} more like these in the same text", self.omitted),
                decoded: None,
            });
        }
        findings.append(&mut self.findings);
    }
}
