//! Rates of small numbers of trials: intervals, an exact test, and a seeded random generator.

mod fisher;
mod interval;
mod random;

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
}

impl Confidence {
    /// The probability that a statement is wrong.
    #[must_use]
    pub const fn error(self) -> f64 {
        match self {
            Self::P90 => 0.1,
            Self::P95 => 0.05,
            Self::P99 => 0.01,
        }
    }

    /// The half-width of an interval, in standard deviations.
    #[must_use]
    pub const fn deviations(self) -> f64 {
        match self {
            Self::P90 => 1.644_853_626_951_472_2,
            Self::P95 => 1.959_963_984_540_054,
            Self::P99 => 2.575_829_303_548_900_4,
        }
    }
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
