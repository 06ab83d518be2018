//! Rates of small numbers of trials: intervals, an exact test, and a seeded random generator.

mod fisher;
mod interval;
mod random;

use std::num::NonZeroU8;

pub use fisher::fisher_drop;
pub use interval::{Interval, difference, wilson};

pub(super) use fisher::is_shifted;
pub(super) use interval::weight;
pub(super) use random::SeededRandom;

use super::rate::{Rate, float};

/// The confidence of a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Confidence {
    /// 90 %.
    P90,
    /// 95 %.
    #[default]
    P95,
    /// 99 %.
    P99,
    /// 95 % for this many looks at growing data together: each look has an equal part of the error
    /// (Bonferroni), so stopping at any of them is valid.
    P95Over(NonZeroU8),
}

impl Confidence {
    /// The probability that a statement is wrong.
    #[must_use]
    pub fn error(self) -> f64 {
        match self {
            Self::P95Over(looks) => 0.05 / f64::from(looks.get()),
            Self::P90 => 0.1,
            Self::P95 => 0.05,
            Self::P99 => 0.01,
        }
    }

    /// The half-width of an interval, in standard deviations.
    #[must_use]
    pub fn deviations(self) -> f64 {
        match self {
            Self::P95Over(looks) if looks.get() > 1 => normal_tail(self.error() / 2.0),
            Self::P95Over(_) => Self::P95.deviations(),
            Self::P90 => 1.644_853_626_951_472_2,
            Self::P95 => 1.959_963_984_540_054,
            Self::P99 => 2.575_829_303_548_900_4,
        }
    }
}

/// The number of standard deviations that a normal variable exceeds with this probability, for a
/// probability below 2.4 %: the tail of Acklam's approximation, with an error below 1e-8.
fn normal_tail(probability: f64) -> f64 {
    const NUMERATOR: [f64; 6] = [
        -7.784_894_002_430_293e-3,
        -3.223_964_580_411_365e-1,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const DENOMINATOR: [f64; 5] = [
        7.784_695_709_041_462e-3,
        3.224_671_290_700_398e-1,
        2.445_134_137_142_996,
        3.754_408_661_907_416,
        1.0,
    ];
    let q = (-2.0 * probability.ln()).sqrt();
    let polynomial = |terms: &[f64]| terms.iter().fold(0.0, |sum, term| sum * q + term);
    -polynomial(&NUMERATOR) / polynomial(&DENOMINATOR)
}

/// The probability that `k` trials, drawn from these without replacement, are all hits (pass^k).
#[must_use]
pub fn pass_hat(rate: Rate, k: u64) -> Option<f64> {
    if k == 0 || k > rate.of {
        return None;
    }
    if k > rate.hits {
        return Some(0.0);
    }
    let factor = |drawn: u64| float(rate.hits - drawn) / float(rate.of - drawn);
    Some((0..k).map(factor).product())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The quantiles are those of published tables.
    #[test]
    fn looks_share_the_error() {
        for (looks, error, deviations) in [
            (1, 0.05, 1.959_963_985),
            (2, 0.025, 2.241_402_728),
            (5, 0.01, 2.575_829_304),
            (50, 0.001, 3.290_526_731),
        ] {
            let confidence = Confidence::P95Over(NonZeroU8::new(looks).unwrap());
            assert!((confidence.error() - error).abs() < 1e-12, "{looks}");
            let found = confidence.deviations();
            assert!((found - deviations).abs() < 1e-7, "{looks}: {found}");
        }
    }
}
