//! How many trials would decide an inconclusive share.

use super::Options;
use crate::rate::Rate;
use crate::statistics::{difference, fisher_drop};

/// More than this many times the trials is not worth asking for.
const MAX_FACTOR: u64 = 200;

/// About how many more trials of each case and side would decide a share, if its rates stay as
/// observed: a drop would then be more than chance, or within the allowed drop.
///
/// It is an estimate: the trials of all cases are pooled, and the shares of other metrics, which the
/// test corrects for, are ignored.
pub(super) fn more_trials(pairs: &[(Rate, Rate)], options: &Options) -> Option<u64> {
    let most = pairs.iter().map(|(old, new)| old.of.max(new.of)).max()?;
    let decides = |factor: u64| {
        let scaled =
            |it: Rate| Rate::new(it.hits.saturating_mul(factor), it.of.saturating_mul(factor));
        let pairs: Vec<(Rate, Rate)> = pairs
            .iter()
            .map(|(old, new)| (scaled(*old), scaled(*new)))
            .collect();
        let (mut old, mut new) = (Rate::default(), Rate::default());
        for (before, now) in &pairs {
            old.add(*before);
            new.add(*now);
        }
        let interval = difference(&pairs, options.confidence).map(|(_, interval)| interval);
        let within = interval.is_some_and(|it| it.lower > -options.allowed_drop);
        let established = fisher_drop(old, new) <= options.established_p();
        within || established
    };
    let factor = (2..=MAX_FACTOR).find(|factor| decides(*factor))?;
    Some(most.saturating_mul(factor - 1))
}
