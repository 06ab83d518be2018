//! What the comparison of two snapshots comes to, whichever rules it follows.

use std::collections::BTreeSet;

use toolwarden_model::{Severity, Verdict};
use toolwarden_trials::tooldrift::{SnapshotDelta, TooldriftSnapshot, diff};
use toolwarden_trials::{
    Confidence, FaultLimits, Incomparable, Options, PinnedContract, Snapshot, SnapshotComparison,
    TrialChange, VersionedSnapshot, compare, compare_with_pinned, contract_faults,
};

use super::pin_changes;
use crate::args::{Compat, FailThreshold, JudgeArgs};
use crate::error::ProbeError;

/// Two sides and what differs.
#[derive(Debug)]
pub(super) struct ProbeComparison {
    pub(super) old: String,
    pub(super) new: String,
    pub(super) suite: String,
    /// Every tool that was compared.
    pub(super) tools: Vec<String>,
    pub(super) changes: Vec<TrialChange>,
    pub(super) verdict: Verdict,
    pub(super) rules: ComparisonRules,
}

/// The status of a tool without a change to review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnchangedTool {
    /// It is called alike.
    Equivalent,
    /// The trials do not show whether it is.
    Inconclusive,
}

/// By which rules.
#[derive(Debug)]
pub(super) enum ComparisonRules {
    /// Ours.
    Trials(Box<SnapshotComparison>),
    /// Those of tooldrift.
    Tooldrift(SnapshotDelta),
    /// What a contract pins.
    Pinned,
}

/// Compares two snapshots. Those of tooldrift are compared by its rules, and so is everything where
/// that is asked for.
pub(super) fn compare_snapshots(
    old: &VersionedSnapshot,
    new: &VersionedSnapshot,
    args: &JudgeArgs,
) -> Result<ProbeComparison, ProbeError> {
    require_same_suite(old, new)?;
    match (old, new) {
        // Our own know what was asked, so that other questions are refused whichever rules apply.
        (VersionedSnapshot::V2(old), VersionedSnapshot::V2(new))
            if args.compat.is_none() || !is_same_suite(old, new) =>
        {
            compare_trials(old, new, args)
        }
        _ => {
            let (Some(one), Some(other)) = (as_tooldrift(old), as_tooldrift(new)) else {
                return Err(ProbeError::Mixed {
                    old: label(old),
                    new: label(new),
                });
            };
            Ok(compare_tooldrift(&one, &other, args))
        }
    }
}

/// Compares two of ours.
pub(super) fn compare_trials(
    old: &Snapshot,
    new: &Snapshot,
    args: &JudgeArgs,
) -> Result<ProbeComparison, ProbeError> {
    let options = Options {
        allowed_drop: args.allowed_drop,
        confidence: args.looks.map_or(Confidence::P95, Confidence::P95Over),
        ..Options::default()
    };
    let comparison = compare(old, new, &options).map_err(|source| ProbeError::Incomparable {
        old: old.label(),
        new: new.label(),
        source,
    })?;
    let single = old.trials.measured == 1 && new.trials.measured == 1;
    let changes = match (old.to_tooldrift(), new.to_tooldrift()) {
        (Some(one), Some(other)) if single => diff(&one, &other).merge(&comparison.changes),
        _ => comparison.changes.clone(),
    };
    Ok(ProbeComparison {
        old: old.label(),
        new: new.label(),
        suite: new.suite.clone(),
        tools: new.tools.keys().cloned().collect(),
        changes,
        verdict: comparison.verdict,
        rules: ComparisonRules::Trials(Box::new(comparison)),
    })
}

/// Suites of other names have other cases. Files of tooldrift may lack the name.
fn require_same_suite(old: &VersionedSnapshot, new: &VersionedSnapshot) -> Result<(), ProbeError> {
    let suite = |it: &VersionedSnapshot| match it {
        VersionedSnapshot::V1(one) => one.suite.clone(),
        VersionedSnapshot::V2(two) => two.suite.clone(),
    };
    let (one, other) = (suite(old), suite(new));
    if one.is_empty() || other.is_empty() || one == other {
        return Ok(());
    }
    Err(ProbeError::Incomparable {
        old: label(old),
        new: label(new),
        source: Incomparable::Suite {
            old: one,
            new: other,
        },
    })
}

fn is_same_suite(old: &Snapshot, new: &Snapshot) -> bool {
    old.suite_hash == new.suite_hash && old.tool_hashes == new.tool_hashes
}

/// Holds a snapshot to what a contract pins. Tooldrift has what is pinned as the new side.
pub(super) fn compare_with_pins(
    taken: &Snapshot,
    (expected, limits): (&PinnedContract, &FaultLimits),
    args: &JudgeArgs,
) -> ProbeComparison {
    let mut changes = compare_with_pinned(taken, expected);
    if args.compat.is_none() {
        changes.extend(contract_faults(taken, limits));
    }
    let (pins, label) = ("expected/pinned".to_owned(), taken.label());
    let (old, new, changes) = match args.compat {
        None => (pins, label, changes),
        Some(Compat::Tooldrift) => {
            let changes = pin_changes::pin_changes(taken, expected, &changes);
            (label, pins, changes)
        }
    };
    let breaks = |it: &TrialChange| it.severity() == Severity::Breaking;
    let breaks = changes.iter().any(breaks);
    ProbeComparison {
        old,
        new,
        suite: taken.suite.clone(),
        tools: shown_tools(taken, expected, &changes),
        changes,
        verdict: if taken.is_measured() || breaks {
            Verdict::new(breaks, true)
        } else {
            Verdict::NotMeasured
        },
        rules: ComparisonRules::Pinned,
    }
}

/// The tools that are pinned, and those of the suite that there is something to say of.
fn shown_tools(
    taken: &Snapshot,
    expected: &PinnedContract,
    changes: &[TrialChange],
) -> Vec<String> {
    let told = changes.iter().filter_map(|it| it.tool.as_ref());
    let told = told.filter(|tool| taken.tools.contains_key(*tool));
    let shown: BTreeSet<&String> = expected.keys().chain(told).collect();
    shown.into_iter().cloned().collect()
}

fn compare_tooldrift(
    old: &TooldriftSnapshot,
    new: &TooldriftSnapshot,
    args: &JudgeArgs,
) -> ProbeComparison {
    let delta = diff(old, new);
    ProbeComparison {
        old: delta.old_label.clone(),
        new: delta.new_label.clone(),
        suite: delta.suite.clone(),
        tools: delta.tools.iter().map(|it| it.tool.clone()).collect(),
        changes: delta.changes(match args.compat {
            Some(Compat::Tooldrift) => Severity::Warning,
            // Callers do not know a tool that was not offered, and miss one that is gone.
            None => Severity::Breaking,
        }),
        verdict: Verdict::new(!delta.is_equivalent(), true),
        rules: ComparisonRules::Tooldrift(delta),
    }
}

fn as_tooldrift(snapshot: &VersionedSnapshot) -> Option<TooldriftSnapshot> {
    match snapshot {
        VersionedSnapshot::V1(one) => Some(one.clone()),
        VersionedSnapshot::V2(two) => two.to_tooldrift(),
    }
}

fn label(snapshot: &VersionedSnapshot) -> String {
    match snapshot {
        VersionedSnapshot::V1(one) => format!("{}/{}", one.provider, one.model_id),
        VersionedSnapshot::V2(two) => two.label(),
    }
}

impl ProbeComparison {
    /// How grave the gravest difference is.
    pub(super) fn max_severity(&self) -> Option<Severity> {
        self.changes.iter().map(TrialChange::severity).max()
    }

    /// What the comparison says of a tool that has no change to review.
    pub(super) fn status_without_changes(&self, tool: &str) -> UnchangedTool {
        match &self.rules {
            ComparisonRules::Trials(comparison) => {
                let tools = &comparison.equivalent_tools;
                match tools.iter().any(|it| it == tool) {
                    true => UnchangedTool::Equivalent,
                    false => UnchangedTool::Inconclusive,
                }
            }
            ComparisonRules::Tooldrift(_) | ComparisonRules::Pinned => UnchangedTool::Equivalent,
        }
    }

    /// About how many more trials of each case and side would decide the comparison.
    pub(super) fn more_trials(&self) -> Option<u64> {
        match &self.rules {
            ComparisonRules::Trials(comparison) => comparison.more_trials,
            ComparisonRules::Tooldrift(_) | ComparisonRules::Pinned => None,
        }
    }

    /// Whether a tool differs by more than what is only good to know.
    pub(super) fn differs(&self, tool: &str) -> bool {
        let mut changes = self.changes.iter();
        changes.any(|it| it.severity() > Severity::Info && it.tool.as_deref() == Some(tool))
    }
}

impl JudgeArgs {
    /// From where on a difference makes the command fail. Tooldrift fails for any.
    pub(super) fn failing_severity(&self) -> Severity {
        let usual = match self.compat {
            Some(Compat::Tooldrift) => FailThreshold::Any,
            None => FailThreshold::Breaking,
        };
        match self.fail_on.unwrap_or(usual) {
            FailThreshold::Breaking => Severity::Breaking,
            FailThreshold::Any => Severity::Warning,
        }
    }
}

/// What all comparisons come to: drift from the severity on that the caller wants to fail on.
pub(super) fn overall_verdict(
    compared: &[ProbeComparison],
    args: &JudgeArgs,
    measured: bool,
) -> Verdict {
    let from = args.failing_severity();
    let fails = |it: &ProbeComparison| {
        let drift =
            matches!(&it.rules, ComparisonRules::Tooldrift(delta) if !delta.is_equivalent());
        it.max_severity() >= Some(from) || drift && from == Severity::Warning
    };
    let open = |it: &ProbeComparison| it.verdict == Verdict::NotMeasured;
    Verdict::new(
        compared.iter().any(fails),
        measured && !compared.iter().any(open),
    )
}
