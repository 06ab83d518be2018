//! The order of trials.

use std::collections::BTreeMap;

use super::suite::TrialSuite;
use super::trial::Trial;

/// Trials in the order of the suite's cases, whole replies before streamed ones.
pub(super) fn order_trials<'t>(suite: &TrialSuite, trials: &'t [Trial]) -> Vec<&'t Trial> {
    let cases = suite.cases.iter().enumerate();
    let places: BTreeMap<&str, usize> = cases.map(|(at, it)| (it.name.as_str(), at)).collect();
    let key = |trial: &'t Trial| {
        let place = places.get(trial.case.as_str()).copied();
        let place = place.unwrap_or(usize::MAX);
        (place, trial.case.as_str(), trial.mode, trial.repetition)
    };
    let mut trials: Vec<&Trial> = trials.iter().collect();
    trials.sort_by(|one, other| {
        // Trials with the same position are ordered by their content.
        key(one)
            .cmp(&key(other))
            .then_with(|| format!("{one:?}").cmp(&format!("{other:?}")))
    });
    trials
}
