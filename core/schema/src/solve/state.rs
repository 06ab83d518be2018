use std::collections::BTreeSet;

use super::{Outcome, Solver};
use crate::set::{Id, Literal, Node, TypeSet};

/// How deep the types of a fact are looked for in its parts.
const MAX_NESTING: u32 = 40;
/// How many alternatives or open choices make it worth to ask first which exclude each other.
const CROWDED: usize = 3;
/// The most branches that are asked one by one whether they exclude each other.
const MAX_EXCLUSIVE: usize = 64;

/// How soon a fact is looked at: whether it denies something, and in how many ways it can hold.
type Rank = (bool, usize);

/// A conjunction on its way to being taken apart.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) pending: Vec<Literal>,
    pub(super) types: TypeSet,
    /// Facts about values of one type, and enumerations the value must not be in.
    pub(super) atoms: Vec<Literal>,
    /// Enumerations the value must be in.
    pub(super) enums: Vec<Id>,
    /// Facts that hold in more than one way.
    pub(super) choices: Vec<Literal>,
    /// Facts no rule reads.
    pub(super) opaque: Vec<Literal>,
    /// The ways that were chosen so far.
    pub(super) chosen: Vec<Literal>,
    seen: BTreeSet<Literal>,
}

impl State {
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
pub(super) enum Choice {
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
    /// Takes apart what holds in one way only; false where that contradicts itself.
    pub(super) fn saturate(&mut self, state: &mut State) -> bool {
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
                (Node::Type(_), _) => {}
                (Node::All(parts), true) => state.pending.extend(parts.iter().map(|id| id.holds())),
                (Node::Any(parts), false) => {
                    state.pending.extend(parts.iter().map(|id| id.fails()));
                }
                (Node::Not(inner), holds) => state.pending.push(Literal {
                    id: *inner,
                    holds: !holds,
                }),
                (Node::Definition(number), holds) => {
                    // A definition without a body refers to itself and says nothing.
                    if let Some(body) = self.arena.definition(*number) {
                        state.pending.push(Literal { id: body, holds });
                    }
                }
                (Node::All(_) | Node::Any(_) | Node::One(_), _) => state.choices.push(literal),
                (Node::Enum(_), true) => state.enums.push(literal.id),
                (Node::Opaque { keyword, .. }, _) => {
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

    /// Which fact that holds in more than one way to look at next. Those that hold already are
    /// dropped.
    pub(super) fn choice(&mut self, state: &mut State) -> Choice {
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
            // Looking at many ways is work too.
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
                return Choice::Contradiction;
            }
            kept.push(literal);
            // What is forced comes first. Then which branch of a union the value takes: that settles
            // most of what is denied, of which there may be a lot.
            let rank = (ways.len() > 1 && !literal.holds, ways.len());
            if best.as_ref().is_none_or(|(known, _, _)| rank < *known) {
                best = Some((rank, kept.len() - 1, ways));
            }
        }
        state.choices = kept;
        let Some((_, at, mut ways)) = best else {
            return Choice::Done;
        };
        state.choices.remove(at);
        if ways.len() == 1 {
            return Choice::Forced(ways.pop().unwrap_or_default());
        }
        Choice::Between(ways)
    }

    /// Whether what was chosen leaves no room for what the literal denies.
    fn is_implied(&mut self, literal: Literal, chosen: &[Literal]) -> bool {
        !literal.holds
            && matches!(self.arena.node(literal.id), Node::All(_))
            && chosen
                .iter()
                .any(|way| self.are_disjoint(*way, literal.not()))
    }

    /// Whether no value makes both true. Branches of a union are told apart by a constant more often
    /// than not, which is found quickly and remembered.
    fn are_disjoint(&mut self, first: Literal, second: Literal) -> bool {
        self.solve(vec![first, second]) == Outcome::Empty
    }

    /// The ways in which a fact can hold.
    fn ways(&mut self, literal: Literal) -> Vec<Vec<Literal>> {
        if let Node::One(parts) = self.arena.node(literal.id)
            && (CROWDED..=MAX_EXCLUSIVE).contains(&parts.len())
        {
            let parts = parts.clone();
            return self.ways_of_one(&parts, literal.holds);
        }
        match (self.arena.node(literal.id), literal.holds) {
            (Node::Any(parts), true) => parts.iter().map(|id| vec![id.holds()]).collect(),
            (Node::All(parts), false) => parts.iter().map(|id| vec![id.fails()]).collect(),
            (Node::One(parts), true) => (0..parts.len())
                .map(|chosen| {
                    let literals = parts.iter().enumerate().map(|(index, id)| Literal {
                        id: *id,
                        holds: index == chosen,
                    });
                    literals.collect()
                })
                .collect(),
            (Node::One(parts), false) => {
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

    /// The ways in which one of many holds, or does not: branches that exclude each other need not be
    /// denied, and cannot hold together.
    fn ways_of_one(&mut self, parts: &[Id], holds: bool) -> Vec<Vec<Literal>> {
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
            (Node::All(parts), true) => (parts.clone(), true, true),
            (Node::All(parts), false) => (parts.clone(), false, false),
            (Node::Any(parts) | Node::One(parts), true) => (parts.clone(), true, false),
            (Node::Any(parts), false) => (parts.clone(), false, true),
            (Node::Not(inner), _) => (vec![*inner], !holds, true),
            (Node::Definition(number), _) => {
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
        // Inside a circle the depth limit decides, which is no answer to remember.
        if depth == 0 || types != TypeSet::ALL {
            self.types.insert(literal, types);
        }
        types
    }
}

/// The types for which a fact without parts is true, or is not.
fn own_types(node: &Node, holds: bool) -> TypeSet {
    match (node, holds) {
        (Node::Type(types), true) => *types,
        (Node::Type(types), false) => types.complement(),
        (Node::Enum(constants), true) => constants
            .iter()
            .fold(TypeSet::NONE, |types, c| types.or(TypeSet::of(&c.value))),
        (Node::Opaque { .. } | Node::Enum(_) | Node::One(_), _) | (_, true) => TypeSet::ALL,
        (_, false) => domain(node),
    }
}

/// The types a fact says something about.
fn domain(node: &Node) -> TypeSet {
    match node {
        Node::AtLeast { .. } | Node::AtMost { .. } | Node::MultipleOf(_) => TypeSet::NUMBER,
        Node::MinLength(_) | Node::MaxLength(_) | Node::Pattern(_) | Node::Format(_) => {
            TypeSet::STRING
        }
        Node::Items { .. }
        | Node::Contains { .. }
        | Node::MinItems(_)
        | Node::MaxItems(_)
        | Node::UniqueItems => TypeSet::ARRAY,
        Node::Properties(_)
        | Node::Required(_)
        | Node::Names(_)
        | Node::MinProperties(_)
        | Node::MaxProperties(_) => TypeSet::OBJECT,
        Node::Type(_)
        | Node::Enum(_)
        | Node::All(_)
        | Node::Any(_)
        | Node::One(_)
        | Node::Not(_)
        | Node::Definition(_)
        | Node::Opaque { .. } => TypeSet::ALL,
    }
}
