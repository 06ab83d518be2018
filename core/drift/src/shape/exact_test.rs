//! Exact statistics for two counts.

use super::shape_drift::Frequency;

/// Larger counts are scaled down together. That only weakens the evidence, and keeps sums short
/// whatever a file claims.
const MAX_TOTAL: u64 = 10_000_000;

/// Probabilities whose relative difference is smaller are equal except for rounding.
const ROUNDING: f64 = 1e-7;

/// A 2×2 table with its margins fixed: which of the `drawn` of `total` are among the `marked`.
#[derive(Clone, Copy, Debug)]
pub(super) struct ContingencyTable {
    total: u64,
    marked: u64,
    drawn: u64,
    seen: u64,
}

impl ContingencyTable {
    pub(super) fn of(baseline: Frequency, window: Frequency) -> Self {
        let of = baseline.of.saturating_add(window.of);
        let scale = |count: u64| {
            if of <= MAX_TOTAL {
                return count;
            }
            let scaled = u128::from(count) * u128::from(MAX_TOTAL) / u128::from(of);
            u64::try_from(scaled).unwrap_or(MAX_TOTAL)
        };
        let drawn = scale(window.of);
        let rest = scale(baseline.of);
        let seen = scale(window.seen).min(drawn);
        Self {
            total: drawn + rest,
            marked: seen + scale(baseline.seen).min(rest),
            drawn,
            seen,
        }
    }

    /// The two-sided p-value of Fisher's exact test: the probability of a table that is at most as
    /// likely as this one, if both sides come from the same distribution.
    pub(super) fn p_value(self) -> f64 {
        let (low, high) = self.support();
        let mode = self.mode().clamp(low, high);
        let limit = self.ln_probability(self.seen) + ROUNDING;
        let mut below = None;
        let mut above = None;
        if self.ln_probability(low) <= limit {
            // The last position on the rising side with at most this probability.
            below = Some(last_where(low, mode, |at| self.ln_probability(at) <= limit));
        }
        if self.ln_probability(high) <= limit {
            let mirrored = last_where(0, high - mode, |at| self.ln_probability(high - at) <= limit);
            above = Some(high - mirrored);
        }
        match (below, above) {
            (Some(below), Some(above)) if below >= above => 1.0,
            (below, above) => {
                let lower = below.map_or(0.0, |at| self.tail(at, low, TailSide::Down));
                let upper = above.map_or(0.0, |at| self.tail(at, high, TailSide::Up));
                (lower + upper).min(1.0)
            }
        }
    }

    /// The smallest p-value that any table with these margins can have. It does not depend on how the
    /// marked ones are distributed, so it may decide which tests to run.
    pub(super) fn least_p_value(self) -> f64 {
        let (low, high) = self.support();
        if low == high {
            return 1.0;
        }
        let ends = [low, high].map(|at| self.ln_probability(at));
        let [down, up] = ends;
        if (down - up).abs() <= ROUNDING {
            return (down.exp() + up.exp()).min(1.0);
        }
        down.min(up).exp()
    }

    const fn support(self) -> (u64, u64) {
        let unmarked = self.total - self.marked;
        let high = if self.marked < self.drawn {
            self.marked
        } else {
            self.drawn
        };
        (self.drawn.saturating_sub(unmarked), high)
    }

    fn mode(self) -> u64 {
        let product = u128::from(self.drawn + 1) * u128::from(self.marked + 1);
        u64::try_from(product / (u128::from(self.total) + 2)).unwrap_or(0)
    }

    fn ln_probability(self, seen: u64) -> f64 {
        ln_choose(self.marked, seen) + ln_choose(self.total - self.marked, self.drawn - seen)
            - ln_choose(self.total, self.drawn)
    }

    /// The sum of the probabilities from a position to an end; stops when further terms add nothing.
    fn tail(self, from: u64, end: u64, side: TailSide) -> f64 {
        let mut term = self.ln_probability(from).exp();
        let mut sum = term;
        let mut at = from;
        while at != end && term > sum * 1e-17 {
            term *= match side {
                TailSide::Down => 1.0 / self.ratio(at - 1),
                TailSide::Up => self.ratio(at),
            };
            at = match side {
                TailSide::Down => at - 1,
                TailSide::Up => at + 1,
            };
            sum += term;
        }
        sum
    }

    /// The ratio of the probability of one more to the probability of this count.
    fn ratio(self, seen: u64) -> f64 {
        let more = float(self.marked - seen) * float(self.drawn - seen);
        let less = float(seen + 1) * float(self.total + seen + 1 - self.marked - self.drawn);
        more / less
    }
}

#[derive(Clone, Copy)]
enum TailSide {
    Down,
    Up,
}

/// The last position at which a condition holds, if it holds at first and fails from some position on.
fn last_where(first: u64, last: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut yes, mut no) = (first, last + 1);
    while no - yes > 1 {
        let middle = yes + (no - yes) / 2;
        if holds(middle) {
            yes = middle;
        } else {
            no = middle;
        }
    }
    yes
}

/// The level at which each test must pass so that the probability of any error stays below the given
/// one.
///
/// Tarone's form of Bonferroni's rule: a test that cannot pass at the level cannot err either, so it is
/// not counted. Otherwise many paths seen twice would drown the few informative ones.
pub(super) fn level(alpha: f64, least: &[f64]) -> f64 {
    let mut sorted = least.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let mut tests = 1_u32;
    loop {
        let level = alpha / f64::from(tests);
        let able = sorted.partition_point(|p| *p <= level);
        if u32::try_from(able).is_ok_and(|able| able <= tests) || tests == u32::MAX {
            return level;
        }
        tests += 1;
    }
}

/// How many results two sides need so that a test can pass at a level, if all results of one side and
/// none of the other have something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SampleSize {
    pub(super) baseline: u64,
    pub(super) window: u64,
}

/// No supported level needs more results on both sides.
const MAX_NEEDED: u64 = 1000;

impl SampleSize {
    /// The required results, given the size of the baseline: more in the window if that suffices,
    /// otherwise as many on both sides.
    pub(super) fn at(level: f64, baseline: u64) -> Self {
        let baseline = baseline.min(MAX_TOTAL);
        let is_telling = |before: u64, now: u64| -ln_choose(before + now, now) <= level.ln();
        let fewest = |enough: &dyn Fn(u64) -> bool| (1..MAX_NEEDED).find(|count| enough(*count));
        let each = fewest(&|count| is_telling(count, count)).unwrap_or(MAX_NEEDED);
        if baseline < each {
            return Self {
                baseline: each,
                window: each,
            };
        }
        let window = fewest(&|count| is_telling(baseline, count));
        Self {
            baseline,
            window: window.unwrap_or(each),
        }
    }
}

/// The upper bound, with a confidence of 95 %, of the share of results that may have what none of these
/// had.
pub(super) fn upper_bound(results: u64) -> f64 {
    if results == 0 {
        return 1.0;
    }
    -(0.05_f64.ln() / float(results)).exp_m1()
}

/// The distance of two shares on a scale on which equal distances are equally easy to detect (Cohen's
/// h).
pub(super) fn distance(one: f64, other: f64) -> f64 {
    let angle = |share: f64| 2.0 * share.clamp(0.0, 1.0).sqrt().asin();
    (angle(one) - angle(other)).abs()
}

/// The logarithm of a binomial coefficient.
#[must_use]
pub fn ln_choose(of: u64, take: u64) -> f64 {
    ln_factorial(of) - ln_factorial(take) - ln_factorial(of - take)
}

/// ln n!, by Stirling's series from 16 on, where its error is below 10⁻¹⁵.
fn ln_factorial(n: u64) -> f64 {
    if n < 16 {
        return (2..=n).map(float).product::<f64>().ln();
    }
    let x = float(n);
    let inverse = 1.0 / (x * x);
    let series =
        (1.0 / 12.0 - inverse * (1.0 / 360.0 - inverse * (1.0 / 1260.0 - inverse / 1680.0))) / x;
    (x + 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series
}

/// Exact for every count a table has, as [`MAX_TOTAL`] is far below 2⁵³.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts are scaled below 2^53 or only shown"
)]
pub(super) const fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(one: f64, other: f64, tolerance: f64) -> bool {
        (one - other).abs() <= tolerance * other.abs()
    }

    #[test]
    fn factorials_are_right() {
        for (n, ln) in [
            (0, 0.0),
            (1, 0.0),
            (16, 30.671_860_106_080_672),
            (20, 42.335_616_460_753_485),
            (100, 363.739_375_555_563_47),
            (1000, 5_912.128_178_488_163),
            (10_000_000, 151_180_965.487_569_57),
        ] {
            assert!(
                close(ln_factorial(n), ln, 1e-14),
                "{n}: {}",
                ln_factorial(n)
            );
        }
    }

    /// The expected values are those of `scipy.stats.fisher_exact` and of the extreme tables.
    #[test]
    fn p_values_are_those_of_fisher() {
        for (before, of_before, now, of_now, p, least) in [
            (0, 20, 20, 20, 1.450_888_910_385e-11, 1.450_888_910_385e-11),
            (20, 20, 10, 20, 4.359_197_907_585e-4, 4.359_197_907_585e-4),
            (30, 100, 1, 50, 2.319_820_392_309e-5, 2.439_492_243_034e-19),
            (0, 100, 12, 50, 7.040_899_486_300e-7, 7.040_899_486_300e-7),
            (3, 10, 5, 12, 6.749_226_006_192e-1, 1.407_261_469_181e-4),
            (1, 1, 0, 1, 1.0, 1.0),
            (0, 500, 3, 200, 2.307_372_030_800e-2, 2.307_372_030_800e-2),
            (
                450,
                500,
                150,
                200,
                1.097_752_897_574e-6,
                4.415_609_082_673e-65,
            ),
            (5000, 10_000, 5200, 10_000, 4.878_795_768_907e-3, 0.0),
            (7, 7, 0, 9, 8.741_258_741_259e-5, 8.741_258_741_259e-5),
            (
                1,
                1_000_000,
                20,
                1_000_000,
                2.097_903_258_427e-5,
                9.535_741_850_691e-7,
            ),
            (
                40,
                100,
                35,
                100,
                5.592_051_222_959e-1,
                2.872_600_219_505e-33,
            ),
        ] {
            let table = ContingencyTable::of(
                Frequency {
                    seen: before,
                    of: of_before,
                },
                Frequency {
                    seen: now,
                    of: of_now,
                },
            );
            let context = format!("{before} of {of_before}, {now} of {of_now}");
            assert!(
                close(table.p_value(), p, 1e-6),
                "{context}: {}",
                table.p_value()
            );
            assert!(
                close(table.least_p_value(), least, 1e-6),
                "{context}: {}",
                table.least_p_value()
            );
        }
    }

    /// The p-value must not fall below a level more often than the level allows: summed over all tables
    /// with given margins.
    #[test]
    fn tests_keep_their_level() {
        for (total, marked, drawn) in [(40, 20, 20), (150, 31, 50), (60, 3, 20), (700, 14, 200)] {
            for level in [0.5, 0.05, 0.001, 1e-6] {
                let mut sum = 0.0;
                for seen in 0..=drawn.min(marked) {
                    let table = ContingencyTable {
                        total,
                        marked,
                        drawn,
                        seen,
                    };
                    let (low, high) = table.support();
                    if (low..=high).contains(&seen) && table.p_value() <= level {
                        sum += table.ln_probability(seen).exp();
                    }
                }
                assert!(
                    sum <= level * (1.0 + 1e-6),
                    "{total} {marked} {drawn}: {sum} > {level}"
                );
            }
        }
    }

    #[test]
    fn counts_no_file_should_claim_are_survived() {
        let huge = Frequency {
            seen: u64::MAX,
            of: u64::MAX,
        };
        let none = Frequency {
            seen: 0,
            of: u64::MAX,
        };
        assert!(ContingencyTable::of(huge, none).p_value() < 1e-300);
        assert!(close(ContingencyTable::of(huge, huge).p_value(), 1.0, 1e-9));
        let contradictory = Frequency { seen: 9, of: 3 };
        assert!(ContingencyTable::of(contradictory, Frequency::default()).p_value() <= 1.0);
    }

    #[test]
    fn hopeless_tests_do_not_lower_the_level() {
        assert!(close(level(0.01, &[1e-9, 1e-9]), 0.005, 1e-12));
        let mut least = vec![0.3; 1000];
        least.push(1e-9);
        assert!(close(level(0.01, &least), 0.01, 1e-12));
        assert!(close(level(0.01, &[]), 0.01, 1e-12));
    }

    #[test]
    fn few_results_say_how_many_are_needed() {
        let needed = |level, baseline| {
            let SampleSize { baseline, window } = SampleSize::at(level, baseline);
            (baseline, window)
        };
        // 18 results can be divided in 48,620 ways, 16 in 12,870.
        assert_eq!(needed(5e-5, 1), (9, 9));
        assert_eq!(needed(5e-5, 8), (9, 9));
        assert_eq!(needed(5e-5, 9), (9, 8));
        assert_eq!(needed(5e-5, 30), (30, 4));
        assert_eq!(needed(5e-5, u64::MAX), (MAX_TOTAL, 1));
        assert_eq!(needed(0.0, 5), (MAX_NEEDED, MAX_NEEDED));
    }

    #[test]
    fn what_was_not_seen_is_bounded() {
        assert!(close(upper_bound(40), 0.0721575245055146, 1e-9));
        assert!(close(upper_bound(1), 0.95, 1e-12));
        assert!(close(upper_bound(0), 1.0, 1e-12));
    }
}
