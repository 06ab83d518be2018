use std::collections::BTreeSet;

use super::conjunction::Conjunction;
use super::{SearchOutcome, Solver};
use crate::set::{Fact, Ratio, TypeSet};

/// Multiples tried before the search for one that is not excluded gives up.
const MAX_MULTIPLES: u64 = 50_000;

/// An end of an interval.
#[derive(Clone, Debug)]
struct Bound {
    at: Ratio,
    strict: bool,
}

#[derive(Debug, Default)]
struct NumberConstraints {
    low: Option<Bound>,
    high: Option<Bound>,
    /// The number is a multiple of this.
    step: Option<Ratio>,
    /// The number is a multiple of none of these.
    avoided: Vec<Ratio>,
    excluded: BTreeSet<Ratio>,
}

impl NumberConstraints {
    fn at_least(&mut self, at: &Ratio, strict: bool) {
        let tighter = self
            .low
            .as_ref()
            .is_none_or(|low| *at > low.at || (*at == low.at && strict));
        if tighter {
            self.low = Some(Bound {
                at: at.clone(),
                strict,
            });
        }
    }

    fn at_most(&mut self, at: &Ratio, strict: bool) {
        let tighter = self
            .high
            .as_ref()
            .is_none_or(|high| *at < high.at || (*at == high.at && strict));
        if tighter {
            self.high = Some(Bound {
                at: at.clone(),
                strict,
            });
        }
    }

    fn multiple_of(&mut self, step: &Ratio) {
        self.step = Some(match &self.step {
            Some(known) => known.lcm(step),
            None => step.clone(),
        });
    }

    fn admits(&self, number: &Ratio) -> bool {
        let above = self
            .low
            .as_ref()
            .is_none_or(|low| *number > low.at || (!low.strict && *number == low.at));
        let below = self
            .high
            .as_ref()
            .is_none_or(|high| *number < high.at || (!high.strict && *number == high.at));
        above
            && below
            && self
                .step
                .as_ref()
                .is_none_or(|step| number.is_multiple_of(step))
            && !self.avoided.iter().any(|step| number.is_multiple_of(step))
            && !self.excluded.contains(number)
    }
}

impl Solver<'_> {
    pub(super) fn number(&mut self, state: &Conjunction) -> SearchOutcome {
        let mut wanted = NumberConstraints::default();
        if state.types == TypeSet::INTEGER {
            wanted.multiple_of(&Ratio::one());
        } else if state.types == TypeSet::FRACTION {
            wanted.avoided.push(Ratio::one());
        }
        for literal in &state.atoms {
            match (self.arena.node(literal.id), literal.holds) {
                (Fact::AtLeast { bound, strict }, true) => wanted.at_least(bound, *strict),
                (Fact::AtLeast { bound, strict }, false) => wanted.at_most(bound, !strict),
                (Fact::AtMost { bound, strict }, true) => wanted.at_most(bound, *strict),
                (Fact::AtMost { bound, strict }, false) => wanted.at_least(bound, !strict),
                (Fact::MultipleOf(step), true) => wanted.multiple_of(step),
                (Fact::MultipleOf(step), false) => wanted.avoided.push(step.clone()),
                (Fact::Enum(constants), _) => {
                    let numbers = constants.iter().filter_map(|c| Ratio::of_value(&c.value));
                    wanted.excluded.extend(numbers);
                }
                _ => {}
            }
        }
        let found = match &wanted.step {
            Some(step) => multiple(&wanted, step),
            None => between(&wanted),
        };
        match found {
            Some(Some(number)) => number
                .to_value()
                .map_or(SearchOutcome::Unknown, SearchOutcome::Value),
            Some(None) => SearchOutcome::Empty,
            None => {
                self.obstacles.insert("multipleOf");
                SearchOutcome::Unknown
            }
        }
    }
}

/// A multiple of the step, if there is one; no answer if too many are excluded.
#[expect(
    clippy::option_option,
    reason = "no answer is not the answer that there is none"
)]
fn multiple(wanted: &NumberConstraints, step: &Ratio) -> Option<Option<Ratio>> {
    if wanted
        .avoided
        .iter()
        .any(|avoided| step.is_multiple_of(avoided))
    {
        return Some(None);
    }
    let (first, direction) = match (&wanted.low, &wanted.high) {
        // Zero is the simplest number, if it is in the interval.
        (Some(low), _) if low.at >= Ratio::zero() || wanted.high.is_some() => {
            (low.at.up_to_multiple(step), step.clone())
        }
        (_, Some(high)) if high.at < Ratio::zero() || wanted.low.is_some() => {
            (high.at.down_to_multiple(step), Ratio::zero().minus(step))
        }
        (_, Some(_)) => (Ratio::zero(), Ratio::zero().minus(step)),
        _ => (Ratio::zero(), step.clone()),
    };
    // Which multiples must be avoided repeats with this period; each excluded number can rule out
    // one round of it.
    let mut period = step.clone();
    for avoided in &wanted.avoided {
        period = period.lcm(avoided);
    }
    let rounds = wanted.excluded.len() as u64 + 2;
    let needed = period
        .magnitude()
        .count_of(step)
        .and_then(|count| count.checked_mul(rounds))
        .unwrap_or(u64::MAX);
    let available = match (&wanted.low, &wanted.high) {
        (Some(low), Some(high)) if high.at >= low.at => high
            .at
            .minus(&low.at)
            .count_of(step)
            .map_or(u64::MAX, |count| count + 2),
        (Some(_), Some(_)) => return Some(None),
        _ => u64::MAX,
    };
    let limit = needed.min(available);
    let mut number = first;
    for _ in 0..limit.min(MAX_MULTIPLES) {
        if wanted.admits(&number) {
            return Some(Some(number));
        }
        number = number.plus(&direction);
    }
    (limit <= MAX_MULTIPLES).then_some(None)
}

/// A number of an interval without steps, the simplest candidates first.
#[expect(
    clippy::option_option,
    reason = "no answer is not the answer that there is none"
)]
fn between(wanted: &NumberConstraints) -> Option<Option<Ratio>> {
    if let (Some(low), Some(high)) = (&wanted.low, &wanted.high) {
        let none = low.at > high.at || (low.at == high.at && (low.strict || high.strict));
        if none {
            return Some(None);
        }
        if low.at == high.at {
            return Some(wanted.admits(&low.at).then(|| low.at.clone()));
        }
    }
    let one = Ratio::one();
    let (start, width) = match (&wanted.low, &wanted.high) {
        (Some(low), Some(high)) => (low.at.clone(), high.at.minus(&low.at)),
        (Some(low), None) => (low.at.clone(), one.clone()),
        (None, Some(high)) => (high.at.minus(&one), one.clone()),
        (None, None) => (Ratio::zero(), one.clone()),
    };
    let mut plain = vec![
        Ratio::zero(),
        one.clone(),
        Ratio::from(-1),
        Ratio::from(3).over(2),
    ];
    plain.push(start.clone());
    plain.push(start.plus(&width));
    plain.push(start.plus(&one));
    plain.push(start.plus(&width).minus(&one));
    let inside = [2_i64, 10, 64, 4096].into_iter().flat_map(|parts| {
        let (start, width) = (start.clone(), width.clone());
        (1..parts).map(move |part| start.plus(&width.times(&Ratio::from(part)).over(parts)))
    });
    let mut numbers = plain.into_iter().chain(inside);
    numbers.find(|number| wanted.admits(number)).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn multiples_are_found_or_proven_absent() {
        let mut wanted = NumberConstraints::default();
        wanted.at_least(&Ratio::from(1), false);
        wanted.at_most(&Ratio::from(9), false);
        wanted.multiple_of(&Ratio::from(4));
        assert_eq!(
            multiple(&wanted, &Ratio::from(4)),
            Some(Some(Ratio::from(4)))
        );
        wanted.avoided.push(Ratio::from(8));
        wanted.excluded.insert(Ratio::from(4));
        assert_eq!(multiple(&wanted, &Ratio::from(4)), Some(None));
    }

    #[test]
    fn an_interval_without_whole_numbers_has_fractions() {
        let mut wanted = NumberConstraints::default();
        wanted.at_least(&Ratio::zero(), true);
        wanted.at_most(&Ratio::one(), true);
        let found = between(&wanted)
            .flatten()
            .and_then(|number| number.to_value());
        assert_eq!(found, serde_json::from_str::<Value>("0.5").ok());
    }
}
