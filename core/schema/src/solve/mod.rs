//! Is there a value that makes all of these literals true?
//!
//! The question "does every value of A belong to B" is the question whether "A and not B" has a
//! value. The search takes the conjunction apart until only facts about one type are left, builds
//! a value for them, and asks the same question about the parts of that value. A conjunction met
//! again below itself is empty there: a value is finite, and the smallest one would contain a
//! smaller one of the same kind.

mod array;
mod conjunction;
mod number;
mod object;
mod string;

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use crate::comparison_policy::SearchBudget;
use crate::set::{Arena, Fact, Literal, TypeSet};
use crate::text::PatternCache;
use conjunction::{Conjunction, NextChoice};

/// The most parts a value that is built may have.
const MAX_PARTS: usize = 1_100_000;
/// How many characters of a text count as one part.
const CHARACTERS_PER_PART: usize = 64;
/// The most parts of all values together, once some are long: each is copied into those around it.
const MAX_ALL_PARTS: usize = 8_000_000;

/// The answer to a conjunction.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SearchOutcome {
    /// No value makes it true.
    Empty,
    /// This value does.
    Value(Value),
    /// This value may: no rule covers some part of the conjunction.
    Candidate(Value),
    /// Nothing was established.
    Unknown,
}

impl SearchOutcome {
    /// The better of two answers about alternatives.
    fn or(self, other: Self) -> Self {
        match (&self, &other) {
            (Self::Value(_), _) | (_, Self::Empty) => self,
            (_, Self::Value(_)) | (Self::Empty, _) => other,
            (Self::Candidate(_), _) => self,
            _ => other,
        }
    }

    fn into_candidate(self) -> Self {
        match self {
            Self::Value(value) => Self::Candidate(value),
            other => other,
        }
    }
}

/// A search with its budget and everything it has learnt.
pub(crate) struct Solver<'a> {
    pub(crate) arena: &'a mut Arena,
    pub(crate) texts: &'a mut PatternCache,
    budget: SearchBudget,
    steps: u32,
    known: HashMap<Vec<Literal>, SearchOutcome>,
    open: HashMap<Vec<Literal>, usize>,
    /// Conjunctions that are empty if the open conjunction at the given level is empty.
    provisional: HashMap<Vec<Literal>, usize>,
    provisional_order: Vec<(Vec<Literal>, usize)>,
    /// The level of the outermost open conjunction that the recent answers depend on.
    depends_on_level: usize,
    types: HashMap<Literal, TypeSet>,
    obstacles: BTreeSet<&'static str>,
    /// Whether a value was built that is long enough for copies of it to count.
    has_long_values: bool,
    parts: usize,
}

impl<'a> Solver<'a> {
    pub(crate) fn new(
        arena: &'a mut Arena,
        texts: &'a mut PatternCache,
        budget: SearchBudget,
    ) -> Self {
        Self {
            arena,
            texts,
            budget,
            steps: 0,
            known: HashMap::new(),
            open: HashMap::new(),
            provisional: HashMap::new(),
            provisional_order: Vec::new(),
            depends_on_level: usize::MAX,
            types: HashMap::new(),
            obstacles: BTreeSet::new(),
            has_long_values: false,
            parts: 0,
        }
    }

    /// What prevented an answer, by keyword.
    pub(crate) fn obstacles(&self) -> &BTreeSet<&'static str> {
        &self.obstacles
    }

    /// Conjunctions examined so far.
    pub(crate) fn steps(&self) -> u32 {
        self.steps
    }

    /// Searches for a value that the judge accepts; values it rejects are skipped.
    pub(crate) fn search(
        &mut self,
        goals: Vec<Literal>,
        judge: &mut dyn FnMut(&Value) -> bool,
    ) -> SearchOutcome {
        let state = Conjunction::new(goals);
        self.branch(state, &mut Some(judge))
    }

    /// A value for a conjunction about a part of a value.
    fn solve(&mut self, mut goals: Vec<Literal>) -> SearchOutcome {
        if self.is_exhausted() {
            return SearchOutcome::Unknown;
        }
        goals.sort_unstable();
        goals.dedup();
        if goals
            .windows(2)
            .any(|pair| matches!(pair, [a, b] if a.id == b.id))
        {
            return SearchOutcome::Empty;
        }
        if let Some(known) = self.known.get(&goals) {
            let known = known.clone();
            return self.check_total_size(known);
        }
        let leant = self
            .open
            .get(&goals)
            .or_else(|| self.provisional.get(&goals));
        if let Some(level) = leant {
            self.depends_on_level = self.depends_on_level.min(*level);
            return SearchOutcome::Empty;
        }
        let level = self.open.len();
        if level >= self.budget.depth as usize {
            self.obstacles.insert("depth");
            return SearchOutcome::Unknown;
        }
        self.open.insert(goals.clone(), level);
        let before = std::mem::replace(&mut self.depends_on_level, usize::MAX);
        let outcome = self.branch(Conjunction::new(goals.clone()), &mut None);
        self.open.remove(&goals);
        self.remember(goals, level, &outcome);
        self.depends_on_level = if self.depends_on_level >= level {
            before
        } else {
            before.min(self.depends_on_level)
        };
        self.check_total_size(outcome)
    }

    /// The outcome, unless all values together exceed the size limit. Only long values can do that.
    fn check_total_size(&mut self, outcome: SearchOutcome) -> SearchOutcome {
        let (true, SearchOutcome::Value(value) | SearchOutcome::Candidate(value)) =
            (self.has_long_values, &outcome)
        else {
            return outcome;
        };
        self.parts = self
            .parts
            .saturating_add(parts_of(value).unwrap_or(MAX_PARTS));
        if self.parts > MAX_ALL_PARTS {
            self.obstacles.insert("size");
            return SearchOutcome::Unknown;
        }
        outcome
    }

    /// Caches an answer for as long as it is valid. An answer that assumes an open conjunction to be
    /// empty is valid while that one is open, and permanently once that one proves to be empty.
    fn remember(&mut self, goals: Vec<Literal>, level: usize, outcome: &SearchOutcome) {
        let leans_on = self.depends_on_level;
        let stands_alone = leans_on >= level;
        let (here, elsewhere): (Vec<_>, Vec<_>) = std::mem::take(&mut self.provisional_order)
            .into_iter()
            .partition(|(_, leant)| *leant == level);
        self.provisional_order = elsewhere;
        for (leaning, _) in here {
            self.provisional.remove(&leaning);
            match outcome {
                SearchOutcome::Empty if stands_alone => {
                    self.known.insert(leaning, SearchOutcome::Empty);
                }
                SearchOutcome::Empty => self.remember_provisional(leaning, leans_on),
                SearchOutcome::Value(_) | SearchOutcome::Candidate(_) | SearchOutcome::Unknown => {}
            }
        }
        match outcome {
            SearchOutcome::Empty if !stands_alone => self.remember_provisional(goals, leans_on),
            SearchOutcome::Candidate(_) | SearchOutcome::Unknown if !stands_alone => {}
            _ => {
                self.known.insert(goals, outcome.clone());
            }
        }
    }

    fn remember_provisional(&mut self, goals: Vec<Literal>, level: usize) {
        self.provisional.insert(goals.clone(), level);
        self.provisional_order.push((goals, level));
    }

    /// Whether the budget is used up.
    fn is_exhausted(&mut self) -> bool {
        let spent = self.steps > self.budget.steps || self.budget.time.is_over();
        if spent {
            self.obstacles.insert("budget");
        }
        spent
    }

    fn branch(&mut self, mut state: Conjunction, judge: ValueCheck<'_, '_>) -> SearchOutcome {
        self.steps += 1;
        if self.is_exhausted() {
            return SearchOutcome::Unknown;
        }
        if !self.saturate(&mut state) {
            return SearchOutcome::Empty;
        }
        if let Some(outcome) = self.solve_enum(&state) {
            return finish_branch(outcome, &state, judge);
        }
        let kinds = TypeSet::KINDS.map(|kind| kind.and(state.types));
        let kinds = kinds.into_iter().filter(|kind| !kind.is_empty());
        if kinds.clone().count() > 1 {
            let mut outcome = SearchOutcome::Empty;
            for kind in kinds {
                let mut narrowed = state.clone();
                narrowed.types = kind;
                outcome = outcome.or(self.branch(narrowed, judge));
                if matches!(outcome, SearchOutcome::Value(_)) {
                    return outcome;
                }
            }
            return outcome;
        }
        match self.next_choice(&mut state) {
            NextChoice::Contradiction => SearchOutcome::Empty,
            NextChoice::Forced(literals) => {
                state.pending.extend(literals);
                self.branch(state, judge)
            }
            NextChoice::Between(alternatives) => {
                let mut outcome = SearchOutcome::Empty;
                for literals in alternatives {
                    let mut taken = state.clone();
                    taken
                        .chosen
                        .extend(literals.iter().filter(|literal| literal.holds));
                    taken.pending.extend(literals);
                    outcome = outcome.or(self.branch(taken, judge));
                    if matches!(outcome, SearchOutcome::Value(_)) {
                        return outcome;
                    }
                }
                outcome
            }
            NextChoice::Done => self.leaf(&state, judge),
        }
    }

    /// Only facts about one type are left.
    fn leaf(&mut self, state: &Conjunction, judge: ValueCheck<'_, '_>) -> SearchOutcome {
        match state.types {
            TypeSet::NULL => {
                finish_branch(self.first_satisfying(state, &[Value::Null]), state, judge)
            }
            TypeSet::BOOLEAN => {
                let both = [Value::Bool(true), Value::Bool(false)];
                finish_branch(self.first_satisfying(state, &both), state, judge)
            }
            TypeSet::STRING => finish_branch(self.string(state), state, judge),
            TypeSet::ARRAY => self.array(state, judge),
            TypeSet::OBJECT => self.object(state, judge),
            _ => finish_branch(self.number(state), state, judge),
        }
    }

    /// A value built from parts, unless it exceeds the size limit.
    fn check_value_size(&mut self, value: Value, certain: bool) -> SearchOutcome {
        if parts_of(&value).is_none() {
            self.obstacles.insert("size");
            return SearchOutcome::Unknown;
        }
        if certain {
            SearchOutcome::Value(value)
        } else {
            SearchOutcome::Candidate(value)
        }
    }

    /// Where an enumeration limits the value, each of its values is tried.
    fn solve_enum(&mut self, state: &Conjunction) -> Option<SearchOutcome> {
        let enumeration = state
            .enums
            .iter()
            .filter_map(|id| match self.arena.node(*id) {
                Fact::Enum(constants) => Some(std::sync::Arc::clone(constants)),
                _ => None,
            });
        let smallest = enumeration.min_by_key(|constants| constants.len())?;
        let values: Vec<Value> = smallest.iter().map(|c| (*c.value).clone()).collect();
        Some(self.first_satisfying(state, &values))
    }

    fn first_satisfying(&mut self, state: &Conjunction, values: &[Value]) -> SearchOutcome {
        let mut outcome = SearchOutcome::Empty;
        for value in values {
            if !TypeSet::of(value).within(state.types) {
                continue;
            }
            match self.satisfies(state, value) {
                Some(true) => return SearchOutcome::Value(value.clone()),
                Some(false) => {}
                None => {
                    outcome = outcome.or(SearchOutcome::Candidate(value.clone()));
                }
            }
        }
        outcome
    }

    /// Whether a value makes everything in a state true.
    fn satisfies(&mut self, state: &Conjunction, value: &Value) -> Option<bool> {
        let mut all = Some(true);
        let facts = state.atoms.iter().chain(&state.choices).copied();
        let facts = facts.chain(state.enums.iter().map(|id| id.holds()));
        for literal in facts.chain(state.opaque.iter().copied()) {
            match self.arena.is_true(literal, value, self.texts) {
                Some(true) => {}
                Some(false) => return Some(false),
                None => all = None,
            }
        }
        all
    }
}

/// How many parts a value has; `None` if it has too many to be copied and shrunk.
fn parts_of(value: &Value) -> Option<usize> {
    let mut open = vec![value];
    let mut parts = 0;
    while let Some(value) = open.pop() {
        parts += 1;
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(members) => open.extend(members.values()),
            Value::String(text) => parts += text.len() / CHARACTERS_PER_PART,
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        if parts > MAX_PARTS {
            return None;
        }
    }
    Some(parts)
}

/// The judge of the values of the outermost conjunction; inner conjunctions have none.
type ValueCheck<'j, 'f> = &'j mut Option<&'f mut dyn FnMut(&Value) -> bool>;

/// The answer of one branch. Facts that no rule reads make the value a candidate, and the judge
/// decides about it.
fn finish_branch(
    outcome: SearchOutcome,
    state: &Conjunction,
    judge: ValueCheck<'_, '_>,
) -> SearchOutcome {
    let outcome = if state.opaque.is_empty() {
        outcome
    } else {
        outcome.into_candidate()
    };
    let Some(judge) = judge else {
        return outcome;
    };
    match outcome {
        SearchOutcome::Value(value) | SearchOutcome::Candidate(value) => {
            if judge(&value) {
                SearchOutcome::Value(value)
            } else {
                SearchOutcome::Unknown
            }
        }
        other => other,
    }
}
