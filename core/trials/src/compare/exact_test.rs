//! The permutation test by enumeration: every way to deal the trials of each case to two sides, with its
//! exact probability.

use toolwarden_drift::shape::ln_choose;

use super::case_trials::{CaseTrials, DropStatistic};

/// The maximum number of ways that are enumerated, and of statistics computed for them.
const MAX_DEALS: usize = 20_000;
const MAX_STATISTICS: usize = 400_000;

/// For each metric, the exact probability of a drop at least as large in any metric if the sides are the
/// same; `None` if there are too many ways to enumerate.
pub(super) fn p_values(cases: &[CaseTrials], observed: &[f64]) -> Option<Vec<f64>> {
    let mut all: Vec<Deal> = vec![Deal {
        probability: 1.0,
        sums: vec![DropStatistic::default(); observed.len()],
    }];
    for case in cases {
        let deals = deals(case, observed.len(), MAX_DEALS / all.len())?;
        if all.len().saturating_mul(deals.len()) > MAX_STATISTICS / observed.len().max(1) {
            return None;
        }
        let joined = all
            .iter()
            .flat_map(|one| deals.iter().map(|it| one.and(it)));
        all = joined.collect();
    }
    let total: f64 = all.iter().map(|it| it.probability).sum();
    let mut as_far = vec![0.0; observed.len()];
    for deal in &all {
        let farthest = deal.sums.iter().map(DropStatistic::drop);
        let farthest = farthest.fold(0.0, f64::max);
        for (sum, observed) in as_far.iter_mut().zip(observed) {
            if farthest >= observed - 1e-9 {
                *sum += deal.probability;
            }
        }
    }
    Some(as_far.iter().map(|it| (it / total).min(1.0)).collect())
}

/// One way to deal trials to the new side, with what it lacks in each metric.
struct Deal {
    probability: f64,
    sums: Vec<DropStatistic>,
}

impl Deal {
    fn and(&self, other: &Self) -> Self {
        let mut sums = self.sums.clone();
        for (sum, more) in sums.iter_mut().zip(&other.sums) {
            sum.merge(*more);
        }
        Self {
            probability: self.probability * other.probability,
            sums,
        }
    }
}

/// Every way to deal the trials of one case.
fn deals(case: &CaseTrials, metrics: usize, limit: usize) -> Option<Vec<Deal>> {
    let sizes = case.row_sizes();
    let trials = sizes.iter().fold(0, |sum: u64, it| sum.saturating_add(*it));
    let mut sides: Vec<Vec<u64>> = vec![Vec::new()];
    let mut left = trials;
    for size in sizes {
        left -= size;
        let mut longer = Vec::new();
        for side in &sides {
            let open = case.new_side_size() - side.iter().sum::<u64>();
            // The rows after this one must be able to fill the side.
            for count in open.saturating_sub(left)..=open.min(*size) {
                let mut side = side.clone();
                side.push(count);
                longer.push(side);
            }
            if longer.len() > limit {
                return None;
            }
        }
        sides = longer;
    }
    let ways = ln_choose(trials, case.new_side_size());
    let deals = sides.iter().map(|side| {
        let rows = side.iter().zip(sizes);
        let rows = rows.map(|(count, size)| ln_choose(*size, *count));
        let mut sums = vec![DropStatistic::default(); metrics];
        case.add(side, &mut sums);
        Deal {
            probability: (rows.sum::<f64>() - ways).exp(),
            sums,
        }
    });
    Some(deals.collect())
}
