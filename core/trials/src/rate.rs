use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// How often something occurred, and how often it could have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "RateDocument", try_from = "RateDocument")]
pub struct Rate {
    /// How often it occurred.
    pub hits: u64,
    /// How often it could have occurred.
    pub of: u64,
}

impl Rate {
    /// A rate of `hits` of `of`.
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

    /// The share; `None` if it could not have occurred, so that nothing never counts as 100 %.
    #[must_use]
    pub fn share(self) -> Option<f64> {
        (self.of > 0).then(|| float(self.hits) / float(self.of))
    }

    /// Whether it occurred every time it could have, and could have at least once.
    #[must_use]
    pub const fn is_always(self) -> bool {
        self.of > 0 && self.hits == self.of
    }

    /// Whether it never occurred, though it could have.
    #[must_use]
    pub const fn is_never(self) -> bool {
        self.of > 0 && self.hits == 0
    }

    /// How often it did not occur.
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

/// A rate as serialized; the share is for readers and is not read back.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RateDocument {
    k: u64,
    n: u64,
    #[serde(default)]
    rate: Option<f64>,
}

/// The error for more hits than possible occurrences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{k} of {n} is not a rate")]
pub struct InvalidRate {
    k: u64,
    n: u64,
}

impl From<Rate> for RateDocument {
    fn from(rate: Rate) -> Self {
        Self {
            k: rate.hits,
            n: rate.of,
            rate: rate.share().map(round_share),
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

/// Rounds a share or a time for output, so that the last bits of a division do not show.
pub(super) fn round_share(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0
}

/// A count as a floating-point number.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of trials and calls are far below 2^53, and others are only shown"
)]
pub(super) const fn float(count: u64) -> f64 {
    count as f64
}
