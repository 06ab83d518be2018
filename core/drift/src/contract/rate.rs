use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// How often something was so, and how often it could have been.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "RateDocument", try_from = "RateDocument")]
pub struct Rate {
    /// How often it was.
    pub hits: u64,
    /// How often it could have been.
    pub of: u64,
}

impl Rate {
    /// So many of so many.
    #[must_use]
    pub const fn new(hits: u64, of: u64) -> Self {
        Self { hits, of }
    }

    /// Counts one more.
    pub const fn count(&mut self, hit: bool) {
        self.of = self.of.saturating_add(1);
        if hit {
            self.hits = self.hits.saturating_add(1);
        }
    }

    /// Counts several more.
    pub const fn add(&mut self, other: Self) {
        self.hits = self.hits.saturating_add(other.hits);
        self.of = self.of.saturating_add(other.of);
    }

    /// The share, or nothing where it could not have been: never one hundred per cent of nothing.
    #[must_use]
    pub fn share(self) -> Option<f64> {
        (self.of > 0).then(|| float(self.hits) / float(self.of))
    }

    /// Whether it was so whenever it could have been, and it could have been.
    #[must_use]
    pub const fn is_always(self) -> bool {
        self.of > 0 && self.hits == self.of
    }

    /// Whether it was never so, though it could have been.
    #[must_use]
    pub const fn is_never(self) -> bool {
        self.of > 0 && self.hits == 0
    }

    /// How often it was not so.
    #[must_use]
    pub const fn complement(self) -> Self {
        Self::new(self.of.saturating_sub(self.hits), self.of)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.hits, self.of)
    }
}

/// A rate as it is written; the share is for readers and not read back.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RateDocument {
    k: u64,
    n: u64,
    #[serde(default)]
    rate: Option<f64>,
}

/// More hits than there could have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{k} of {n} is no rate")]
pub struct InvalidRate {
    k: u64,
    n: u64,
}

impl From<Rate> for RateDocument {
    fn from(rate: Rate) -> Self {
        Self {
            k: rate.hits,
            n: rate.of,
            rate: rate.share().map(rounded),
        }
    }
}

impl TryFrom<RateDocument> for Rate {
    type Error = InvalidRate;

    fn try_from(document: RateDocument) -> Result<Self, InvalidRate> {
        let RateDocument { k, n, rate: _ } = document;
        if k > n {
            return Err(InvalidRate { k, n });
        }
        Ok(Self::new(k, n))
    }
}

/// A share or a time as it is written, so that the last bits of a division do not show.
pub(super) fn rounded(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0
}

/// A count as a number to reckon with.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of trials and calls are far below 2^53, and others are only shown"
)]
pub(super) const fn float(count: u64) -> f64 {
    count as f64
}
