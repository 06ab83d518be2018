use std::collections::BTreeSet;

use super::{SearchOutcome, Solver};
use crate::set::{Fact, Literal, NodeId, TypeSet};

/// How deep the parts of a fact are searched for its types.
const MAX_NESTING: u32 = 40;
/// From how many alternatives or open choices it pays to check first which exclude each other.
const CROWDED: usize = 3;
/// The most branches that are checked one by one for mutual exclusion.
const MAX_EXCLUSIVE: usize = 64;

/// The priority of a fact: whether it is a negation, and in how many ways it can hold.
type Rank = (bool, usize);

/// A conjunction that is being decomposed.
#[derive(Clone, Debug)]
pub(super) struct Conjunction {
    pub(super) pending: Vec<Literal>,
    pub(super) types: TypeSet,
    /// Facts about values of one type, and enumerations the value must not be in.
    pub(super) atoms: Vec<Literal>,
    /// Enumerations the value must be in.
    pub(super) enums: Vec<NodeId>,
    /// Facts that hold in more than one way.
    pub(super) choices: Vec<Literal>,
    /// Facts no rule reads.
    pub(super) opaque: Vec<Literal>,
    /// The ways that were chosen so far.
    pub(super) chosen: Vec<Literal>,
    seen: BTreeSet<Literal>,
}

impl Conjunction {
    pub(super) fn new(goals: Vec<Literal>) -> Self {
        Self {
            pending: goals,
            types: TypeSet::ALL,
            atoms: Vec::new(),
            enums: Vec::new(),
            choices: Vec::new(),
            opaque: Vec::new(),
            chosen: Vec::new(),
            seen: BTreeSet::new(),
        }
    }
}

/// What the facts that hold in more than one way leave to do.
pub(super) enum NextChoice {
    /// One of them holds in no way.
    Contradiction,
    /// One of them holds in one way only.
    Forced(Vec<Literal>),
    /// The one with the fewest ways.
    Between(Vec<Vec<Literal>>),
    /// None is left.
    Done,
}

impl Solver<'_> {
    /// Decomposes the facts that hold in one way only. Returns false on a contradiction.
    pub(super) fn saturate(&mut self, state: &mut Conjunction) -> bool {
        while let Some(literal) = state.pending.pop() {
            if state.seen.contains(&literal.not()) {
                return false;
            }
            if !state.seen.insert(literal) {
                continue;
            }
            state.types = state.types.and(self.types_of(literal, 0));
            if state.types.is_empty() {
                return false;
            }
            match (self.arena.node(literal.id), literal.holds) {
                (Fact::Type(_), _) => {}
                (Fact::All(parts), true) => state.pending.extend(parts.iter().map(|id| id.holds())),
                (Fact::Any(parts), false) => {
                    state.pending.extend(parts.iter().map(|id| id.fails()));
                }
                (Fact::Not(inner), holds) => state.pending.push(Literal {
                    id: *inner,
                    holds: !holds,
                }),
                (Fact::Definition(number), holds) => {
                    // A definition without a body refers to itself and says nothing.
                    if let Some(body) = self.arena.definition(*number) {
                        state.pending.push(Literal { id: body, holds });
                    }
                }
                (Fact::All(_) | Fact::Any(_) | Fact::One(_), _) => state.choices.push(literal),
                (Fact::Enum(_), true) => state.enums.push(literal.id),
                (Fact::Opaque { keyword, .. }, _) => {
                    self.obstacles.insert(keyword);
                    state.opaque.push(literal);
                }
                _ => state.atoms.push(literal),
            }
        }
        if state.types.within(TypeSet::NUMBER) || TypeSet::KINDS.contains(&state.types) {
            let types = state.types;
            let arena = &*self.arena;
            state
                .atoms
                .retain(|literal| !types.and(domain(arena.node(literal.id))).is_empty());
        }
        true
    }

    /// Chooses the next fact that holds in more than one way. Facts that already hold are dropped.
    pub(super) fn next_choice(&mut self, state: &mut Conjunction) -> NextChoice {
        let mut best: Option<(Rank, usize, Vec<Vec<Literal>>)> = None;
        let mut kept = Vec::new();
        let open = std::mem::take(&mut state.choices);
        let crowded = open.len() >= CROWDED;
        for literal in open {
            if crowded && self.is_implied(literal, &state.chosen) {
                continue;
            }
            let mut holds_already = false;
            let mut ways = Vec::new();
            let possible = self.ways(literal);
            // Examining many ways also costs time.
            self.steps += u32::try_from(possible.len() / 16).unwrap_or(u32::MAX);
            for way in possible {
                if way.iter().all(|part| state.seen.contains(part)) {
                    holds_already = true;
                    break;
                }
                let possible = way.iter().all(|part| {
                    !state.seen.contains(&part.not())
                        && !self.types_of(*part, 0).and(state.types).is_empty()
                });
                if possible {
                    ways.push(way);
                }
            }
            if holds_already {
                continue;
            }
            if ways.is_empty() {
                return NextChoice::Contradiction;
            }
            kept.push(literal);
            // Forced facts come first, then the choice of a union's branch: that choice settles most
            // of the negations, of which there may be many.
            let rank = (ways.len() > 1 && !literal.holds, ways.len());
            if best.as_ref().is_none_or(|(known, _, _)| rank < *known) {
                best = Some((rank, kept.len() - 1, ways));
            }
        }
        state.choices = kept;
        let Some((_, at, mut ways)) = best else {
            return NextChoice::Done;
        };
        state.choices.remove(at);
        if ways.len() == 1 {
            return NextChoice::Forced(ways.pop().unwrap_or_default());
        }
        NextChoice::Between(ways)
    }

    /// Whether the chosen literals already imply the negation.
    fn is_implied(&mut self, literal: Literal, chosen: &[Literal]) -> bool {
        !literal.holds
            && matches!(self.arena.node(literal.id), Fact::All(_))
            && chosen
                .iter()
                .any(|way| self.are_disjoint(*way, literal.not()))
    }

    /// Whether no value makes both true. A constant usually distinguishes the branches of a union;
    /// the solver finds that quickly and remembers it.
    fn are_disjoint(&mut self, first: Literal, second: Literal) -> bool {
        self.solve(vec![first, second]) == SearchOutcome::Empty
    }

    /// The ways in which a fact can hold.
    fn ways(&mut self, literal: Literal) -> Vec<Vec<Literal>> {
        if let Fact::One(parts) = self.arena.node(literal.id)
            && (CROWDED..=MAX_EXCLUSIVE).contains(&parts.len())
        {
            let parts = parts.clone();
            return self.ways_of_one(&parts, literal.holds);
        }
        match (self.arena.node(literal.id), literal.holds) {
            (Fact::Any(parts), true) => parts.iter().map(|id| vec![id.holds()]).collect(),
            (Fact::All(parts), false) => parts.iter().map(|id| vec![id.fails()]).collect(),
            (Fact::One(parts), true) => (0..parts.len())
                .map(|chosen| {
                    let literals = parts.iter().enumerate().map(|(index, id)| Literal {
                        id: *id,
                        holds: index == chosen,
                    });
                    literals.collect()
                })
                .collect(),
            (Fact::One(parts), false) => {
                let mut ways = vec![parts.iter().map(|id| id.fails()).collect()];
                for (index, first) in parts.iter().enumerate() {
                    let later = parts.iter().skip(index + 1);
                    ways.extend(later.map(|second| vec![first.holds(), second.holds()]));
                }
                ways
            }
            _ => Vec::new(),
        }
    }

    /// The ways in which exactly one of the parts holds, or does not. Mutually exclusive branches cannot
    /// hold together, so they need not be negated.
    fn ways_of_one(&mut self, parts: &[NodeId], holds: bool) -> Vec<Vec<Literal>> {
        let mut overlapping: Vec<(usize, usize)> = Vec::new();
        for (index, first) in parts.iter().enumerate() {
            for (other, second) in parts.iter().enumerate().skip(index + 1) {
                if !self.are_disjoint(first.holds(), second.holds()) {
                    overlapping.push((index, other));
                }
            }
        }
        if holds {
            let ways = parts.iter().enumerate().map(|(chosen, id)| {
                let mut way = vec![id.holds()];
                for (first, second) in &overlapping {
                    let other = match chosen {
                        it if it == *first => second,
                        it if it == *second => first,
                        _ => continue,
                    };
                    way.extend(parts.get(*other).map(|id| id.fails()));
                }
                way
            });
            return ways.collect();
        }
        let mut ways = vec![parts.iter().map(|id| id.fails()).collect()];
        for (first, second) in overlapping {
            let both = [first, second].into_iter().filter_map(|at| parts.get(at));
            ways.push(both.map(|id| id.holds()).collect());
        }
        ways
    }

    /// The types a value can have for which a literal is true; never too few.
    fn types_of(&mut self, literal: Literal, depth: u32) -> TypeSet {
        if let Some(known) = self.types.get(&literal) {
            return *known;
        }
        if depth > MAX_NESTING {
            return TypeSet::ALL;
        }
        let holds = literal.holds;
        let (parts, holds, every) = match (self.arena.node(literal.id), holds) {
            (Fact::All(parts), true) => (parts.clone(), true, true),
            (Fact::All(parts), false) => (parts.clone(), false, false),
            (Fact::Any(parts) | Fact::One(parts), true) => (parts.clone(), true, false),
            (Fact::Any(parts), false) => (parts.clone(), false, true),
            (Fact::Not(inner), _) => (vec![*inner], !holds, true),
            (Fact::Definition(number), _) => {
                let body = self.arena.definition(*number);
                (body.into_iter().collect(), holds, true)
            }
            (node, _) => {
                let types = own_types(node, holds);
                self.types.insert(literal, types);
                return types;
            }
        };
        let start = if every { TypeSet::ALL } else { TypeSet::NONE };
        let types = parts.into_iter().fold(start, |types, id| {
            let part = self.types_of(Literal { id, holds }, depth + 1);
            if every {
                types.and(part)
            } else {
                types.or(part)
            }
        });
        // Inside a reference cycle the depth limit decides; do not cache that answer.
        if depth == 0 || types != TypeSet::ALL {
            self.types.insert(literal, types);
        }
        types
    }
}

/// The types for which a fact without parts is true, or is not.
fn own_types(node: &Fact, holds: bool) -> TypeSet {
    match (node, holds) {
        (Fact::Type(types), true) => *types,
        (Fact::Type(types), false) => types.complement(),
        (Fact::Enum(constants), true) => constants
            .iter()
            .fold(TypeSet::NONE, |types, c| types.or(TypeSet::of(&c.value))),
        (Fact::Opaque { .. } | Fact::Enum(_) | Fact::One(_), _) | (_, true) => TypeSet::ALL,
        (_, false) => domain(node),
    }
}

/// The types a fact says something about.
fn domain(node: &Fact) -> TypeSet {
    match node {
        Fact::AtLeast { .. } | Fact::AtMost { .. } | Fact::MultipleOf(_) => TypeSet::NUMBER,
        Fact::MinLength(_) | Fact::MaxLength(_) | Fact::Pattern(_) | Fact::Format(_) => {
            TypeSet::STRING
        }
        Fact::Items { .. }
        | Fact::Contains { .. }
        | Fact::MinItems(_)
        | Fact::MaxItems(_)
        | Fact::UniqueItems => TypeSet::ARRAY,
        Fact::Properties(_)
        | Fact::Required(_)
        | Fact::Names(_)
        | Fact::MinProperties(_)
        | Fact::MaxProperties(_) => TypeSet::OBJECT,
        Fact::Type(_)
        | Fact::Enum(_)
        | Fact::All(_)
        | Fact::Any(_)
        | Fact::One(_)
        | Fact::Not(_)
        | Fact::Definition(_)
        | Fact::Opaque { .. } => TypeSet::ALL,
    }
}
