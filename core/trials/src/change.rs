use toolwarden_model::Severity;

use super::rate::Rate;
use super::trial_rule::TrialRule;

/// One difference between two snapshots, or between a snapshot and its expectations.
#[derive(Clone, Debug, PartialEq)]
pub struct ContractChange {
    /// The tool it is about, if it is about one.
    pub tool: Option<String>,
    /// What differs.
    pub rule: TrialRule,
    /// Where: in the arguments of the tool with `*` for the items of an array, or in the snapshot.
    pub pointer: String,
    /// How severe it is.
    pub severity: Severity,
    /// The value before.
    pub before: String,
    /// The value now.
    pub after: String,
    /// One sentence for the reader.
    pub note: String,
    /// The rate on either side, if the change is about a rate.
    pub rates: Option<(Rate, Rate)>,
}

/// Sorts by tool, the most severe first.
pub(super) fn sort(changes: &mut [ContractChange]) {
    changes.sort_by(|one, other| {
        let key = |it: &ContractChange| (it.tool.is_none(), it.tool.clone());
        let place = |it: &ContractChange| (it.rule.to_string(), it.pointer.clone());
        key(one)
            .cmp(&key(other))
            .then(other.severity.cmp(&one.severity))
            .then_with(|| place(one).cmp(&place(other)))
    });
}
