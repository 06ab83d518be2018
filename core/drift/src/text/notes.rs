use toolwarden_model::json::Pointer;

use super::finding::{Detector, Finding, Weight};

/// How many findings one detector may make of one string.
pub(super) const MOST: usize = 16;

/// The findings of one detector in one string: equal ones once, and a bounded number of them.
pub(super) struct Notes<'p> {
    detector: Detector,
    pointer: &'p Pointer,
    findings: Vec<Finding>,
    left_out: usize,
    heaviest: Weight,
}

impl<'p> Notes<'p> {
    pub(super) const fn new(detector: Detector, pointer: &'p Pointer) -> Self {
        Self {
            detector,
            pointer,
            findings: Vec::new(),
            left_out: 0,
            heaviest: Weight::Low,
        }
    }

    pub(super) fn add(&mut self, weight: Weight, message: String, decoded: Option<String>) {
        let known = |finding: &Finding| finding.message == message && finding.decoded == decoded;
        if self.findings.iter().any(known) {
            return;
        }
        if self.findings.len() >= MOST {
            self.left_out += 1;
            self.heaviest = self.heaviest.max(weight);
            return;
        }
        self.findings.push(Finding {
            detector: self.detector,
            weight,
            pointer: self.pointer.clone(),
            message,
            decoded,
        });
    }

    /// The findings, with one that counts those left out: a change among them still shows.
    pub(super) fn finish(mut self, findings: &mut Vec<Finding>) {
        if self.left_out > 0 {
            self.findings.push(Finding {
                detector: self.detector,
                weight: self.heaviest,
                pointer: self.pointer.clone(),
                message: format!("{} more like these in the same text", self.left_out),
                decoded: None,
            });
        }
        findings.append(&mut self.findings);
    }
}
