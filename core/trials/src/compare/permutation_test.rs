//! Tests whether a drop is more than chance: the sides of trials are shuffled within each case.

use super::metric::Stratum;
use crate::rate::{Rate, float};
use crate::statistics::SeededRandom;

/// A drop below this many standard deviations is not established at any supported level.
const MIN_DEVIATIONS: f64 = 1.2;

/// Once every drop occurred in one of this many of all shuffles, the remaining shuffles cannot
/// establish any.
const EARLY_STOP_DIVISOR: usize = 8;

/// The maximum number of draws of a trial, whatever a file claims.
const MAX_DRAWS: u64 = 400_000_000;
/// The minimum number of shuffles.
const MIN_SHUFFLES: usize = 999;

/// For each metric, the probability of a drop at least as large in any metric, if the sides are the
/// same.
///
/// The drop of a metric is the sum over cases of the good trials that the new side lacks, divided by
/// the standard deviation of that sum. Each shuffle yields the largest drop of all metrics, so the
/// result holds for all metrics together, however they correlate: two metrics that always fail in the
/// same trials count as one.
pub(super) fn adjusted_p_values(
    strata: &[Stratum],
    metrics: usize,
    shuffles: usize,
    seed: u64,
) -> Vec<f64> {
    let decks: Vec<CaseTrials> = strata
        .iter()
        .map(|it| CaseTrials::of(it, metrics))
        .collect();
    let mut sums = vec![DropStatistic::default(); metrics];
    for deck in &decks {
        deck.add(&deck.observed, &mut sums);
    }
    let observed: Vec<f64> = sums.iter().map(DropStatistic::drop).collect();
    let hopeful = observed.iter().any(|it| *it >= MIN_DEVIATIONS);
    if !hopeful {
        return vec![1.0; metrics];
    }
    let mut decks: Vec<CaseTrials> = decks.into_iter().filter(CaseTrials::varies).collect();
    let trials: u64 = decks.iter().map(|it| float_len(&it.trial_rows)).sum();
    let affordable = usize::try_from(MAX_DRAWS / trials.max(1)).unwrap_or(usize::MAX);
    let shuffles = shuffles.min(affordable).max(MIN_SHUFFLES);
    let mut random = SeededRandom::new(seed);
    let mut as_far = vec![0_u64; metrics];
    let enough = u64::try_from(shuffles / EARLY_STOP_DIVISOR).unwrap_or(u64::MAX);
    let mut dealt = 0_u64;
    for _ in 0..shuffles {
        if as_far.iter().all(|count| *count >= enough) {
            break;
        }
        dealt += 1;
        sums.fill(DropStatistic::default());
        for deck in &mut decks {
            deck.shuffle(&mut random);
            deck.add(&deck.shuffled, &mut sums);
        }
        let farthest = sums.iter().map(DropStatistic::drop).fold(0.0, f64::max);
        for (count, observed) in as_far.iter_mut().zip(&observed) {
            // The observed assignment is one of the possible shuffles, so rounding must not separate
            // the two.
            *count += u64::from(farthest >= observed - 1e-9);
        }
    }
    let chances = as_far
        .iter()
        .map(|count| (float(*count) + 1.0) / (float(dealt) + 1.0));
    chances.collect()
}

fn float_len(cards: &[usize]) -> u64 {
    u64::try_from(cards.len()).unwrap_or(u64::MAX)
}

/// The trials of one case, as cards that are dealt to two sides.
struct CaseTrials {
    /// The row of each trial.
    trial_rows: Vec<usize>,
    /// How many trials are on the new side.
    new_side_size: usize,
    /// How many trials of each row are on the new side.
    observed: Vec<u64>,
    /// How many are after the last deal.
    shuffled: Vec<u64>,
    /// For each metric that can differ: all that count and are good, and the verdict of each row.
    metrics: Vec<(usize, Rate, Vec<Option<bool>>)>,
}

impl CaseTrials {
    fn of(stratum: &Stratum, metrics: usize) -> Self {
        let mut trial_rows = Vec::new();
        let (mut hand, mut observed) = (0_u64, Vec::new());
        for (at, row) in stratum.rows.iter().enumerate() {
            let trials = usize::try_from(row.old.saturating_add(row.new)).unwrap_or(0);
            trial_rows.extend(std::iter::repeat_n(at, trials));
            hand += row.new;
            observed.push(row.new);
        }
        let metrics = (0..metrics).filter_map(|metric| {
            let verdict =
                |row: &super::metric::OutcomeRow| row.verdicts.get(metric).copied().flatten();
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
            shuffled: observed.clone(),
            observed,
        }
    }

    const fn varies(&self) -> bool {
        !self.metrics.is_empty()
            && self.new_side_size > 0
            && self.new_side_size < self.trial_rows.len()
    }

    /// Deals a new side, and counts its rows.
    fn shuffle(&mut self, random: &mut SeededRandom) {
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
    fn add(&self, side: &[u64], sums: &mut [DropStatistic]) {
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
struct DropStatistic {
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

    fn drop(&self) -> f64 {
        if self.variance <= 0.0 {
            return 0.0;
        }
        self.lacking / self.variance.sqrt()
    }
}
