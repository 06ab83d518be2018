//! The trials of a case, which tests reassign to two sides.

use super::metric::{OutcomeRow, Stratum};
use crate::rate::{Rate, float};
use crate::statistics::SeededRandom;

/// The trials of one case, as cards that are dealt to two sides.
pub(super) struct CaseTrials {
    /// The row of each trial.
    trial_rows: Vec<usize>,
    /// How many trials are on the new side.
    new_side_size: usize,
    /// How many trials each row has on both sides together.
    row_sizes: Vec<u64>,
    /// How many trials of each row are on the new side.
    observed: Vec<u64>,
    /// How many are after the last deal.
    shuffled: Vec<u64>,
    /// For each metric that can differ: all that count and are good, and the verdict of each row.
    metrics: Vec<(usize, Rate, Vec<Option<bool>>)>,
}

impl CaseTrials {
    pub(super) fn of(stratum: &Stratum, metrics: usize) -> Self {
        let mut trial_rows = Vec::new();
        let (mut hand, mut observed) = (0_u64, Vec::new());
        let mut row_sizes = Vec::new();
        for (at, row) in stratum.rows.iter().enumerate() {
            let trials = usize::try_from(row.old.saturating_add(row.new)).unwrap_or(0);
            trial_rows.extend(std::iter::repeat_n(at, trials));
            hand += row.new;
            observed.push(row.new);
            row_sizes.push(row.old.saturating_add(row.new));
        }
        let metrics = (0..metrics).filter_map(|metric| {
            let verdict = |row: &OutcomeRow| row.verdicts.get(metric).copied().flatten();
            let verdicts: Vec<Option<bool>> = stratum.rows.iter().map(verdict).collect();
            let mut all = Rate::default();
            for (row, verdict) in stratum.rows.iter().zip(&verdicts) {
                if let Some(good) = verdict {
                    let trials = row.old.saturating_add(row.new);
                    all.add(Rate::new(if *good { trials } else { 0 }, trials));
                }
            }
            let varies = all.hits > 0 && all.hits < all.of;
            varies.then_some((metric, all, verdicts))
        });
        Self {
            metrics: metrics.collect(),
            new_side_size: usize::try_from(hand).unwrap_or(0),
            trial_rows,
            row_sizes,
            shuffled: observed.clone(),
            observed,
        }
    }

    pub(super) const fn varies(&self) -> bool {
        !self.metrics.is_empty()
            && self.new_side_size > 0
            && self.new_side_size < self.trial_rows.len()
    }

    /// How many trials there are on both sides together.
    pub(super) fn trials(&self) -> u64 {
        u64::try_from(self.trial_rows.len()).unwrap_or(u64::MAX)
    }

    /// How many trials of each row are on the new side.
    pub(super) fn observed(&self) -> &[u64] {
        &self.observed
    }

    /// How many are after the last deal.
    pub(super) fn shuffled(&self) -> &[u64] {
        &self.shuffled
    }

    /// How many trials each row has on both sides together.
    pub(super) fn row_sizes(&self) -> &[u64] {
        &self.row_sizes
    }

    /// How many trials are on the new side.
    pub(super) fn new_side_size(&self) -> u64 {
        u64::try_from(self.new_side_size).unwrap_or(u64::MAX)
    }

    /// Deals a new side, and counts its rows.
    pub(super) fn shuffle(&mut self, random: &mut SeededRandom) {
        self.shuffled.fill(0);
        let len = self.trial_rows.len();
        for at in 0..self.new_side_size.min(len) {
            self.trial_rows.swap(at, at + random.below(len - at));
            let row = self.trial_rows.get(at).copied().unwrap_or(usize::MAX);
            if let Some(count) = self.shuffled.get_mut(row) {
                *count += 1;
            }
        }
    }

    /// Adds what a new side lacks in each metric.
    pub(super) fn add(&self, side: &[u64], sums: &mut [DropStatistic]) {
        for (metric, all, verdicts) in &self.metrics {
            let mut new = Rate::default();
            for (count, verdict) in side.iter().zip(verdicts) {
                if let Some(good) = verdict {
                    new.add(Rate::new(if *good { *count } else { 0 }, *count));
                }
            }
            if let Some(sum) = sums.get_mut(*metric) {
                sum.add(*all, new);
            }
        }
    }
}

/// How many good trials a side lacks, and how much chance is in that.
#[derive(Clone, Copy, Default)]
pub(super) struct DropStatistic {
    lacking: f64,
    variance: f64,
}

impl DropStatistic {
    fn add(&mut self, all: Rate, new: Rate) {
        if new.of == 0 || new.of >= all.of {
            return;
        }
        let (total, good) = (float(all.of), float(all.hits));
        let (here, there) = (float(new.of), total - float(new.of));
        self.lacking += good * here / total - float(new.hits);
        self.variance += good * (total - good) * here * there / (total * total * (total - 1.0));
    }

    /// Adds another part of the trials.
    pub(super) const fn merge(&mut self, other: Self) {
        self.lacking += other.lacking;
        self.variance += other.variance;
    }

    pub(super) fn drop(&self) -> f64 {
        if self.variance <= 0.0 {
            return 0.0;
        }
        self.lacking / self.variance.sqrt()
    }
}
