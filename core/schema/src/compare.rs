use serde_json::Value;
use toolwarden_model::json::Pointer;

use crate::comparison_policy::{Callers, ComparisonPolicy, FormatMode, SearchBudget, ValueDomain};
use crate::declared::{DeclarationRule, DeclaredMembers};
use crate::inclusion::{Inclusion, InclusionQuery};
use crate::obstacle::SchemaSide;
use crate::prepare::lift;
use crate::prepared_schema::PreparedSchema;
use crate::set::{Arena, Fact, NodeId, TypeSet, compile};
use crate::text::PatternCache;
use crate::verdict::{
    Engine, Proof, SchemaEquivalence, SchemaVerdict, Unknown, UnknownReason, Witness,
};

/// What a change from one schema to another means under a policy.
#[must_use]
pub fn compare(
    old: &Value,
    new: &Value,
    policy: ComparisonPolicy,
    budget: SearchBudget,
) -> SchemaVerdict {
    let budget = SearchBudget {
        time: budget.time.start(),
        ..budget
    };
    match SchemaPair::new(old, new, policy.domain, policy.formats, budget) {
        Ok(mut pair) => pair.verdict(policy.callers),
        Err(unknown) => SchemaVerdict::Unknown(unknown),
    }
}

/// Whether two schemas accept the same values of a domain, undeclared keys included.
#[must_use]
pub fn check_equivalence(
    before: &Value,
    after: &Value,
    domain: ValueDomain,
    budget: SearchBudget,
) -> SchemaEquivalence {
    let policy = ComparisonPolicy {
        callers: Callers::Open,
        domain,
        formats: FormatMode::Annotate,
    };
    match compare(before, after, policy, budget) {
        SchemaVerdict::Equivalent(_) => SchemaEquivalence::Same,
        SchemaVerdict::Breaking(witness) => SchemaEquivalence::Narrower(witness.value),
        SchemaVerdict::Compatible {
            gained: Some(value),
            ..
        } => SchemaEquivalence::Wider(value),
        SchemaVerdict::Compatible { gained: None, .. } | SchemaVerdict::Unknown(_) => {
            SchemaEquivalence::Undecided
        }
    }
}

/// The version of the form [`canonical_text`] writes. Texts of different versions say nothing about
/// each other.
pub const CANONICAL_VERSION: u32 = 1;

/// A text that is equal for schemas that differ only in order, names of definitions, drafts,
/// annotations and common spellings; `None` if the schema cannot be read.
#[must_use]
pub fn canonical_text(schema: &Value) -> Option<String> {
    let lifted = lift(schema, FormatMode::Annotate).ok()?;
    let mut arena = Arena::default();
    let id = compile(&mut arena, &lifted).ok()?;
    arena.canonical_text(id)
}

/// Two schemas prepared once, to be compared under several policies.
#[derive(Debug)]
pub struct SchemaPair<'s> {
    old: PreparedSchema<'s>,
    new: PreparedSchema<'s>,
    arena: Arena,
    texts: PatternCache,
    domain: ValueDomain,
    formats: FormatMode,
    budget: SearchBudget,
    /// Both schemas as readers of values, made when they are first needed.
    declared: Option<Box<(DeclaredMembers, DeclaredMembers)>>,
}

/// What replaying recorded calls showed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallReplay<'c> {
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

impl<'s> SchemaPair<'s> {
    /// Reads both schemas.
    ///
    /// # Errors
    /// One of them is not a valid schema, or uses something no rule can read.
    pub fn new(
        old: &'s Value,
        new: &'s Value,
        domain: ValueDomain,
        formats: FormatMode,
        budget: SearchBudget,
    ) -> Result<Self, Unknown> {
        let mut arena = Arena::default();
        let old = PreparedSchema::new(old, SchemaSide::Old, formats, &mut arena)?;
        let new = PreparedSchema::new(new, SchemaSide::New, formats, &mut arena)?;
        Ok(Self {
            old,
            new,
            arena,
            texts: PatternCache::new(budget),
            domain,
            formats,
            budget,
            declared: None,
        })
    }

    /// What the change means for these callers.
    pub fn verdict(&mut self, callers: Callers) -> SchemaVerdict {
        if self.old.open_id == self.new.open_id || self.old.lifted == self.new.lifted {
            return SchemaVerdict::Equivalent(Proof {
                engine: Engine::Equality,
                steps: 0,
            });
        }
        if callers == Callers::Declared
            && let Err(unknown) = self.close()
        {
            return SchemaVerdict::Unknown(unknown);
        }
        let proof = match self.inclusion(Direction::Forward, callers) {
            Inclusion::Included(proof) => proof,
            Inclusion::NotIncluded(witness) => return SchemaVerdict::Breaking(witness),
            Inclusion::Unknown(unknown) => return SchemaVerdict::Unknown(unknown),
        };
        match self.inclusion(Direction::Backward, callers) {
            Inclusion::Included(_) if callers == Callers::Open || self.are_equal() => {
                SchemaVerdict::Equivalent(proof)
            }
            // Without time for the search, it is unknown whether the new schema accepts more.
            Inclusion::Unknown(unknown) if unknown.reason == UnknownReason::Time => {
                SchemaVerdict::Unknown(unknown)
            }
            Inclusion::Included(_) | Inclusion::Unknown(_) => SchemaVerdict::Compatible {
                proof,
                gained: None,
            },
            Inclusion::NotIncluded(witness) => SchemaVerdict::Compatible {
                proof,
                gained: Some(witness.value),
            },
        }
    }

    /// The recorded calls the old schema accepts and the new one rejects, in order, and how many
    /// the old one accepts.
    pub fn replay<'c>(&mut self, calls: &'c [Value]) -> CallReplay<'c> {
        let formats = self.formats;
        let (Ok(old), Ok(new)) = (self.old.validator(formats), self.new.validator(formats)) else {
            return CallReplay::default();
        };
        let mut replay = CallReplay::default();
        for call in calls.iter().filter(|call| old.accepts(call)) {
            replay.accepted += 1;
            if !new.accepts(call) {
                replay.rejected.push(call);
            }
        }
        replay
    }

    /// Whether the old schema accepts a value.
    pub fn old_accepts(&mut self, value: &Value) -> bool {
        let old = self.old.validator(self.formats);
        old.is_ok_and(|old| old.accepts(value))
    }

    /// Whether both schemas accept a value, and only the old one declares a member of it.
    pub fn loses_member(&mut self, value: &Value, member: &Pointer) -> bool {
        let formats = self.formats;
        let (Ok(old), Ok(new)) = (self.old.validator(formats), self.new.validator(formats)) else {
            return false;
        };
        if !old.accepts(value) || !new.accepts(value) {
            return false;
        }
        if self.declared.is_none() {
            let read = |schema: &Value| {
                DeclaredMembers::new(schema, formats, self.budget, accept_same_objects)
            };
            let pair = read(self.old.raw).zip(read(self.new.raw));
            self.declared = pair.map(Box::new);
        }
        let Some((old, new)) = self.declared.as_deref_mut() else {
            return false;
        };
        let mut declares = |rule| {
            let before = old.declares(value, member, rule);
            (before, before && new.declares(value, member, rule))
        };
        match declares(DeclarationRule::Effective) {
            (true, after) => !after,
            // What had no effect before is lost only if nothing mentions it any more.
            (false, _) => declares(DeclarationRule::Annotated) == (true, false),
        }
    }

    /// The witness for a value that the new schema rejects. Of several reasons, it carries the one
    /// nearest to the given place in the schema.
    pub fn witness_of(&mut self, value: &Value, near: &Pointer) -> Option<Witness> {
        let new = self.new.validator(self.formats).ok()?;
        let rejection = new.rejection_near(value, near)?;
        Some(Witness::new(value.clone(), rejection))
    }

    /// Whether the old schema promised something and the new one accepts every value of the domain,
    /// which the old one did not.
    pub fn became_unconstrained(&mut self) -> bool {
        self.is_trivial(self.new.open_id)
            && !self.is_trivial(self.old.open_id)
            && is_constraining(&self.old.lifted)
    }

    /// Whether the old schema accepts every value of the domain and the new one promises something.
    pub fn became_constrained(&mut self) -> bool {
        self.is_trivial(self.old.open_id) && is_constraining(&self.new.lifted)
    }

    fn is_trivial(&mut self, id: NodeId) -> bool {
        let object = self.arena.add(Fact::Type(TypeSet::OBJECT));
        id == self.arena.always() || (self.domain == ValueDomain::Objects && id == object)
    }

    fn close(&mut self) -> Result<(), Unknown> {
        self.old.close(self.domain, &mut self.arena)?;
        self.new.close(self.domain, &mut self.arena)
    }

    /// Whether both accept the same values, undeclared keys included.
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
        let question = InclusionQuery {
            from,
            to,
            callers,
            // The schema grew if callers may now send keys that the old one did not declare.
            receivers: match direction {
                Direction::Forward => Callers::Open,
                Direction::Backward => callers,
            },
            domain: self.domain,
            formats: self.formats,
            budget: self.budget,
        };
        question.solve(&mut self.arena, &mut self.texts)
    }
}

/// Whether it is proven that two schemas accept the same objects, undeclared keys included.
fn accept_same_objects(
    one: &Value,
    other: &Value,
    formats: FormatMode,
    budget: SearchBudget,
) -> bool {
    let pair = SchemaPair::new(one, other, ValueDomain::Objects, formats, budget);
    let verdict = pair.map(|mut pair| pair.verdict(Callers::Open));
    matches!(verdict, Ok(SchemaVerdict::Equivalent(_)))
}

/// Whether a lifted schema constrains more than that the value is an object without further keys.
fn is_constraining(lifted: &Value) -> bool {
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
