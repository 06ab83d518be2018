use super::channel::Channel;
use super::counts::count_of;
use super::result_shape::Shape;
use super::shape_drift::{Certainty, Frequency, ShapeChange, ShapeChangeKind, ShapeDrift};

/// How many results of two shapes have no equal result on the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FixtureDifference {
    gone: u64,
    new: u64,
}

impl FixtureDifference {
    /// The difference, if both shapes have hashes of all their results under the same key.
    pub(super) fn between(baseline: &Shape, window: &Shape) -> Option<Self> {
        let (before, now) = (baseline.exact.as_ref()?, window.exact.as_ref()?);
        if baseline.key.is_none() || baseline.key != window.key {
            return None;
        }
        let lacking = |one: &[_], other: &[_]| -> u64 {
            let entries = one.iter();
            entries
                .map(|entry: &super::counts::CountEntry<_>| {
                    entry.count.saturating_sub(count_of(other, entry.of))
                })
                .sum()
        };
        Some(Self {
            gone: lacking(before, now),
            new: lacking(now, before),
        })
    }

    /// Whether both sides have the same results.
    pub(super) const fn is_none(self) -> bool {
        self.gone == 0 && self.new == 0
    }

    /// Reports fixtures that came or went, and differences that no path shows.
    pub(super) fn report(self, drift: &mut ShapeDrift, baseline: &Shape, window: &Shape) {
        let (before, now) = (baseline.results, window.results);
        let Self { gone, new } = self;
        let (what, message) = if before != now {
            let message = format!(
                "the baseline has {before} fixtures and this check has {now}: {gone} of the baseline \
                 have no equal now, {new} are new"
            );
            (ShapeChangeKind::Fixtures, message)
        } else if drift.is_empty() && !self.is_none() {
            let message = format!(
                "{new} of {now} results differ in their order, or in values that a shape does not tell apart"
            );
            (ShapeChangeKind::Content, message)
        } else {
            return;
        };
        let channel = window.channels.keys().next();
        drift.changes.push(ShapeChange {
            channel: channel.copied().unwrap_or(Channel::Value),
            pointer: String::new(),
            what,
            certainty: Certainty::Certain,
            baseline: Frequency {
                seen: gone,
                of: before,
            },
            window: Frequency { seen: new, of: now },
            message,
        });
    }
}
