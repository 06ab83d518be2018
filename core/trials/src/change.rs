use serde_json::Value;
use toolwarden_model::json::Pointer;
use toolwarden_model::{Change, ChangeClass, ChangeEvidence, ChangeId, ChangeKind, Severity};

use super::rate::Rate;
use super::trial_rule::TrialRule;

/// One difference between two snapshots, or between a snapshot and its expectations.
///
/// Its place is in the arguments of the tool, with `*` for the items of an array, or in the snapshot.
pub type TrialChange = Change<TrialEvidence>;

/// What the comparison of trials knows of a change.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialEvidence {
    /// What differs; the rule of the change is its stable word.
    pub rule: TrialRule,
    /// The rate on either side, if the change is about a rate.
    pub rates: Option<(Rate, Rate)>,
}

impl ChangeEvidence for TrialEvidence {
    fn introduces(&self, _: ChangeClass) -> bool {
        false
    }
}

/// The parts of a change from which the rest follows.
#[derive(Clone, Debug)]
pub(super) struct ChangeParts {
    pub(super) tool: Option<String>,
    pub(super) rule: TrialRule,
    pub(super) pointer: String,
    pub(super) severity: Severity,
    pub(super) before: String,
    pub(super) after: String,
    pub(super) message: String,
    pub(super) rates: Option<(Rate, Rate)>,
}

impl From<ChangeParts> for TrialChange {
    fn from(parts: ChangeParts) -> Self {
        let ChangeParts {
            tool,
            rule,
            pointer,
            severity,
            before,
            after,
            message,
            rates,
        } = parts;
        let pointer = Pointer::from(pointer.as_str());
        Self {
            id: change_id(tool.as_deref(), &rule, &pointer, &message),
            rule: rule.as_str(),
            pointer,
            kind: change_kind(rates),
            class: severity.into(),
            before: value(before),
            after: value(after),
            message,
            evidence: TrialEvidence { rule, rates },
            tool,
        }
    }
}

/// The id depends on the tool, the rule and the place, not on how often something was seen. Violations
/// at one place differ by their keyword.
fn change_id(tool: Option<&str>, rule: &TrialRule, pointer: &Pointer, message: &str) -> ChangeId {
    let keyword = (*rule == TrialRule::SchemaViolation).then(|| Value::from(keyword(message)));
    let rule = rule.to_string();
    ChangeId::of(
        tool.unwrap_or_default(),
        &rule,
        pointer,
        None,
        keyword.as_ref(),
    )
}

/// The text before the colon does not depend on which message was kept.
pub(super) fn keyword(what: &str) -> String {
    what.split(':').next().unwrap_or_default().to_owned()
}

const fn change_kind(rates: Option<(Rate, Rate)>) -> ChangeKind {
    match rates {
        Some((old, new)) if old.hits == 0 && new.hits > 0 => ChangeKind::Added,
        Some((old, new)) if old.hits > 0 && new.hits == 0 => ChangeKind::Removed,
        _ => ChangeKind::Changed,
    }
}

fn value(text: String) -> Option<Value> {
    (!text.is_empty()).then(|| Value::from(text))
}

/// Sorts by tool, the most severe first.
pub(super) fn sort(changes: &mut [TrialChange]) {
    changes.sort_by(|one, other| {
        let key = |it: &TrialChange| (it.tool.is_none(), it.tool.clone());
        let place = |it: &TrialChange| (it.evidence.rule.to_string(), it.pointer.clone());
        key(one)
            .cmp(&key(other))
            .then(other.severity().cmp(&one.severity()))
            .then_with(|| place(one).cmp(&place(other)))
    });
}
