use crate::rate::Rate;
use toolwarden_drift::shape::ln_choose;

/// Counts beyond this are scaled down together, which only weakens the evidence.
const MAX_TOTAL: u64 = 1_000_000;

/// A difference that only warns is reported below this p-value.
const UNLIKELY: f64 = 0.01;

/// The probability of as few hits as the new side has, if both sides come from the same distribution:
/// Fisher's exact test, one-sided.
#[must_use]
pub fn fisher_drop(old: Rate, new: Rate) -> f64 {
    let (old, new) = (scaled(old, new), scaled(new, old));
    let hits = old.hits + new.hits;
    let total = old.of + new.of;
    let least = hits.saturating_sub(old.of);
    let ways = |seen: u64| {
        ln_choose(hits, seen) + ln_choose(total - hits, new.of - seen) - ln_choose(total, new.of)
    };
    let sum: f64 = (least..=new.hits).map(|seen| ways(seen).exp()).sum();
    sum.min(1.0)
}

/// Whether a share moved: from always to never, from never to always, or by more than chance explains.
pub(crate) fn is_shifted(old: Rate, new: Rate) -> bool {
    let turned = old.is_never() && new.is_always() || old.is_always() && new.is_never();
    let tails = || fisher_drop(old, new).min(fisher_drop(new, old));
    old.of > 0 && new.of > 0 && (turned || 2.0 * tails() <= UNLIKELY)
}

fn scaled(rate: Rate, other: Rate) -> Rate {
    let total = rate.of.saturating_add(other.of);
    if total <= MAX_TOTAL {
        return Rate::new(rate.hits.min(rate.of), rate.of);
    }
    let scale = |count: u64| {
        let scaled = u128::from(count) * u128::from(MAX_TOTAL) / u128::from(total);
        u64::try_from(scaled).unwrap_or(MAX_TOTAL)
    };
    let of = scale(rate.of);
    Rate::new(scale(rate.hits).min(of), of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::float;

    /// The expected values are sums of fractions of binomial coefficients.
    #[test]
    fn drops_are_those_of_fisher() {
        for (old, new, p) in [
            ((1, 1), (0, 1), 0.5),
            ((3, 3), (0, 3), 1.0 / 20.0),
            ((10, 10), (5, 10), 252.0 / 15504.0),
            ((10, 10), (6, 10), 210.0 / 4845.0),
            ((80, 80), (75, 80), 24_040_016.0 / 820_384_032.0),
            ((10, 10), (10, 10), 1.0),
            ((0, 10), (0, 10), 1.0),
            ((0, 0), (0, 10), 1.0),
            ((3, 10), (5, 12), 0.8436532507739938),
        ] {
            let found = fisher_drop(Rate::new(old.0, old.1), Rate::new(new.0, new.1));
            assert!((found - p).abs() < 1e-9, "{old:?} {new:?}: {found}");
        }
        let huge = Rate::new(u64::MAX, u64::MAX);
        assert!(fisher_drop(huge, Rate::new(0, u64::MAX)) < 1e-300);
    }

    /// The power the statistics this follows has for the test, at a level of 0.05.
    #[test]
    fn its_power_is_as_published() {
        let power = |n: u64, share: f64| -> f64 {
            let old = Rate::new(n, n);
            let established = (0..=n).filter(|k| fisher_drop(old, Rate::new(*k, n)) <= 0.05);
            established
                .map(|k| {
                    let (k, misses) = (float(k), float(n - k));
                    (ln_choose(n, n - float_to(misses))
                        + k * share.ln()
                        + misses * (1.0 - share).ln())
                    .exp()
                })
                .sum()
        };
        for (n, share, expected) in [
            (10, 0.5, 0.83),
            (20, 0.9, 0.04),
            (40, 0.9, 0.37),
            (80, 0.9, 0.91),
        ] {
            let found = power(n, share);
            assert!((found - expected).abs() < 0.006, "{n} {share}: {found}");
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a small whole number"
    )]
    fn float_to(number: f64) -> u64 {
        number as u64
    }

    #[test]
    fn shifts_are_turns_or_beyond_chance() {
        let shifted = |old: (u64, u64), new: (u64, u64)| {
            is_shifted(Rate::new(old.0, old.1), Rate::new(new.0, new.1))
        };
        assert!(shifted((1, 1), (0, 1)));
        assert!(shifted((0, 2), (1, 1)));
        assert!(shifted((20, 20), (10, 20)));
        assert!(!shifted((20, 20), (18, 20)));
        assert!(!shifted((0, 0), (1, 1)));
        assert!(!shifted((0, 1), (1, 2)));
    }
}
