//! Strings as sets: patterns become automata, and the validator decides about formats.

mod automaton;
mod ecma;
mod formats;
mod text_search;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::comparison_policy::SearchBudget;
use automaton::Automaton;
use formats::FormatValidator;
pub(crate) use formats::format_samples;
pub(crate) use text_search::{TextAnswer, TextQuery};

/// What building an automaton costs, in states.
const AUTOMATON_COST: u32 = 64;
/// The most texts that are tried against patterns without an automaton.
const MAX_ATTEMPTS: u64 = 24;

/// The patterns and formats of one comparison, each compiled once.
#[derive(Debug)]
pub(crate) struct PatternCache {
    automata: BTreeMap<Arc<str>, Option<Arc<Automaton>>>,
    formats: FormatValidator,
    budget: SearchBudget,
    /// States visited since the last call of `take_visited`.
    visited: u32,
}

impl PatternCache {
    /// Patterns whose products are searched within a budget.
    pub(crate) fn new(budget: SearchBudget) -> Self {
        Self {
            automata: BTreeMap::new(),
            formats: FormatValidator::default(),
            budget,
            visited: 0,
        }
    }

    /// How many states were visited since the last call.
    pub(crate) fn take_visited(&mut self) -> u32 {
        std::mem::take(&mut self.visited)
    }

    /// Whether a pattern matches somewhere in a text; `None` where neither automaton nor validator can
    /// decide.
    pub(crate) fn matches(&mut self, pattern: &Arc<str>, text: &str) -> Option<bool> {
        match self.automaton(pattern) {
            Some(automaton) => Some(automaton.accepts(text)),
            // Automata do not support lookaround; the validator does.
            None => {
                let schema = Value::from_iter([("pattern", Value::from(&**pattern))]);
                self.formats.accepts(&Arc::from(schema.to_string()), text)
            }
        }
    }

    /// Whether the validator lets a text pass under a schema of formats.
    pub(crate) fn has_format(&mut self, schema: &Arc<str>, text: &str) -> Option<bool> {
        self.formats.accepts(schema, text)
    }

    /// The shortest text with the wanted properties.
    pub(crate) fn find(&mut self, wanted: &TextQuery<'_>) -> TextAnswer {
        let mut required = Vec::new();
        let mut forbidden = Vec::new();
        let mut irregular = Vec::new();
        for pattern in &wanted.matching {
            if self.budget.time.is_over() {
                return TextAnswer::Unknown;
            }
            match self.automaton(pattern) {
                Some(automaton) => required.push(automaton),
                None => {
                    irregular.push((Arc::clone(pattern), true));
                    let relaxed = Arc::from(ecma::without_lookaround(pattern));
                    required.extend(self.automaton(&relaxed));
                }
            }
        }
        for pattern in &wanted.avoiding {
            if self.budget.time.is_over() {
                return TextAnswer::Unknown;
            }
            match self.automaton(pattern) {
                Some(automaton) => forbidden.push(automaton),
                None => irregular.push((Arc::clone(pattern), false)),
            }
        }
        if irregular.is_empty() {
            let limits = (&self.budget, &mut self.visited);
            return text_search::find(&required, &forbidden, wanted, limits);
        }
        self.find_irregular(&required, &forbidden, &irregular, wanted)
    }

    /// Tries texts of a larger set one by one against constraints that only the validator can check.
    fn find_irregular(
        &mut self,
        required: &[Arc<Automaton>],
        forbidden: &[Arc<Automaton>],
        irregular: &[(Arc<str>, bool)],
        wanted: &TextQuery<'_>,
    ) -> TextAnswer {
        let mut tried: Vec<String> = Vec::new();
        for attempt in 0..MAX_ATTEMPTS {
            let mut excluded = wanted.excluded.clone();
            excluded.extend(tried.iter().map(String::as_str));
            let relaxed = TextQuery {
                min: wanted.min.max(attempt.min(1)),
                max: wanted.max,
                excluded,
                ..TextQuery::default()
            };
            let limits = (&self.budget, &mut self.visited);
            let found = text_search::find(required, forbidden, &relaxed, limits);
            let text = match found {
                TextAnswer::Text(text) => text,
                // Only an answer about the whole larger set also holds for the smaller one.
                TextAnswer::Nothing if attempt == 0 => return TextAnswer::Nothing,
                TextAnswer::Nothing | TextAnswer::Unknown => break,
            };
            let judged = |texts: &mut Self, text: &str| {
                irregular
                    .iter()
                    .all(|(pattern, holds)| texts.matches(pattern, text) == Some(*holds))
            };
            if judged(self, &text) {
                return TextAnswer::Text(text);
            }
            tried.push(text);
        }
        TextAnswer::Unknown
    }

    fn automaton(&mut self, pattern: &Arc<str>) -> Option<Arc<Automaton>> {
        if let Some(known) = self.automata.get(pattern) {
            return known.clone();
        }
        let built = ecma::to_rust(pattern)
            .and_then(|pattern| Automaton::containing(&pattern))
            .map(Arc::new);
        self.visited += AUTOMATON_COST;
        self.automata.insert(Arc::clone(pattern), built.clone());
        built
    }
}
