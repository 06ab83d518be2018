//! What is wrong, each thing by itself: one fault of the old side does not excuse another of the new.

use std::collections::BTreeMap;

use super::metric::Metric;
use crate::contract::mark::Mark;
use crate::contract::snapshot::Snapshot;

/// How many things are compared by themselves.
const MAX_IDENTITIES: usize = 64;

/// A share for each thing that is wrong on either side, the most frequent of them.
///
/// Which these are does not depend on which trial is of which side, or shuffling the sides would
/// not tell what chance does. One that comes up in just the trials of its kind is left to the share
/// of the kind.
pub(super) fn metrics(old: &Snapshot, new: &Snapshot) -> Vec<Metric> {
    let counts = counts([old, new]);
    let wrong = counts.iter().filter(|(mark, count)| {
        let is_all = |kind: Mark| counts.get(&kind) == Some(count);
        is_identity(mark) && !kind(mark).is_some_and(is_all)
    });
    let mut wrong: Vec<(u64, &Mark)> = wrong.map(|(mark, count)| (*count, *mark)).collect();
    wrong.sort_by(|(one, mark), (other, with)| other.cmp(one).then(mark.cmp(with)));
    let first = wrong.into_iter().take(MAX_IDENTITIES);
    first
        .map(|(_, mark)| Metric::Without { mark: mark.clone() })
        .collect()
}

/// In how many trials each mark is.
fn counts(sides: [&Snapshot; 2]) -> BTreeMap<&Mark, u64> {
    let mut counts: BTreeMap<&Mark, u64> = BTreeMap::new();
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

fn is_identity(mark: &Mark) -> bool {
    kind(mark).is_some() || matches!(mark, Mark::Forbidden(_) | Mark::Broken(_))
}

/// The mark that goes with every one of its kind.
fn kind(mark: &Mark) -> Option<Mark> {
    match mark {
        Mark::Fault { tool, .. } => Some(Mark::Invalid(tool.clone())),
        Mark::ExtraKey { tool, .. } => Some(Mark::Extra(tool.clone())),
        Mark::UndeclaredTool(_) => Some(Mark::Undeclared),
        Mark::LeakOf { .. } => Some(Mark::Leaked),
        Mark::Called(_)
        | Mark::Invalid(_)
        | Mark::Extra(_)
        | Mark::Encoded(..)
        | Mark::Undeclared
        | Mark::Forbidden(_)
        | Mark::Missed
        | Mark::Inexact
        | Mark::Leaked
        | Mark::Broken(_)
        | Mark::Inconsistent => None,
    }
}
