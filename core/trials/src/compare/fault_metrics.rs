//! Metrics of single faults: one fault of the old side does not excuse another of the new side.

use std::collections::BTreeMap;

use super::metric::{Metric, is_zero_tolerance};
use crate::snapshot::Snapshot;
use crate::trial_mark::TrialMark;

/// The maximum number of faults that are compared individually.
const MAX_FAULT_METRICS: usize = 64;

/// The maximum number of other faults that are reported because only the new side shows them.
const MAX_APPEARED: usize = 1_000;

/// The shares of single faults.
pub(super) struct FaultMetrics {
    /// Those of the most frequent faults of both sides together.
    pub(super) most_frequent: Vec<Metric>,
    /// Those of the other faults with zero tolerance that the old side never shows.
    pub(super) appeared: Vec<Metric>,
}

/// One share for each fault of either side, limited to the most frequent faults.
///
/// The selection does not depend on which trial belongs to which side; otherwise shuffling the sides
/// would not measure chance. A fault that occurs in exactly the trials of its kind is left to the share
/// of the kind.
pub(super) fn fault_metrics(old: &Snapshot, new: &Snapshot) -> FaultMetrics {
    let counts = counts([old, new]);
    let wrong = counts.iter().filter(|(mark, count)| {
        let is_all = |kind: TrialMark| counts.get(&kind) == Some(count);
        is_specific_fault(mark) && !kind(mark).is_some_and(is_all)
    });
    let mut wrong: Vec<(u64, &TrialMark)> = wrong.map(|(mark, count)| (*count, *mark)).collect();
    wrong.sort_by(|(one, mark), (other, with)| other.cmp(one).then(mark.cmp(with)));
    let metric = |(_, mark): &(u64, &TrialMark)| Metric::Without {
        mark: (*mark).clone(),
    };
    let before = self::counts([old, old]);
    let appeared = wrong.iter().skip(MAX_FAULT_METRICS);
    let appeared = appeared.filter(|(_, it)| is_zero_tolerance(it) && !before.contains_key(*it));
    FaultMetrics {
        most_frequent: wrong.iter().take(MAX_FAULT_METRICS).map(metric).collect(),
        appeared: appeared.take(MAX_APPEARED).map(metric).collect(),
    }
}

/// The number of trials that have each mark.
fn counts(sides: [&Snapshot; 2]) -> BTreeMap<&TrialMark, u64> {
    let mut counts: BTreeMap<&TrialMark, u64> = BTreeMap::new();
    let cases = sides.into_iter().flat_map(|it| it.cases.values());
    let outcomes = cases.flat_map(|it| &it.outcomes);
    for outcome in outcomes {
        for mark in &outcome.marks {
            let count = counts.entry(mark).or_default();
            *count = count.saturating_add(outcome.trials);
        }
    }
    counts
}

fn is_specific_fault(mark: &TrialMark) -> bool {
    kind(mark).is_some() || matches!(mark, TrialMark::Forbidden(_) | TrialMark::Broken(_))
}

/// The mark that accompanies every fault of this kind.
fn kind(mark: &TrialMark) -> Option<TrialMark> {
    match mark {
        TrialMark::Fault { tool, .. } => Some(TrialMark::Invalid(tool.clone())),
        TrialMark::ExtraKey { tool, .. } => Some(TrialMark::Extra(tool.clone())),
        TrialMark::UndeclaredTool(_) => Some(TrialMark::Undeclared),
        TrialMark::LeakOf { .. } => Some(TrialMark::Leaked),
        TrialMark::Called(_)
        | TrialMark::Invalid(_)
        | TrialMark::Extra(_)
        | TrialMark::Encoded(..)
        | TrialMark::Undeclared
        | TrialMark::Forbidden(_)
        | TrialMark::Missed
        | TrialMark::Inexact
        | TrialMark::Leaked
        | TrialMark::Broken(_)
        | TrialMark::Inconsistent => None,
    }
}
