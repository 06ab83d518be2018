use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::state::State;
use super::{Outcome, Solver};
use crate::set::Node;
use crate::text::{Found, Wanted, samples};

/// How many states of an automaton cost as much as one step of the search.
const STATES_PER_STEP: u32 = 2;
/// From here on a text is so long that copies of it are counted.
const LONG: usize = 65_536;

impl Solver<'_> {
    pub(super) fn string(&mut self, state: &State) -> Outcome {
        let mut wanted = Wanted::default();
        let mut formats: Vec<Arc<str>> = Vec::new();
        let mut judged_by_format = false;
        let mut excluded: Vec<Arc<Value>> = Vec::new();
        let mut limit =
            |max: u64| wanted.max = Some(wanted.max.map_or(max, |known| known.min(max)));
        let mut least = 0;
        for literal in &state.atoms {
            match (self.arena.node(literal.id), literal.holds) {
                (Node::MinLength(min), true) => least = least.max(*min),
                (Node::MinLength(min), false) => limit(min.saturating_sub(1)),
                (Node::MaxLength(max), true) => limit(*max),
                (Node::MaxLength(max), false) => least = least.max(max.saturating_add(1)),
                (Node::Pattern(pattern), true) => wanted.matching.push(Arc::clone(pattern)),
                (Node::Pattern(pattern), false) => wanted.avoiding.push(Arc::clone(pattern)),
                (Node::Format(format), holds) => {
                    judged_by_format = true;
                    if holds {
                        formats.push(Arc::clone(format));
                    }
                }
                (Node::Enum(constants), _) => {
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
            Found::Text(text) => {
                self.has_long_values |= text.len() > LONG;
                Outcome::Value(Value::from(text))
            }
            Found::Nothing => Outcome::Empty,
            Found::Unknown => {
                let too_long = wanted.matching.is_empty() && wanted.avoiding.is_empty();
                self.obstacles
                    .insert(if too_long { "size" } else { "pattern" });
                Outcome::Unknown
            }
        }
    }

    /// A format is no set a rule knows: texts that may have it are tried.
    fn with_format(&mut self, state: &State, formats: &[Arc<str>], wanted: &Wanted<'_>) -> Outcome {
        let named = formats.iter().flat_map(|format| samples(format));
        let any = samples("").iter();
        let mut tried: Vec<Value> = named.chain(any).map(|text| Value::from(*text)).collect();
        match self.texts.find(wanted) {
            Found::Text(text) => tried.push(Value::from(text)),
            Found::Nothing => return Outcome::Empty,
            Found::Unknown => {}
        }
        for value in tried {
            if self.satisfies(state, &value) == Some(true) {
                return Outcome::Value(value);
            }
        }
        self.obstacles.insert("format");
        Outcome::Unknown
    }
}
