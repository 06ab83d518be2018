//! Strings as sets: patterns as automata, formats as the validator judges them.

mod automaton;
mod ecma;
mod formats;
mod search;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::policy::Budget;
use automaton::Automaton;
use formats::FormatJudge;
pub(crate) use formats::samples;
pub(crate) use search::{Found, Wanted};

/// What building an automaton costs, in states.
const BUILDING: u32 = 64;
/// The most texts that are tried against patterns no automaton knows.
const MAX_ATTEMPTS: u64 = 24;

/// The patterns and formats of one comparison, each compiled once.
#[derive(Debug)]
pub(crate) struct Texts {
    automata: BTreeMap<Arc<str>, Option<Arc<Automaton>>>,
    formats: FormatJudge,
    budget: Budget,
    /// States visited since the last time somebody asked.
    visited: u32,
}

impl Texts {
    /// Patterns whose products are searched within a budget.
    pub(crate) fn new(budget: Budget) -> Self {
        Self {
            automata: BTreeMap::new(),
            formats: FormatJudge::default(),
            budget,
            visited: 0,
        }
    }

    /// How many states were visited since the last time.
    pub(crate) fn take_visited(&mut self) -> u32 {
        std::mem::take(&mut self.visited)
    }

    /// Whether a pattern matches somewhere in a text; nothing where nobody can tell.
    pub(crate) fn matches(&mut self, pattern: &Arc<str>, text: &str) -> Option<bool> {
        match self.automaton(pattern) {
            Some(automaton) => Some(automaton.accepts(text)),
            // No automaton looks around, the validator does.
            None => {
                let schema = Value::from_iter([("pattern", Value::from(&**pattern))]);
                self.formats.judge(&Arc::from(schema.to_string()), text)
            }
        }
    }

    /// Whether the validator lets a text pass under a schema of formats.
    pub(crate) fn has_format(&mut self, schema: &Arc<str>, text: &str) -> Option<bool> {
        self.formats.judge(schema, text)
    }

    /// The shortest text with the wanted properties.
    pub(crate) fn find(&mut self, wanted: &Wanted<'_>) -> Found {
        let mut required = Vec::new();
        let mut forbidden = Vec::new();
        let mut irregular = Vec::new();
        for pattern in &wanted.matching {
            if self.budget.time.is_over() {
                return Found::Unknown;
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
                return Found::Unknown;
            }
            match self.automaton(pattern) {
                Some(automaton) => forbidden.push(automaton),
                None => irregular.push((Arc::clone(pattern), false)),
            }
        }
        if irregular.is_empty() {
            let limits = (&self.budget, &mut self.visited);
            return search::find(&required, &forbidden, wanted, limits);
        }
        self.find_irregular(&required, &forbidden, &irregular, wanted)
    }

    /// Tries texts of a larger set one by one against what only the validator can judge.
    fn find_irregular(
        &mut self,
        required: &[Arc<Automaton>],
        forbidden: &[Arc<Automaton>],
        irregular: &[(Arc<str>, bool)],
        wanted: &Wanted<'_>,
    ) -> Found {
        let mut tried: Vec<String> = Vec::new();
        for attempt in 0..MAX_ATTEMPTS {
            let mut excluded = wanted.excluded.clone();
            excluded.extend(tried.iter().map(String::as_str));
            let relaxed = Wanted {
                min: wanted.min.max(attempt.min(1)),
                max: wanted.max,
                excluded,
                ..Wanted::default()
            };
            let limits = (&self.budget, &mut self.visited);
            let found = search::find(required, forbidden, &relaxed, limits);
            let text = match found {
                Found::Text(text) => text,
                // Only the larger set as a whole says something about the smaller one.
                Found::Nothing if attempt == 0 => return Found::Nothing,
                Found::Nothing | Found::Unknown => break,
            };
            let judged = |texts: &mut Self, text: &str| {
                irregular
                    .iter()
                    .all(|(pattern, holds)| texts.matches(pattern, text) == Some(*holds))
            };
            if judged(self, &text) {
                return Found::Text(text);
            }
            tried.push(text);
        }
        Found::Unknown
    }

    fn automaton(&mut self, pattern: &Arc<str>) -> Option<Arc<Automaton>> {
        if let Some(known) = self.automata.get(pattern) {
            return known.clone();
        }
        let built = ecma::to_rust(pattern)
            .and_then(|pattern| Automaton::containing(&pattern))
            .map(Arc::new);
        self.visited += BUILDING;
        self.automata.insert(Arc::clone(pattern), built.clone());
        built
    }
}
