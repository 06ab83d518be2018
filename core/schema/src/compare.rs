use serde_json::Value;
use toolwarden_model::json::{Object, Pointer};

use crate::algebra::{Algebra, Canonical};
use crate::obstacle::{Obstacle, Side, places};
use crate::policy::{Budget, Callers, Domain, Formats, Policy};
use crate::prepare::{Draft, PrepareError, close, lift};
use crate::set::{Arena, CompileError, Id, Literal, Node, TypeSet, compile};
use crate::solve::{Outcome, Solver};
use crate::text::Texts;
use crate::verdict::{Engine, Proof, Reason, Unknown, Verdict, Witness};
use crate::witness::{Schema, shrink};

/// What a change from one schema to another means under a policy.
#[must_use]
pub fn compare(old: &Value, new: &Value, policy: Policy, budget: Budget) -> Verdict {
    match Pair::new(old, new, policy.domain, policy.formats, budget) {
        Ok(mut pair) => pair.verdict(policy.callers),
        Err(unknown) => Verdict::Unknown(unknown),
    }
}

/// The version of the form [`canonical_text`] writes. Texts of different versions say nothing about
/// each other.
pub const CANONICAL_VERSION: u32 = 1;

/// A text that is equal for schemas that mean the same up to order, names of definitions, drafts,
/// annotations and common spellings; nothing where a schema cannot be read.
#[must_use]
pub fn canonical_text(schema: &Value) -> Option<String> {
    let lifted = lift(schema, Formats::Annotate).ok()?;
    let mut arena = Arena::default();
    let id = compile(&mut arena, &lifted).ok()?;
    arena.canonical_text(id)
}

/// Two schemas made ready once, to be compared under several policies.
#[derive(Debug)]
pub struct Pair<'s> {
    old: Document<'s>,
    new: Document<'s>,
    arena: Arena,
    texts: Texts,
    domain: Domain,
    formats: Formats,
    budget: Budget,
}

/// One schema in the forms a comparison needs.
#[derive(Debug)]
struct Document<'s> {
    raw: &'s Value,
    lifted: Value,
    closed: Value,
    open_id: Id,
    closed_id: Id,
    /// Whether closing may let in what was rejected before.
    closing_widens: bool,
    validators: Option<Result<Validators, String>>,
}

#[derive(Debug)]
struct Validators {
    raw: Schema,
    lifted: Schema,
    closed: Schema,
}

impl<'s> Pair<'s> {
    /// Reads both schemas.
    ///
    /// # Errors
    /// One of them is no schema, or uses something no rule can read.
    pub fn new(
        old: &'s Value,
        new: &'s Value,
        domain: Domain,
        formats: Formats,
        budget: Budget,
    ) -> Result<Self, Unknown> {
        let mut arena = Arena::default();
        let old = Document::new(old, Side::Old, domain, formats, &mut arena)?;
        let new = Document::new(new, Side::New, domain, formats, &mut arena)?;
        Ok(Self {
            old,
            new,
            arena,
            texts: Texts::new(budget.states),
            domain,
            formats,
            budget,
        })
    }

    /// What the change means for these callers.
    pub fn verdict(&mut self, callers: Callers) -> Verdict {
        if self.old.open_id == self.new.open_id || self.old.lifted == self.new.lifted {
            return Verdict::Equivalent(Proof {
                engine: Engine::Equality,
                steps: 0,
            });
        }
        let forward = self.inclusion(Direction::Forward, callers);
        let proof = match forward {
            Inclusion::Included(proof) => proof,
            Inclusion::Not(witness) => return Verdict::Breaking(witness),
            Inclusion::Unknown(unknown) => return Verdict::Unknown(unknown),
        };
        let open = match callers {
            Callers::Open => true,
            Callers::Declared => matches!(
                self.inclusion(Direction::Forward, Callers::Open),
                Inclusion::Included(_)
            ),
        };
        let backward = self.inclusion(Direction::Backward, callers);
        match backward {
            Inclusion::Included(_) if open => {
                let equal = callers == Callers::Open
                    || matches!(
                        self.inclusion(Direction::Backward, Callers::Open),
                        Inclusion::Included(_)
                    );
                if equal {
                    Verdict::Equivalent(proof)
                } else {
                    Verdict::Compatible {
                        proof,
                        gained: None,
                    }
                }
            }
            Inclusion::Included(_) | Inclusion::Unknown(_) => Verdict::Compatible {
                proof,
                gained: None,
            },
            Inclusion::Not(witness) => Verdict::Compatible {
                proof,
                gained: Some(witness.value),
            },
        }
    }

    /// The recorded calls the old schema accepts and the new one rejects, in order, and how many
    /// the old one accepts.
    pub fn replay<'c>(&mut self, calls: &'c [Value]) -> Replay<'c> {
        let (Ok(old), Ok(new)) = (
            validators(&mut self.old, self.formats),
            validators(&mut self.new, self.formats),
        ) else {
            return Replay::default();
        };
        let mut replay = Replay::default();
        for call in calls {
            if !old.raw.accepts(call) {
                continue;
            }
            replay.accepted += 1;
            if !new.raw.accepts(call) {
                replay.rejected.push(call);
            }
        }
        replay
    }

    /// Whether the new schema accepts every value of the domain, and the old one does not.
    pub fn contract_vanished(&mut self) -> bool {
        self.is_trivial(self.new.open_id) && !self.is_trivial(self.old.open_id)
    }

    /// Whether the old schema accepts every value of the domain, and the new one does not.
    pub fn contract_appeared(&mut self) -> bool {
        self.is_trivial(self.old.open_id) && !self.is_trivial(self.new.open_id)
    }

    fn is_trivial(&mut self, id: Id) -> bool {
        let object = self.arena.add(Node::Type(TypeSet::OBJECT));
        id == self.arena.always() || (self.domain == Domain::Objects && id == object)
    }

    /// The witness a value is, if the new schema rejects it.
    pub fn witness_of(&mut self, call: &Value) -> Option<Witness> {
        let new = validators(&mut self.new, self.formats).ok()?;
        let rejection = new.raw.rejection(call)?;
        Some(Witness::new(call.clone(), rejection))
    }

    fn inclusion(&mut self, direction: Direction, callers: Callers) -> Inclusion {
        let (from, to) = match direction {
            Direction::Forward => (&mut self.old, &mut self.new),
            Direction::Backward => (&mut self.new, &mut self.old),
        };
        // Growing means that callers may send what they could not declare before.
        let narrow_target = direction == Direction::Backward && callers == Callers::Declared;
        let mut goals: Vec<Literal> = match callers {
            Callers::Open => vec![from.open_id.holds()],
            Callers::Declared if from.closing_widens => {
                vec![from.closed_id.holds(), from.open_id.holds()]
            }
            Callers::Declared => vec![from.closed_id.holds()],
        };
        let target = if narrow_target {
            to.closed_id
        } else {
            to.open_id
        };
        goals.push(target.fails());
        if self.domain == Domain::Objects {
            goals.push(self.arena.add(Node::Type(TypeSet::OBJECT)).holds());
        }
        let question = Question {
            from,
            to,
            callers,
            narrow_target,
            formats: self.formats,
            domain: self.domain,
        };
        question.answer(goals, &mut self.arena, &mut self.texts, self.budget)
    }
}

/// What replaying recorded calls showed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replay<'c> {
    /// Calls the old schema accepts.
    pub accepted: usize,
    /// Those of them the new schema rejects.
    pub rejected: Vec<&'c Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

enum Inclusion {
    Included(Proof),
    Not(Witness),
    Unknown(Unknown),
}

/// Whether every value of one document is a value of the other.
struct Question<'q, 's> {
    from: &'q mut Document<'s>,
    to: &'q mut Document<'s>,
    callers: Callers,
    narrow_target: bool,
    formats: Formats,
    domain: Domain,
}

impl Question<'_, '_> {
    fn answer(
        mut self,
        goals: Vec<Literal>,
        arena: &mut Arena,
        texts: &mut Texts,
        budget: Budget,
    ) -> Inclusion {
        let mut solver = Solver::new(arena, texts, budget);
        let (mut witness, mut refused) = (None, None);
        let formats = self.formats;
        let mut judge = {
            let (from, to) = (&mut *self.from, &mut *self.to);
            let (callers, narrow, domain) = (self.callers, self.narrow_target, self.domain);
            let (witness, refused) = (&mut witness, &mut refused);
            move |value: &Value| -> bool {
                match check(value, from, to, callers, narrow, domain, formats, budget) {
                    Ok(found) => {
                        let agreed = found.is_some();
                        *witness = found;
                        agreed
                    }
                    Err(message) => {
                        *refused = Some(message);
                        false
                    }
                }
            }
        };
        let outcome = solver.search(goals, &mut judge);
        let steps = solver.steps();
        if let Outcome::Empty = outcome {
            return Inclusion::Included(Proof {
                engine: Engine::Search,
                steps,
            });
        }
        let obstacles: Vec<&'static str> = solver.obstacles().iter().copied().collect();
        if let Some(witness) = witness {
            return Inclusion::Not(witness);
        }
        if let Some(message) = refused {
            return Inclusion::Unknown(Unknown {
                reason: Reason::Invalid(message),
                obstacles: Vec::new(),
            });
        }
        if let Some(inclusion) = self.second_opinion(arena, texts, budget, steps) {
            return inclusion;
        }
        let mut found = places(self.from.raw, Side::Old, &obstacles);
        found.extend(places(self.to.raw, Side::New, &obstacles));
        let out_of_budget = obstacles
            .iter()
            .any(|name| matches!(*name, "budget" | "depth"));
        Inclusion::Unknown(Unknown {
            reason: if out_of_budget {
                Reason::Budget
            } else {
                Reason::Undecided
            },
            obstacles: found,
        })
    }

    /// Where our own rules leave it open, others' are asked: their difference is searched for a
    /// witness, and their proof is taken.
    fn second_opinion(
        &mut self,
        arena: &mut Arena,
        texts: &mut Texts,
        budget: Budget,
        steps: u32,
    ) -> Option<Inclusion> {
        let algebra = Canonical {
            budget,
            formats: self.formats,
        };
        let from = match self.callers {
            Callers::Open => &self.from.lifted,
            Callers::Declared => &self.from.closed,
        };
        let to = if self.narrow_target {
            &self.to.closed
        } else {
            &self.to.lifted
        };
        let from = match self.domain {
            Domain::Objects => objects_only(from),
            Domain::Values => from.clone(),
        };
        if algebra.includes(&from, to) == Some(true) {
            return Some(Inclusion::Included(Proof {
                engine: Engine::Algebra,
                steps,
            }));
        }
        let difference = algebra.difference(&from, to)?;
        let lifted = lift(&difference, self.formats).ok()?;
        let id = compile(arena, &lifted).ok()?;
        let mut witness = None;
        let (callers, narrow, domain, formats) =
            (self.callers, self.narrow_target, self.domain, self.formats);
        let (from, to) = (&mut *self.from, &mut *self.to);
        let mut judge = |value: &Value| {
            witness = check(value, from, to, callers, narrow, domain, formats, budget)
                .ok()
                .flatten();
            witness.is_some()
        };
        Solver::new(arena, texts, budget).search(vec![id.holds()], &mut judge);
        witness.map(Inclusion::Not)
    }
}

/// The witness a value makes once the validator agrees, as small as it gets.
#[expect(clippy::too_many_arguments, reason = "one question in all its parts")]
fn check(
    value: &Value,
    from: &mut Document<'_>,
    to: &mut Document<'_>,
    callers: Callers,
    narrow_target: bool,
    domain: Domain,
    formats: Formats,
    budget: Budget,
) -> Result<Option<Witness>, String> {
    let from = validators(from, formats)?;
    let to = validators(to, formats)?;
    let proves = |value: &Value| {
        (domain == Domain::Values || value.is_object())
            && from.accepts(value, callers)
            && !to.accepts(
                value,
                if narrow_target {
                    Callers::Declared
                } else {
                    Callers::Open
                },
            )
    };
    if !proves(value) {
        return Ok(None);
    }
    let value = shrink(value.clone(), budget.shrinks, &proves);
    let rejection = to
        .raw
        .rejection(&value)
        .or_else(|| to.closed.rejection(&value));
    Ok(rejection.map(|rejection| Witness::new(value, rejection)))
}

fn validators<'d>(
    document: &'d mut Document<'_>,
    formats: Formats,
) -> Result<&'d Validators, String> {
    let built = document.validators.get_or_insert_with(|| {
        Ok(Validators {
            raw: Schema::new(document.raw, Draft::of(document.raw), formats)?,
            lifted: Schema::new(&document.lifted, Draft::Draft2020, formats)?,
            closed: Schema::new(&document.closed, Draft::Draft2020, formats)?,
        })
    });
    built.as_ref().map_err(Clone::clone)
}

impl Validators {
    /// Both readings of the schema must agree, the one it was written in and ours.
    fn accepts(&self, value: &Value, callers: Callers) -> bool {
        let open = self.raw.accepts(value) && self.lifted.accepts(value);
        match callers {
            Callers::Open => open,
            Callers::Declared => open && self.closed.accepts(value),
        }
    }
}

impl<'s> Document<'s> {
    fn new(
        raw: &'s Value,
        side: Side,
        domain: Domain,
        formats: Formats,
        arena: &mut Arena,
    ) -> Result<Self, Unknown> {
        let lifted = lift(raw, formats).map_err(|error| unreadable(error, side))?;
        let closed = close(&lifted, domain);
        let out_of_range = |error: CompileError| Unknown {
            obstacles: vec![Obstacle {
                side,
                pointer: Pointer::root(),
                keyword: error.keyword.clone(),
            }],
            reason: Reason::Invalid(error.to_string()),
        };
        let open_id = compile(arena, &lifted).map_err(out_of_range)?;
        let closed_id = if closed == lifted {
            open_id
        } else {
            compile(arena, &closed).map_err(out_of_range)?
        };
        let closing_widens = closed != lifted && !places(&lifted, side, &["oneOf"]).is_empty();
        Ok(Self {
            raw,
            lifted,
            closed,
            open_id,
            closed_id,
            closing_widens,
            validators: None,
        })
    }
}

fn unreadable(error: PrepareError, side: Side) -> Unknown {
    let message = error.to_string();
    let (pointer, keyword) = match error {
        PrepareError::Invalid {
            pointer, keyword, ..
        } => (pointer, keyword),
        PrepareError::NotASchema { pointer, .. } => (pointer, String::new()),
        PrepareError::Unresolved { pointer, .. } => (pointer, "$ref".to_owned()),
        PrepareError::Dynamic { pointer, keyword } => (pointer, keyword.to_owned()),
        PrepareError::TooLarge => (Pointer::root(), String::new()),
    };
    Unknown {
        reason: Reason::Invalid(message),
        obstacles: vec![Obstacle {
            side,
            pointer,
            keyword,
        }],
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
