use serde_json::Value;
use toolwarden_model::json::Object;

use crate::algebra::{Algebra, Canonical};
use crate::document::Document;
use crate::obstacle::{Side, places};
use crate::policy::{Budget, Callers, Domain, Formats};
use crate::prepare::lift;
use crate::set::{Arena, Literal, Node, TypeSet, compile};
use crate::solve::{Outcome, Solver};
use crate::text::Texts;
use crate::verdict::{Engine, Proof, Reason, Unknown, Witness};
use crate::witness::shrink;

/// Whether every value of one document is a value of another.
pub(crate) struct Question<'q, 's> {
    pub(crate) from: &'q mut Document<'s>,
    pub(crate) to: &'q mut Document<'s>,
    /// Which values of the first count.
    pub(crate) callers: Callers,
    /// Which values of the second count.
    pub(crate) receivers: Callers,
    pub(crate) domain: Domain,
    pub(crate) formats: Formats,
    pub(crate) budget: Budget,
}

/// The answer.
pub(crate) enum Inclusion {
    Included(Proof),
    Not(Witness),
    Unknown(Unknown),
}

impl Question<'_, '_> {
    pub(crate) fn answer(mut self, arena: &mut Arena, texts: &mut Texts) -> Inclusion {
        let goals = self.goals(arena);
        let budget = self.budget;
        let (mut witness, mut refused) = (None, None);
        let mut judge = |value: &Value| match self.check(value) {
            Ok(found) => {
                witness = found;
                witness.is_some()
            }
            Err(message) => {
                refused = Some(message);
                false
            }
        };
        let mut solver = Solver::new(arena, texts, budget);
        let outcome = solver.search(goals, &mut judge);
        let steps = solver.steps();
        let obstacles: Vec<&'static str> = solver.obstacles().iter().copied().collect();
        if outcome == Outcome::Empty {
            return Inclusion::Included(Proof {
                engine: Engine::Search,
                steps,
            });
        }
        if let Some(witness) = witness {
            return Inclusion::Not(witness);
        }
        if let Some(message) = refused {
            return Inclusion::Unknown(Unknown {
                reason: Reason::Invalid(message),
                obstacles: Vec::new(),
            });
        }
        if !budget.time.is_over()
            && let Some(inclusion) = self.second_opinion(arena, texts, steps)
        {
            return inclusion;
        }
        let mut found = places(self.from.raw, Side::Old, &obstacles);
        found.extend(places(self.to.raw, Side::New, &obstacles));
        let spent = obstacles
            .iter()
            .any(|name| matches!(*name, "budget" | "depth" | "size"));
        Inclusion::Unknown(Unknown {
            reason: if budget.time.is_over() {
                Reason::Time
            } else if spent {
                Reason::Budget
            } else {
                Reason::Undecided
            },
            obstacles: found,
        })
    }

    /// What a counterexample makes true.
    fn goals(&self, arena: &mut Arena) -> Vec<Literal> {
        let narrowed = |document: &Document<'_>, callers: Callers| {
            let closed = document.closed.as_ref();
            let closed = closed.filter(|_| callers == Callers::Declared);
            closed.map(|closed| (closed.id, closed.widens))
        };
        let mut goals = match narrowed(self.from, self.callers) {
            None => vec![self.from.open_id.holds()],
            Some((closed, true)) => vec![closed.holds(), self.from.open_id.holds()],
            Some((closed, false)) => vec![closed.holds()],
        };
        let target = narrowed(self.to, self.receivers);
        goals.push(target.map_or(self.to.open_id, |(closed, _)| closed).fails());
        if self.domain == Domain::Objects {
            goals.push(arena.add(Node::Type(TypeSet::OBJECT)).holds());
        }
        goals
    }

    /// The witness a value makes once the validator agrees, as small as it gets.
    fn check(&mut self, value: &Value) -> Result<Option<Witness>, String> {
        self.from.build_validators(self.callers, self.formats)?;
        self.to.build_validators(self.receivers, self.formats)?;
        let (from, to) = (&*self.from, &*self.to);
        let proves = |value: &Value| {
            (self.domain == Domain::Values || value.is_object())
                && from.accepts(value, self.callers)
                && !to.accepts(value, self.receivers)
        };
        if !proves(value) {
            return Ok(None);
        }
        let value = shrink(value.clone(), &self.budget, &proves);
        let rejection = to.rejection(&value, self.receivers);
        Ok(rejection.map(|rejection| Witness::new(value, rejection)))
    }

    /// Where our own rules leave it open, others' are asked: their proof is taken, and their
    /// difference is searched for a witness.
    fn second_opinion(
        &mut self,
        arena: &mut Arena,
        texts: &mut Texts,
        steps: u32,
    ) -> Option<Inclusion> {
        let algebra = Canonical {
            budget: self.budget,
            formats: self.formats,
        };
        let read = |document: &Document<'_>, callers: Callers| {
            let closed = document.closed.as_ref();
            let closed = closed.filter(|_| callers == Callers::Declared);
            closed.map_or_else(|| document.lifted.clone(), |closed| closed.schema.clone())
        };
        let to = read(self.to, self.receivers);
        let from = match self.domain {
            Domain::Objects => objects_only(&read(self.from, self.callers)),
            Domain::Values => read(self.from, self.callers),
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
        let mut witness = None;
        let mut judge = |value: &Value| {
            witness = self.check(value).ok().flatten();
            witness.is_some()
        };
        Solver::new(arena, texts, budget).search(vec![id.holds()], &mut judge);
        witness.map(Inclusion::Not)
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
