//! Rates of small numbers of trials: intervals, an exact test, and a fixed source of chance.

mod fisher;
mod interval;
mod random;

pub use fisher::fisher_drop;
pub use interval::{Interval, difference, wilson};

pub(super) use fisher::is_shifted;
pub(super) use interval::weight;
pub(super) use random::Random;

use super::rate::{Rate, float};

/// How sure a statement is to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Confidence {
    /// Nine times of ten.
    P90,
    /// Nineteen times of twenty.
    #[default]
    P95,
    /// Ninety-nine times of a hundred.
    P99,
}

impl Confidence {
    /// How often a statement may be wrong.
    #[must_use]
    pub const fn error(self) -> f64 {
        match self {
            Self::P90 => 0.1,
            Self::P95 => 0.05,
            Self::P99 => 0.01,
        }
    }

    /// How many standard deviations an interval goes to both sides.
    #[must_use]
    pub const fn deviations(self) -> f64 {
        match self {
            Self::P90 => 1.644_853_626_951_472_2,
            Self::P95 => 1.959_963_984_540_054,
            Self::P99 => 2.575_829_303_548_900_4,
        }
    }
}

/// The chance that `k` trials, drawn from these without putting any back, are all hits (pass^k).
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
