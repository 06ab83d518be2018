use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::conjunction::Conjunction;
use super::{SearchOutcome, Solver};
use crate::set::Fact;
use crate::text::{TextAnswer, TextQuery, format_samples};

/// How many states of an automaton cost as much as one step of the search.
const STATES_PER_STEP: u32 = 2;
/// From here on a text is so long that copies of it are counted.
const LONG: usize = 65_536;

impl Solver<'_> {
    pub(super) fn string(&mut self, state: &Conjunction) -> SearchOutcome {
        let mut wanted = TextQuery::default();
        let mut formats: Vec<Arc<str>> = Vec::new();
        let mut judged_by_format = false;
        let mut excluded: Vec<Arc<Value>> = Vec::new();
        let mut limit =
            |max: u64| wanted.max = Some(wanted.max.map_or(max, |known| known.min(max)));
        let mut least = 0;
        for literal in &state.atoms {
            match (self.arena.node(literal.id), literal.holds) {
                (Fact::MinLength(min), true) => least = least.max(*min),
                (Fact::MinLength(min), false) => limit(min.saturating_sub(1)),
                (Fact::MaxLength(max), true) => limit(*max),
                (Fact::MaxLength(max), false) => least = least.max(max.saturating_add(1)),
                (Fact::Pattern(pattern), true) => wanted.matching.push(Arc::clone(pattern)),
                (Fact::Pattern(pattern), false) => wanted.avoiding.push(Arc::clone(pattern)),
                (Fact::Format(format), holds) => {
                    judged_by_format = true;
                    if holds {
                        formats.push(Arc::clone(format));
                    }
                }
                (Fact::Enum(constants), _) => {
                    excluded.extend(constants.iter().map(|c| Arc::clone(&c.value)));
                }
                _ => {}
            }
        }
        wanted.min = least;
        wanted.excluded = excluded
            .iter()
            .filter_map(|value| value.as_str())
            .collect::<BTreeSet<_>>();
        if judged_by_format {
            return self.with_format(state, &formats, &wanted);
        }
        let found = self.texts.find(&wanted);
        self.steps += self.texts.take_visited() / STATES_PER_STEP;
        match found {
            TextAnswer::Text(text) => {
                self.has_long_values |= text.len() > LONG;
                SearchOutcome::Value(Value::from(text))
            }
            TextAnswer::Nothing => SearchOutcome::Empty,
            TextAnswer::Unknown => {
                let too_long = wanted.matching.is_empty() && wanted.avoiding.is_empty();
                self.obstacles
                    .insert(if too_long { "size" } else { "pattern" });
                SearchOutcome::Unknown
            }
        }
    }

    /// No rule describes the values of a format as a set, so sample texts are tried.
    fn with_format(
        &mut self,
        state: &Conjunction,
        formats: &[Arc<str>],
        wanted: &TextQuery<'_>,
    ) -> SearchOutcome {
        let named = formats.iter().flat_map(|format| format_samples(format));
        let any = format_samples("").iter();
        let mut tried: Vec<Value> = named.chain(any).map(|text| Value::from(*text)).collect();
        match self.texts.find(wanted) {
            TextAnswer::Text(text) => tried.push(Value::from(text)),
            TextAnswer::Nothing => return SearchOutcome::Empty,
            TextAnswer::Unknown => {}
        }
        for value in tried {
            if self.satisfies(state, &value) == Some(true) {
                return SearchOutcome::Value(value);
            }
        }
        self.obstacles.insert("format");
        SearchOutcome::Unknown
    }
}
