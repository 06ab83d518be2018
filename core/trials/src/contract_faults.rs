use std::collections::BTreeMap;

use toolwarden_model::Severity;

use super::change::TrialChange;
use super::conformance::conformance;
use super::rate::Rate;
use super::snapshot::Snapshot;
use super::trial_rule::TrialRule;

/// How often faults with zero tolerance may occur: never, unless a contract names a share.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FaultLimits(BTreeMap<&'static str, f64>);

impl FaultLimits {
    /// The faults that can have a limit, by their words.
    pub fn words() -> impl Iterator<Item = &'static str> {
        TrialRule::ZERO_TOLERANCE.iter().map(TrialRule::as_str)
    }

    /// Allows a fault in this share of the trials or calls that could show it.
    pub fn allow(&mut self, fault: &'static str, share: f64) {
        self.0.insert(fault, share);
    }

    /// Whether no fault has a limit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn allows(&self, rule: &TrialRule, rate: Rate) -> bool {
        let limit = self.0.get(rule.as_str());
        limit.is_some_and(|limit| rate.share().is_some_and(|share| share <= *limit))
    }
}

/// The faults of a snapshot that a contract does not accept, whatever it pins.
///
/// A fault with zero tolerance breaks at its first occurrence, unless the contract allows a share of
/// it. A refusal of the tools always breaks. An argument that an open schema does not name warns, and so
/// does a reply of another model than the requested one. An expectation of a case breaks if it is
/// missed in half of the trials or more: there is no second snapshot to distinguish it from chance.
#[must_use]
pub fn contract_faults(snapshot: &Snapshot, limits: &FaultLimits) -> Vec<TrialChange> {
    let faults = conformance(snapshot).into_iter().map(|mut fault| {
        let rule = &fault.evidence.rule;
        let rate = fault.evidence.rates.map(|(_, now)| now).unwrap_or_default();
        let severity = if rule.is_zero_tolerance() {
            if limits.allows(rule, rate) {
                fault.message.push_str(" (within its `max_rate`)");
                Severity::Info
            } else {
                Severity::Breaking
            }
        } else {
            match rule {
                TrialRule::ExtraKey | TrialRule::Models => Severity::Warning,
                TrialRule::ToolsRejected => Severity::Breaking,
                _ if rate.share().is_some_and(|share| share < 0.5) => Severity::Warning,
                _ => Severity::Breaking,
            }
        };
        fault.class = severity.into();
        fault
    });
    faults.collect()
}
