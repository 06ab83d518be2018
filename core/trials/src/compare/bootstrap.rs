//! How much a pooled difference depends on the chosen cases: the cases are resampled.

use crate::rate::{Rate, float};
use crate::statistics::{Confidence, Interval, SeededRandom, weight};

/// The maximum number of draws of a case, whatever a file claims.
const MAX_DRAWS: usize = 20_000_000;
const MIN_RESAMPLES: usize = 999;

/// The interval of a difference if the cases themselves are a sample; `None` for one case.
pub(super) fn bootstrap_cases(
    pairs: &[(Rate, Rate)],
    confidence: Confidence,
    resamples: usize,
    seed: u64,
) -> Option<Interval> {
    let cases = pairs.iter().filter_map(|(old, new)| {
        let weight = weight(*old, *new);
        let difference = new.share()? - old.share()?;
        Some((weight, weight * difference))
    });
    let cases: Vec<(f64, f64)> = cases.collect();
    if cases.len() < 2 {
        return None;
    }
    if cases.iter().all(|(_, difference)| *difference == 0.0) {
        return Some(Interval {
            lower: 0.0,
            upper: 0.0,
        });
    }
    let resamples = resamples.min(MAX_DRAWS / cases.len()).max(MIN_RESAMPLES);
    let mut random = SeededRandom::new(seed);
    let mut means = Vec::with_capacity(resamples);
    for _ in 0..resamples {
        let (mut weights, mut sum) = (0.0, 0.0);
        for _ in 0..cases.len() {
            if let Some((weight, difference)) = cases.get(random.below(cases.len())) {
                weights += weight;
                sum += difference;
            }
        }
        means.push(sum / weights);
    }
    means.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let last = float(u64::try_from(means.len() - 1).unwrap_or(u64::MAX));
        means.get(rank(share * last)).copied()
    };
    let tail = confidence.error() / 2.0;
    Some(Interval {
        lower: at(tail)?,
        upper: at(1.0 - tail)?,
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a place in a list, rounded"
)]
fn rank(place: f64) -> usize {
    place.round() as usize
}
