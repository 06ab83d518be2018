//! Is there a value that makes all of these literals true?
//!
//! The question "does every value of A belong to B" is the question whether "A and not B" has a
//! value. The search takes the conjunction apart until only facts about one type are left, builds
//! a value for them, and asks the same question about the parts of that value. A conjunction met
//! again below itself is empty there: a value is finite, and the smallest one would contain a
//! smaller one of the same kind.

mod array;
mod number;
mod object;
mod state;
mod string;

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use crate::policy::Budget;
use crate::set::{Arena, Literal, Node, TypeSet};
use crate::text::Texts;
use state::{Choice, State};

/// The most parts a value that is built may have.
const MAX_PARTS: usize = 120_000;
/// How many characters of a text count as one part.
const CHARACTERS_PER_PART: usize = 64;
/// The most parts of all values together, once some are long: each is copied into those around it.
const MAX_ALL_PARTS: usize = 2_000_000;

/// The answer to a conjunction.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// No value makes it true.
    Empty,
    /// This value does.
    Value(Value),
    /// This value may: something in the conjunction is read by no rule.
    Candidate(Value),
    /// Nothing was established.
    Unknown,
}

impl Outcome {
    /// The better of two answers about alternatives.
    fn or(self, other: Self) -> Self {
        match (&self, &other) {
            (Self::Value(_), _) | (_, Self::Empty) => self,
            (_, Self::Value(_)) | (Self::Empty, _) => other,
            (Self::Candidate(_), _) => self,
            _ => other,
        }
    }

    fn weakened(self) -> Self {
        match self {
            Self::Value(value) => Self::Candidate(value),
            other => other,
        }
    }
}

/// A search with its budget and everything it has learnt.
pub(crate) struct Solver<'a> {
    pub(crate) arena: &'a mut Arena,
    pub(crate) texts: &'a mut Texts,
    budget: Budget,
    steps: u32,
    known: HashMap<Vec<Literal>, Outcome>,
    open: HashMap<Vec<Literal>, usize>,
    /// Conjunctions that are empty if the open one at a level is.
    leaning: HashMap<Vec<Literal>, usize>,
    leaning_order: Vec<(Vec<Literal>, usize)>,
    /// The outermost open conjunction the answers since the last one leant on.
    leans_on: usize,
    types: HashMap<Literal, TypeSet>,
    obstacles: BTreeSet<&'static str>,
    /// Whether a value was built that is long enough for copies of it to count.
    has_long_values: bool,
    parts: usize,
}

impl<'a> Solver<'a> {
    pub(crate) fn new(arena: &'a mut Arena, texts: &'a mut Texts, budget: Budget) -> Self {
        Self {
            arena,
            texts,
            budget,
            steps: 0,
            known: HashMap::new(),
            open: HashMap::new(),
            leaning: HashMap::new(),
            leaning_order: Vec::new(),
            leans_on: usize::MAX,
            types: HashMap::new(),
            obstacles: BTreeSet::new(),
            has_long_values: false,
            parts: 0,
        }
    }

    /// What kept the search from an answer, by keyword.
    pub(crate) fn obstacles(&self) -> &BTreeSet<&'static str> {
        &self.obstacles
    }

    /// Conjunctions examined so far.
    pub(crate) fn steps(&self) -> u32 {
        self.steps
    }

    /// Searches for a value the judge agrees to; what it does not agree to is passed over.
    pub(crate) fn search(
        &mut self,
        goals: Vec<Literal>,
        judge: &mut dyn FnMut(&Value) -> bool,
    ) -> Outcome {
        let state = State::new(goals);
        self.branch(state, &mut Some(judge))
    }

    /// A value for a conjunction about a part of a value.
    fn solve(&mut self, mut goals: Vec<Literal>) -> Outcome {
        if self.is_spent() {
            return Outcome::Unknown;
        }
        goals.sort_unstable();
        goals.dedup();
        if goals
            .windows(2)
            .any(|pair| matches!(pair, [a, b] if a.id == b.id))
        {
            return Outcome::Empty;
        }
        if let Some(known) = self.known.get(&goals) {
            let known = known.clone();
            return self.counted(known);
        }
        let leant = self.open.get(&goals).or_else(|| self.leaning.get(&goals));
        if let Some(level) = leant {
            self.leans_on = self.leans_on.min(*level);
            return Outcome::Empty;
        }
        let level = self.open.len();
        if level >= self.budget.depth as usize {
            self.obstacles.insert("depth");
            return Outcome::Unknown;
        }
        self.open.insert(goals.clone(), level);
        let before = std::mem::replace(&mut self.leans_on, usize::MAX);
        let outcome = self.branch(State::new(goals.clone()), &mut None);
        self.open.remove(&goals);
        self.remember(goals, level, &outcome);
        self.leans_on = if self.leans_on >= level {
            before
        } else {
            before.min(self.leans_on)
        };
        self.counted(outcome)
    }

    /// The outcome, unless all values together have grown beyond use. Only long ones can.
    fn counted(&mut self, outcome: Outcome) -> Outcome {
        let (true, Outcome::Value(value) | Outcome::Candidate(value)) =
            (self.has_long_values, &outcome)
        else {
            return outcome;
        };
        self.parts = self
            .parts
            .saturating_add(parts_of(value).unwrap_or(MAX_PARTS));
        if self.parts > MAX_ALL_PARTS {
            self.obstacles.insert("size");
            return Outcome::Unknown;
        }
        outcome
    }

    /// Keeps an answer for as long as it stands. One that leant on an open conjunction being empty
    /// stands only while that one is open, and for good once it has turned out empty.
    fn remember(&mut self, goals: Vec<Literal>, level: usize, outcome: &Outcome) {
        let leans_on = self.leans_on;
        let stands_alone = leans_on >= level;
        let (here, elsewhere): (Vec<_>, Vec<_>) = std::mem::take(&mut self.leaning_order)
            .into_iter()
            .partition(|(_, leant)| *leant == level);
        self.leaning_order = elsewhere;
        for (leaning, _) in here {
            self.leaning.remove(&leaning);
            match outcome {
                Outcome::Empty if stands_alone => {
                    self.known.insert(leaning, Outcome::Empty);
                }
                Outcome::Empty => self.lean(leaning, leans_on),
                Outcome::Value(_) | Outcome::Candidate(_) | Outcome::Unknown => {}
            }
        }
        match outcome {
            Outcome::Empty if !stands_alone => self.lean(goals, leans_on),
            Outcome::Candidate(_) | Outcome::Unknown if !stands_alone => {}
            _ => {
                self.known.insert(goals, outcome.clone());
            }
        }
    }

    fn lean(&mut self, goals: Vec<Literal>, level: usize) {
        self.leaning.insert(goals.clone(), level);
        self.leaning_order.push((goals, level));
    }

    /// Whether the budget is used up.
    fn is_spent(&mut self) -> bool {
        let spent = self.steps > self.budget.steps || self.budget.time.is_over();
        if spent {
            self.obstacles.insert("budget");
        }
        spent
    }

    fn branch(&mut self, mut state: State, judge: Judge<'_, '_>) -> Outcome {
        self.steps += 1;
        if self.is_spent() {
            return Outcome::Unknown;
        }
        if !self.saturate(&mut state) {
            return Outcome::Empty;
        }
        if let Some(outcome) = self.finite(&state) {
            return settle(outcome, &state, judge);
        }
        let kinds = TypeSet::KINDS.map(|kind| kind.and(state.types));
        let kinds = kinds.into_iter().filter(|kind| !kind.is_empty());
        if kinds.clone().count() > 1 {
            let mut outcome = Outcome::Empty;
            for kind in kinds {
                let mut narrowed = state.clone();
                narrowed.types = kind;
                outcome = outcome.or(self.branch(narrowed, judge));
                if matches!(outcome, Outcome::Value(_)) {
                    return outcome;
                }
            }
            return outcome;
        }
        match self.choice(&mut state) {
            Choice::Contradiction => Outcome::Empty,
            Choice::Forced(literals) => {
                state.pending.extend(literals);
                self.branch(state, judge)
            }
            Choice::Between(alternatives) => {
                let mut outcome = Outcome::Empty;
                for literals in alternatives {
                    let mut taken = state.clone();
                    taken
                        .chosen
                        .extend(literals.iter().filter(|literal| literal.holds));
                    taken.pending.extend(literals);
                    outcome = outcome.or(self.branch(taken, judge));
                    if matches!(outcome, Outcome::Value(_)) {
                        return outcome;
                    }
                }
                outcome
            }
            Choice::Done => self.leaf(&state, judge),
        }
    }

    /// Only facts about one type are left.
    fn leaf(&mut self, state: &State, judge: Judge<'_, '_>) -> Outcome {
        match state.types {
            TypeSet::NULL => settle(self.among(state, &[Value::Null]), state, judge),
            TypeSet::BOOLEAN => {
                let both = [Value::Bool(true), Value::Bool(false)];
                settle(self.among(state, &both), state, judge)
            }
            TypeSet::STRING => settle(self.string(state), state, judge),
            TypeSet::ARRAY => self.array(state, judge),
            TypeSet::OBJECT => self.object(state, judge),
            _ => settle(self.number(state), state, judge),
        }
    }

    /// A value put together from parts, unless it has grown beyond use.
    fn built(&mut self, value: Value, certain: bool) -> Outcome {
        if parts_of(&value).is_none() {
            self.obstacles.insert("size");
            return Outcome::Unknown;
        }
        if certain {
            Outcome::Value(value)
        } else {
            Outcome::Candidate(value)
        }
    }

    /// Where an enumeration limits the value, each of its values is tried.
    fn finite(&mut self, state: &State) -> Option<Outcome> {
        let enumeration = state
            .enums
            .iter()
            .filter_map(|id| match self.arena.node(*id) {
                Node::Enum(constants) => Some(std::sync::Arc::clone(constants)),
                _ => None,
            });
        let smallest = enumeration.min_by_key(|constants| constants.len())?;
        let values: Vec<Value> = smallest.iter().map(|c| (*c.value).clone()).collect();
        Some(self.among(state, &values))
    }

    fn among(&mut self, state: &State, values: &[Value]) -> Outcome {
        let mut outcome = Outcome::Empty;
        for value in values {
            if !TypeSet::of(value).within(state.types) {
                continue;
            }
            match self.satisfies(state, value) {
                Some(true) => return Outcome::Value(value.clone()),
                Some(false) => {}
                None => {
                    outcome = outcome.or(Outcome::Candidate(value.clone()));
                }
            }
        }
        outcome
    }

    /// Whether a value makes everything in a state true.
    fn satisfies(&mut self, state: &State, value: &Value) -> Option<bool> {
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

/// How many parts a value has; nothing where it has too many to be copied and shrunk.
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

/// Who decides about the values of the outermost conjunction; the inner ones have nobody.
type Judge<'j, 'f> = &'j mut Option<&'f mut dyn FnMut(&Value) -> bool>;

/// The answer of one branch: what no rule reads makes a value a candidate, and the judge has the
/// last word.
fn settle(outcome: Outcome, state: &State, judge: Judge<'_, '_>) -> Outcome {
    let outcome = if state.opaque.is_empty() {
        outcome
    } else {
        outcome.weakened()
    };
    let Some(judge) = judge else {
        return outcome;
    };
    match outcome {
        Outcome::Value(value) | Outcome::Candidate(value) => {
            if judge(&value) {
                Outcome::Value(value)
            } else {
                Outcome::Unknown
            }
        }
        other => other,
    }
}
