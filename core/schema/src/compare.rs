use serde_json::Value;
use toolwarden_model::json::Pointer;

use crate::document::Document;
use crate::obstacle::Side;
use crate::policy::{Budget, Callers, Domain, Formats, Policy};
use crate::prepare::lift;
use crate::question::{Inclusion, Question};
use crate::set::{Arena, Id, Node, TypeSet, compile};
use crate::text::Texts;
use crate::verdict::{Engine, Proof, Reason, Sameness, Unknown, Verdict, Witness};

/// What a change from one schema to another means under a policy.
#[must_use]
pub fn compare(old: &Value, new: &Value, policy: Policy, budget: Budget) -> Verdict {
    let budget = Budget {
        time: budget.time.started(),
        ..budget
    };
    match Pair::new(old, new, policy.domain, policy.formats, budget) {
        Ok(mut pair) => pair.verdict(policy.callers),
        Err(unknown) => Verdict::Unknown(unknown),
    }
}

/// Whether two schemas accept the same values of a domain, undeclared keys included.
#[must_use]
pub fn sameness(before: &Value, after: &Value, domain: Domain, budget: Budget) -> Sameness {
    let policy = Policy {
        callers: Callers::Open,
        domain,
        formats: Formats::Annotate,
    };
    match compare(before, after, policy, budget) {
        Verdict::Equivalent(_) => Sameness::Same,
        Verdict::Breaking(witness) => Sameness::Narrower(witness.value),
        Verdict::Compatible {
            gained: Some(value),
            ..
        } => Sameness::Wider(value),
        Verdict::Compatible { gained: None, .. } | Verdict::Unknown(_) => Sameness::Undecided,
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
    /// From old to new.
    Forward,
    /// From new to old.
    Backward,
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
        let old = Document::new(old, Side::Old, formats, &mut arena)?;
        let new = Document::new(new, Side::New, formats, &mut arena)?;
        Ok(Self {
            old,
            new,
            arena,
            texts: Texts::new(budget),
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
        if callers == Callers::Declared
            && let Err(unknown) = self.close()
        {
            return Verdict::Unknown(unknown);
        }
        let proof = match self.inclusion(Direction::Forward, callers) {
            Inclusion::Included(proof) => proof,
            Inclusion::Not(witness) => return Verdict::Breaking(witness),
            Inclusion::Unknown(unknown) => return Verdict::Unknown(unknown),
        };
        match self.inclusion(Direction::Backward, callers) {
            Inclusion::Included(_) if callers == Callers::Open || self.are_equal() => {
                Verdict::Equivalent(proof)
            }
            // Without the time to look, it is not known whether more is accepted now.
            Inclusion::Unknown(unknown) if unknown.reason == Reason::Time => {
                Verdict::Unknown(unknown)
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
        let formats = self.formats;
        let (Ok(old), Ok(new)) = (self.old.validator(formats), self.new.validator(formats)) else {
            return Replay::default();
        };
        let mut replay = Replay::default();
        for call in calls.iter().filter(|call| old.accepts(call)) {
            replay.accepted += 1;
            if !new.accepts(call) {
                replay.rejected.push(call);
            }
        }
        replay
    }

    /// Whether the old schema accepts a value.
    pub fn accepted_before(&mut self, value: &Value) -> bool {
        let old = self.old.validator(self.formats);
        old.is_ok_and(|old| old.accepts(value))
    }

    /// The witness a value is, if the new schema rejects it; of several reasons the one nearest to a
    /// place of the schema is told.
    pub fn witness_of(&mut self, value: &Value, near: &Pointer) -> Option<Witness> {
        let new = self.new.validator(self.formats).ok()?;
        let rejection = new.rejection_near(value, near)?;
        Some(Witness::new(value.clone(), rejection))
    }

    /// Whether the old schema promised something and the new one accepts every value of the domain.
    pub fn contract_vanished(&mut self) -> bool {
        self.is_trivial(self.new.open_id) && promises(&self.old.lifted)
    }

    /// Whether the old schema accepts every value of the domain and the new one promises something.
    pub fn contract_appeared(&mut self) -> bool {
        self.is_trivial(self.old.open_id) && promises(&self.new.lifted)
    }

    fn is_trivial(&mut self, id: Id) -> bool {
        let object = self.arena.add(Node::Type(TypeSet::OBJECT));
        id == self.arena.always() || (self.domain == Domain::Objects && id == object)
    }

    fn close(&mut self) -> Result<(), Unknown> {
        self.old.close(self.domain, &mut self.arena)?;
        self.new.close(self.domain, &mut self.arena)
    }

    /// Whether both accept the same values, whoever sends them.
    fn are_equal(&mut self) -> bool {
        [Direction::Forward, Direction::Backward]
            .into_iter()
            .all(|direction| {
                let inclusion = self.inclusion(direction, Callers::Open);
                matches!(inclusion, Inclusion::Included(_))
            })
    }

    fn inclusion(&mut self, direction: Direction, callers: Callers) -> Inclusion {
        let (from, to) = match direction {
            Direction::Forward => (&mut self.old, &mut self.new),
            Direction::Backward => (&mut self.new, &mut self.old),
        };
        let question = Question {
            from,
            to,
            callers,
            // Growing means that callers may send what they could not declare before.
            receivers: match direction {
                Direction::Forward => Callers::Open,
                Direction::Backward => callers,
            },
            domain: self.domain,
            formats: self.formats,
            budget: self.budget,
        };
        question.answer(&mut self.arena, &mut self.texts)
    }
}

/// Whether a lifted schema says more than that there is an object without further keys.
fn promises(lifted: &Value) -> bool {
    let Value::Object(members) = lifted else {
        return lifted == &Value::Bool(false);
    };
    members
        .iter()
        .any(|(keyword, value)| match keyword.as_str() {
            "type" | "additionalProperties" | "unevaluatedProperties" | "$defs" => false,
            "properties" | "required" => {
                let empty_map = value.as_object().is_some_and(serde_json::Map::is_empty);
                !empty_map && value.as_array().is_none_or(|names| !names.is_empty())
            }
            _ => true,
        })
}
