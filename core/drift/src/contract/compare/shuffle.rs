//! Whether a drop is more than chance: the sides of trials are shuffled within each case.

use super::metric::Stratum;
use crate::contract::rate::{Rate, float};
use crate::contract::statistics::Random;

/// No drop below this many standard deviations is established at any level that can be asked for.
const HOPELESS: f64 = 1.2;

/// Once every drop came up in one of so many of all shuffles, none will be established by the rest.
const HOPELESS_PART: usize = 8;

/// How many draws of a trial are made at most, whatever a file claims.
const MAX_DRAWS: u64 = 400_000_000;
/// How many times sides are shuffled at least.
const MIN_SHUFFLES: usize = 999;

/// For each metric, how likely a drop as far beyond chance as its own is in any of them, if the
/// sides are the same.
///
/// The drop of a metric is the sum over cases of how many good trials the new side lacks, over the
/// standard deviation of that sum. In each shuffle the largest drop of all metrics is taken, so that
/// the answer holds for all metrics together, however they hang together: two that always fail in the
/// same trials count for one.
pub(super) fn adjusted(strata: &[Stratum], metrics: usize, shuffles: usize, seed: u64) -> Vec<f64> {
    let decks: Vec<Deck> = strata.iter().map(|it| Deck::of(it, metrics)).collect();
    let mut sums = vec![Sum::default(); metrics];
    for deck in &decks {
        deck.add(&deck.observed, &mut sums);
    }
    let observed: Vec<f64> = sums.iter().map(Sum::drop).collect();
    let hopeful = observed.iter().any(|it| *it >= HOPELESS);
    if !hopeful {
        return vec![1.0; metrics];
    }
    let mut decks: Vec<Deck> = decks.into_iter().filter(Deck::varies).collect();
    let trials: u64 = decks.iter().map(|it| float_len(&it.cards)).sum();
    let affordable = usize::try_from(MAX_DRAWS / trials.max(1)).unwrap_or(usize::MAX);
    let shuffles = shuffles.min(affordable).max(MIN_SHUFFLES);
    let mut random = Random::new(seed);
    let mut as_far = vec![0_u64; metrics];
    let enough = u64::try_from(shuffles / HOPELESS_PART).unwrap_or(u64::MAX);
    let mut dealt = 0_u64;
    for _ in 0..shuffles {
        if as_far.iter().all(|count| *count >= enough) {
            break;
        }
        dealt += 1;
        sums.fill(Sum::default());
        for deck in &mut decks {
            deck.deal(&mut random);
            deck.add(&deck.dealt, &mut sums);
        }
        let farthest = sums.iter().map(Sum::drop).fold(0.0, f64::max);
        for (count, observed) in as_far.iter_mut().zip(&observed) {
            // The observed sides are one of the ways to deal, so rounding must not part them.
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
struct Deck {
    /// The row of each trial.
    cards: Vec<usize>,
    /// How many trials are on the new side.
    hand: usize,
    /// How many trials of each row are on the new side.
    observed: Vec<u64>,
    /// How many are after the last deal.
    dealt: Vec<u64>,
    /// For each metric that can differ: all that count and are good, and the verdict of each row.
    metrics: Vec<(usize, Rate, Vec<Option<bool>>)>,
}

impl Deck {
    fn of(stratum: &Stratum, metrics: usize) -> Self {
        let mut cards = Vec::new();
        let (mut hand, mut observed) = (0_u64, Vec::new());
        for (at, row) in stratum.rows.iter().enumerate() {
            let trials = usize::try_from(row.old.saturating_add(row.new)).unwrap_or(0);
            cards.extend(std::iter::repeat_n(at, trials));
            hand += row.new;
            observed.push(row.new);
        }
        let metrics = (0..metrics).filter_map(|metric| {
            let verdict = |row: &super::metric::Row| row.verdicts.get(metric).copied().flatten();
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
            hand: usize::try_from(hand).unwrap_or(0),
            cards,
            dealt: observed.clone(),
            observed,
        }
    }

    const fn varies(&self) -> bool {
        !self.metrics.is_empty() && self.hand > 0 && self.hand < self.cards.len()
    }

    /// Deals a new side, and counts its rows.
    fn deal(&mut self, random: &mut Random) {
        self.dealt.fill(0);
        let len = self.cards.len();
        for at in 0..self.hand.min(len) {
            self.cards.swap(at, at + random.below(len - at));
            let row = self.cards.get(at).copied().unwrap_or(usize::MAX);
            if let Some(count) = self.dealt.get_mut(row) {
                *count += 1;
            }
        }
    }

    /// Adds what a new side lacks in each metric.
    fn add(&self, side: &[u64], sums: &mut [Sum]) {
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
struct Sum {
    lacking: f64,
    variance: f64,
}

impl Sum {
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
