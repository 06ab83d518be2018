use super::Confidence;
use crate::rate::{Rate, float};

/// The bounds of a number, with a stated confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower bound.
    pub lower: f64,
    /// The upper bound.
    pub upper: f64,
}

impl Interval {
    /// The smallest interval that contains both.
    #[must_use]
    pub const fn hull(self, other: Self) -> Self {
        Self {
            lower: self.lower.min(other.lower),
            upper: self.upper.max(other.upper),
        }
    }
}

/// The share behind a rate of independent trials, by Wilson's score method. A rate without trials gives
/// no information.
#[must_use]
pub fn wilson(rate: Rate, confidence: Confidence) -> Interval {
    let Some(share) = rate.share() else {
        return Interval {
            lower: 0.0,
            upper: 1.0,
        };
    };
    let n = float(rate.of);
    let z = confidence.deviations();
    let square = z * z;
    let scale = 1.0 + square / n;
    let middle = (share + square / (2.0 * n)) / scale;
    let variance = share * (1.0 - share) / n + square / (4.0 * n * n);
    let half = z * variance.sqrt() / scale;
    // The exact bound is known here, and the square root would round it.
    let lower = if rate.hits == 0 { 0.0 } else { middle - half };
    let upper = if rate.hits == rate.of {
        1.0
    } else {
        middle + half
    };
    Interval {
        lower: lower.max(0.0),
        upper: upper.min(1.0),
    }
}

/// How much larger the new share is than the old one, with its interval.
///
/// The rates come in pairs, one per case. For one pair the interval is Newcombe's hybrid of two Wilson
/// intervals. For several, the differences are averaged with Mantel-Haenszel weights, so that cases
/// measured more often on one side do not look like a difference. Pairs with an empty side are ignored.
#[must_use]
pub fn difference(pairs: &[(Rate, Rate)], confidence: Confidence) -> Option<(f64, Interval)> {
    let total: f64 = pairs.iter().map(|(old, new)| weight(*old, *new)).sum();
    if total <= 0.0 {
        return None;
    }
    let (mut estimate, mut below, mut above) = (0.0, 0.0, 0.0);
    for (old, new) in pairs {
        let share = weight(*old, *new) / total;
        let (Some(before), Some(after)) = (old.share(), new.share()) else {
            continue;
        };
        let (past, now) = (wilson(*old, confidence), wilson(*new, confidence));
        estimate += share * (after - before);
        let square = |one: f64, other: f64| share * share * (one * one + other * other);
        below += square(after - now.lower, past.upper - before);
        above += square(now.upper - after, before - past.lower);
    }
    let interval = Interval {
        lower: (estimate - below.sqrt()).max(-1.0),
        upper: (estimate + above.sqrt()).min(1.0),
    };
    Some((estimate, interval))
}

/// The weight of a case: it grows with the trials on the smaller side.
pub(crate) fn weight(old: Rate, new: Rate) -> f64 {
    let of = float(old.of) + float(new.of);
    if of <= 0.0 {
        return 0.0;
    }
    float(old.of) * float(new.of) / of
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(one: f64, other: f64, tolerance: f64) -> bool {
        (one - other).abs() <= tolerance
    }

    /// All hits have the lower bound n / (n + z²); the others follow from the formula by hand.
    #[test]
    fn intervals_are_those_of_wilson() {
        for (hits, of, lower, upper) in [
            (3, 3, 0.4385, 1.0),
            (5, 5, 0.5655, 1.0),
            (10, 10, 0.7225, 1.0),
            (20, 20, 0.8389, 1.0),
            (40, 40, 0.9124, 1.0),
            (60, 60, 0.9398, 1.0),
            (100, 100, 0.9630, 1.0),
            (200, 200, 0.9812, 1.0),
            (0, 10, 0.0, 0.2775),
            (8, 10, 0.4902, 0.9433),
            (50, 100, 0.4038, 0.5962),
        ] {
            let found = wilson(Rate::new(hits, of), Confidence::P95);
            let context = format!("{hits} of {of}: {found:?}");
            assert!(close(found.lower, lower, 5e-5), "{context}");
            assert!(close(found.upper, upper, 5e-5), "{context}");
        }
        let nothing = wilson(Rate::default(), Confidence::P95);
        assert_eq!((nothing.lower, nothing.upper), (0.0, 1.0));
    }

    /// Method 10 of Newcombe (1998), Table II: (a) 56/70 − 48/80, (b) 9/10 − 3/10, (d) 5/56 − 0/29.
    #[test]
    fn differences_are_those_of_newcombe() {
        for ((new, old), lower, upper) in [
            (((56, 70), (48, 80)), 0.0524, 0.3339),
            (((9, 10), (3, 10)), 0.1705, 0.8090),
            (((5, 56), (0, 29)), -0.0381, 0.1926),
        ] {
            let pair = (Rate::new(old.0, old.1), Rate::new(new.0, new.1));
            let (_, found) = difference(&[pair], Confidence::P95).unwrap();
            let context = format!("{pair:?}: {found:?}");
            assert!(close(found.lower, lower, 5e-5), "{context}");
            assert!(close(found.upper, upper, 5e-5), "{context}");
        }
    }

    #[test]
    fn a_case_measured_on_one_side_more_often_is_no_difference() {
        let pairs = [
            (Rate::new(10, 10), Rate::new(10, 10)),
            (Rate::new(0, 1), Rate::new(0, 30)),
        ];
        let (estimate, _) = difference(&pairs, Confidence::P95).unwrap();
        assert!(close(estimate, 0.0, 1e-12), "{estimate}");
        assert_eq!(difference(&[], Confidence::P95), None);
        let nothing = [(Rate::new(1, 1), Rate::default())];
        assert_eq!(difference(&nothing, Confidence::P95), None);
    }
}
