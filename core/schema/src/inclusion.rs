use std::cell::RefCell;

use serde_json::Value;
use toolwarden_model::json::Object;

use crate::algebra::{Algebra, JsonSchemaAlgebra};
use crate::comparison_policy::{Callers, FormatMode, SearchBudget, ValueDomain};
use crate::obstacle::{SchemaSide, find_obstacles};
use crate::prepare::lift;
use crate::prepared_schema::PreparedSchema;
use crate::set::{Arena, Fact, Literal, TypeSet, compile};
use crate::solve::{SearchOutcome, Solver};
use crate::text::PatternCache;
use crate::verdict::{Engine, Proof, Unknown, UnknownReason, Witness};
use crate::witness::shrink;

/// Whether every value of one document is a value of another.
pub(crate) struct InclusionQuery<'q, 's> {
    pub(crate) from: &'q mut PreparedSchema<'s>,
    pub(crate) to: &'q mut PreparedSchema<'s>,
    /// Which values of the first count.
    pub(crate) callers: Callers,
    /// Which values of the second count.
    pub(crate) receivers: Callers,
    pub(crate) domain: ValueDomain,
    pub(crate) formats: FormatMode,
    pub(crate) budget: SearchBudget,
}

/// The answer.
pub(crate) enum Inclusion {
    Included(Proof),
    NotIncluded(Witness),
    Unknown(Unknown),
}

impl InclusionQuery<'_, '_> {
    pub(crate) fn solve(mut self, arena: &mut Arena, texts: &mut PatternCache) -> Inclusion {
        let goals = self.goals(arena);
        let budget = self.budget;
        let (mut value, mut refused) = (None, None);
        let mut judge = |candidate: &Value| match self.check(candidate) {
            Ok(proves) => {
                value = proves.then(|| candidate.clone());
                proves
            }
            Err(message) => {
                refused = Some(message);
                false
            }
        };
        let mut solver = Solver::new(arena, texts, budget);
        let outcome = solver.search(goals.clone(), &mut judge);
        let steps = solver.steps();
        let obstacles: Vec<&'static str> = solver.obstacles().iter().copied().collect();
        if outcome == SearchOutcome::Empty {
            return Inclusion::Included(Proof {
                engine: Engine::Search,
                steps,
            });
        }
        if let Some(witness) = value.and_then(|value| self.witness(value, &goals, arena, texts)) {
            return Inclusion::NotIncluded(witness);
        }
        if let Some(message) = refused {
            return Inclusion::Unknown(Unknown {
                reason: UnknownReason::Invalid(message),
                obstacles: Vec::new(),
            });
        }
        if !budget.time.is_over()
            && let Some(inclusion) = self.ask_algebra(arena, texts, steps)
        {
            return inclusion;
        }
        let mut found = find_obstacles(self.from.raw, SchemaSide::Old, &obstacles);
        found.extend(find_obstacles(self.to.raw, SchemaSide::New, &obstacles));
        let spent = obstacles
            .iter()
            .any(|name| matches!(*name, "budget" | "depth" | "size"));
        Inclusion::Unknown(Unknown {
            reason: if budget.time.is_over() {
                UnknownReason::Time
            } else if spent {
                UnknownReason::Budget
            } else {
                UnknownReason::Undecided
            },
            obstacles: found,
        })
    }

    /// The literals that a counterexample makes true.
    fn goals(&self, arena: &mut Arena) -> Vec<Literal> {
        let narrowed = |document: &PreparedSchema<'_>, callers: Callers| {
            let closed = document.closed.as_ref();
            let closed = closed.filter(|_| callers == Callers::Declared);
            closed.map(|closed| (closed.id, closed.may_widen))
        };
        let mut goals = match narrowed(self.from, self.callers) {
            None => vec![self.from.open_id.holds()],
            Some((closed, true)) => vec![closed.holds(), self.from.open_id.holds()],
            Some((closed, false)) => vec![closed.holds()],
        };
        let target = narrowed(self.to, self.receivers);
        goals.push(target.map_or(self.to.open_id, |(closed, _)| closed).fails());
        if self.domain == ValueDomain::Objects {
            goals.push(arena.add(Fact::Type(TypeSet::OBJECT)).holds());
        }
        goals
    }

    /// Whether the validator confirms that a value is a witness.
    fn check(&mut self, value: &Value) -> Result<bool, String> {
        self.from.build_validators(self.callers, self.formats)?;
        self.to.build_validators(self.receivers, self.formats)?;
        Ok(self.proves(value))
    }

    fn proves(&self, value: &Value) -> bool {
        (self.domain == ValueDomain::Values || value.is_object())
            && self.from.accepts(value, self.callers)
            && !self.to.accepts(value, self.receivers)
    }

    /// The witness for a value that the validator confirmed, made as small as possible. The validator
    /// rounds some numbers, so that the facts, which are exact, must not contradict it.
    fn witness(
        &self,
        value: Value,
        goals: &[Literal],
        arena: &Arena,
        texts: &mut PatternCache,
    ) -> Option<Witness> {
        let texts = RefCell::new(texts);
        let is_exact = |value: &Value| {
            let mut texts = texts.borrow_mut();
            let mut goals = goals.iter();
            goals.all(|goal| arena.is_true(*goal, value, &mut texts) != Some(false))
        };
        if !is_exact(&value) {
            return None;
        }
        let proves = |value: &Value| self.proves(value) && is_exact(value);
        let value = shrink(value, &self.budget, &proves);
        let rejection = self.to.rejection(&value, self.receivers)?;
        Some(Witness::new(value, rejection))
    }

    /// Asks the algebra where our own rules are undecided. Its proof is accepted, and its difference
    /// schema is searched for a witness.
    fn ask_algebra(
        &mut self,
        arena: &mut Arena,
        texts: &mut PatternCache,
        steps: u32,
    ) -> Option<Inclusion> {
        let algebra = JsonSchemaAlgebra {
            budget: self.budget,
            formats: self.formats,
        };
        let read = |document: &PreparedSchema<'_>, callers: Callers| {
            let closed = document.closed.as_ref();
            let closed = closed.filter(|_| callers == Callers::Declared);
            closed.map_or_else(|| document.lifted.clone(), |closed| closed.schema.clone())
        };
        let to = read(self.to, self.receivers);
        let from = match self.domain {
            ValueDomain::Objects => objects_only(&read(self.from, self.callers)),
            ValueDomain::Values => read(self.from, self.callers),
        };
        if algebra.includes(&from, &to) == Some(true) {
            return Some(Inclusion::Included(Proof {
                engine: Engine::Algebra,
                steps,
            }));
        }
        if self.budget.time.is_over() {
            return None;
        }
        let difference = algebra.difference(&from, &to)?;
        let lifted = lift(&difference, self.formats).ok()?;
        let id = compile(arena, &lifted).ok()?;
        let budget = self.budget;
        let mut value = None;
        let mut judge = |candidate: &Value| {
            let proves = self.check(candidate).unwrap_or(false);
            value = proves.then(|| candidate.clone());
            proves
        };
        Solver::new(arena, texts, budget).search(vec![id.holds()], &mut judge);
        let goals = self.goals(arena);
        let witness = value.and_then(|value| self.witness(value, &goals, arena, texts));
        witness.map(Inclusion::NotIncluded)
    }
}

fn objects_only(lifted: &Value) -> Value {
    let Value::Object(members) = lifted else {
        return lifted.clone();
    };
    let mut whole = Object::new();
    let mut inner = members.clone();
    if let Some(definitions) = inner.shift_remove("$defs") {
        whole.insert("$defs".to_owned(), definitions);
    }
    whole.insert("type".to_owned(), Value::from("object"));
    whole.insert("allOf".to_owned(), Value::Array(vec![Value::Object(inner)]));
    Value::Object(whole)
}
