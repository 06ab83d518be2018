//! Strings as sets: patterns as automata, formats as the validator judges them.

mod automaton;
mod ecma;
mod formats;
mod search;

use std::collections::BTreeMap;
use std::sync::Arc;

use automaton::Automaton;
use formats::FormatJudge;
pub(crate) use formats::samples;
pub(crate) use search::{Found, Wanted};

/// The patterns and formats of one comparison, each compiled once.
#[derive(Debug)]
pub(crate) struct Texts {
    automata: BTreeMap<Arc<str>, Option<Arc<Automaton>>>,
    formats: FormatJudge,
    states: u32,
}

impl Texts {
    /// Patterns whose products are searched up to the given number of states.
    pub(crate) fn new(states: u32) -> Self {
        Self {
            automata: BTreeMap::new(),
            formats: FormatJudge::default(),
            states,
        }
    }

    /// Whether a pattern matches somewhere in a text; nothing where no automaton can tell.
    pub(crate) fn matches(&mut self, pattern: &Arc<str>, text: &str) -> Option<bool> {
        Some(self.automaton(pattern)?.accepts(text))
    }

    /// Whether the validator lets a text pass under a schema of formats.
    pub(crate) fn has_format(&mut self, schema: &Arc<str>, text: &str) -> Option<bool> {
        self.formats.judge(schema, text)
    }

    /// The shortest text with the wanted properties.
    pub(crate) fn find(&mut self, wanted: &Wanted<'_>) -> Found {
        let mut required = Vec::new();
        let mut forbidden = Vec::new();
        for (patterns, automata) in [
            (&wanted.matching, &mut required),
            (&wanted.avoiding, &mut forbidden),
        ] {
            for pattern in patterns {
                match self.automaton(pattern) {
                    Some(automaton) => automata.push(automaton),
                    None => return Found::Unknown,
                }
            }
        }
        search::find(&required, &forbidden, wanted, self.states)
    }

    fn automaton(&mut self, pattern: &Arc<str>) -> Option<Arc<Automaton>> {
        if let Some(known) = self.automata.get(pattern) {
            return known.clone();
        }
        let built = ecma::to_rust(pattern)
            .and_then(|pattern| Automaton::containing(&pattern))
            .map(Arc::new);
        self.automata.insert(Arc::clone(pattern), built.clone());
        built
    }
}
