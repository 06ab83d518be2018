//! Tests whether a drop is more than chance: the trials of each case are reassigned to the two sides, in
//! every possible way if there are few, else by shuffling.

use super::case_trials::{CaseTrials, DropStatistic};
use super::exact_test;
use super::metric::Stratum;
use crate::rate::float;
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
        deck.add(deck.observed(), &mut sums);
    }
    let observed: Vec<f64> = sums.iter().map(DropStatistic::drop).collect();
    let hopeful = observed.iter().any(|it| *it >= MIN_DEVIATIONS);
    if !hopeful {
        return vec![1.0; metrics];
    }
    let mut decks: Vec<CaseTrials> = decks.into_iter().filter(CaseTrials::varies).collect();
    if let Some(exact) = exact_test::p_values(&decks, &observed) {
        return exact;
    }
    let trials: u64 = decks.iter().map(CaseTrials::trials).sum();
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
            deck.add(deck.shuffled(), &mut sums);
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
