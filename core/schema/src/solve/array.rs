use std::collections::BTreeMap;

use serde_json::Value;

use super::state::State;
use super::{Judge, Outcome, Solver, settle};
use crate::set::{Constant, Id, Literal, Node};

/// The longest array that is written out.
const MAX_ITEMS: u64 = 100_000;
/// From here on an array is so long that copies of it are counted.
const LONG: u64 = 4_096;
/// The most arrays that are ruled out one by one.
const MAX_EXCLUDED: usize = 64;
/// The most items that are told apart from each other.
const MAX_DISTINCT: u64 = 256;
/// The most items one `contains` may ask for before the search gives up.
const MAX_CONTAINED: u64 = 8;

/// What the facts about arrays ask for.
#[derive(Clone, Debug, Default)]
struct Shape {
    /// Every item: the first few by their place, the others alike.
    items: Vec<(Vec<Id>, Id)>,
    min: u64,
    max: Option<u64>,
    unique: bool,
    /// At most so many items may satisfy a schema.
    limits: Vec<(Id, u64)>,
    demands: Vec<Demand>,
    /// Two items are equal.
    duplicates: bool,
}

/// Something some item must be.
#[derive(Clone, Debug)]
enum Demand {
    /// An item that violates what its place asks for.
    Violating(Vec<Id>, Id),
    /// So many items that satisfy a schema.
    Containing(Id, u64),
}

impl Demand {
    fn at(&self, place: usize) -> Literal {
        match self {
            Self::Violating(prefix, rest) => prefix.get(place).unwrap_or(rest).fails(),
            Self::Containing(schema, _) => schema.holds(),
        }
    }

    fn count(&self) -> u64 {
        match self {
            Self::Violating(..) => 1,
            Self::Containing(_, count) => *count,
        }
    }

    fn reach(&self) -> usize {
        match self {
            Self::Violating(prefix, _) => prefix.len(),
            Self::Containing(..) => 0,
        }
    }
}

/// Items that were given something to be, beside what their place asks for.
#[derive(Clone, Debug, Default)]
struct Placed {
    extra: BTreeMap<usize, Vec<Literal>>,
    equal: Option<(usize, usize)>,
}

impl Solver<'_> {
    pub(super) fn array(&mut self, state: &State, judge: Judge<'_, '_>) -> Outcome {
        let mut shapes = vec![Shape::default()];
        for literal in &state.atoms {
            let alternatives = self.readings(*literal);
            let mut combined = Vec::with_capacity(shapes.len());
            for shape in &shapes {
                combined.extend(alternatives.iter().map(|change| {
                    let mut shape = shape.clone();
                    change.apply(&mut shape);
                    shape
                }));
            }
            shapes = combined;
            if shapes.len() > 64 {
                self.obstacles.insert("contains");
                return Outcome::Unknown;
            }
        }
        let excluded = self.excluded(state);
        let mut outcome = Outcome::Empty;
        for shape in shapes {
            if shape
                .demands
                .iter()
                .any(|demand| demand.count() > MAX_CONTAINED)
            {
                self.obstacles.insert("minContains");
                outcome = outcome.or(Outcome::Unknown);
                continue;
            }
            let nowhere = Placed::default();
            let found = self.place(&shape, 0, 0, 0, &nowhere, state, &excluded, judge);
            outcome = outcome.or(found);
            if matches!(outcome, Outcome::Value(_)) {
                break;
            }
        }
        outcome
    }

    /// The ways one fact about arrays can be read.
    fn readings(&self, literal: Literal) -> Vec<Reading> {
        match (self.arena.node(literal.id), literal.holds) {
            (Node::Items { prefix, rest }, true) => vec![Reading::Items(prefix.clone(), *rest)],
            (Node::Items { prefix, rest }, false) => {
                vec![Reading::Demand(Demand::Violating(prefix.clone(), *rest))]
            }
            (Node::MinItems(min), true) => vec![Reading::Min(*min)],
            (Node::MinItems(min), false) => vec![Reading::Max(min.saturating_sub(1))],
            (Node::MaxItems(max), true) => vec![Reading::Max(*max)],
            (Node::MaxItems(max), false) => vec![Reading::Min(max.saturating_add(1))],
            (Node::UniqueItems, true) => vec![Reading::Unique],
            (Node::UniqueItems, false) => vec![Reading::Duplicates],
            (Node::Contains { schema, min, max }, true) => {
                vec![Reading::Between(*schema, *min, *max)]
            }
            (Node::Contains { schema, min, max }, false) => {
                let fewer = min
                    .checked_sub(1)
                    .map(|most| Reading::Between(*schema, 0, Some(most)));
                let more = max.map(|most| Reading::Between(*schema, most.saturating_add(1), None));
                fewer.into_iter().chain(more).collect()
            }
            _ => vec![Reading::Nothing],
        }
    }

    /// Gives each demand a place, one after the other, then builds the array. The items one demand
    /// asks for stand one after the other; different demands may be met by one item.
    #[expect(
        clippy::too_many_arguments,
        reason = "the state of one recursive search"
    )]
    fn place(
        &mut self,
        shape: &Shape,
        demand: usize,
        done: u64,
        from: usize,
        placed: &Placed,
        state: &State,
        excluded: &[Constant],
        judge: Judge<'_, '_>,
    ) -> Outcome {
        self.steps += 1;
        if self.is_spent() {
            return Outcome::Unknown;
        }
        let Some(current) = shape.demands.get(demand) else {
            return self.place_equal(shape, placed, state, excluded, judge);
        };
        if done >= current.count() {
            return self.place(shape, demand + 1, 0, 0, placed, state, excluded, judge);
        }
        let mut outcome = Outcome::Empty;
        for place in from..self.places(shape) {
            let literal = current.at(place);
            let mut goals = goals_at(shape, place);
            goals.push(literal);
            if matches!(self.solve(goals), Outcome::Empty) {
                continue;
            }
            let mut placed = placed.clone();
            placed.extra.entry(place).or_default().push(literal);
            let (done, from) = (done + 1, place + 1);
            let next = self.place(shape, demand, done, from, &placed, state, excluded, judge);
            outcome = outcome.or(next);
            if matches!(outcome, Outcome::Value(_)) {
                return outcome;
            }
        }
        outcome
    }

    /// How many places differ, or could be asked for something at once.
    fn places(&self, shape: &Shape) -> usize {
        let prefixes = shape.items.iter().map(|(prefix, _)| prefix.len());
        let reaches = shape.demands.iter().map(Demand::reach);
        let distinct = prefixes.chain(reaches).max().unwrap_or(0);
        let asked: u64 = shape.demands.iter().map(Demand::count).sum();
        let asked = usize::try_from(asked).unwrap_or(usize::MAX);
        let all = distinct
            .saturating_add(asked)
            .saturating_add(usize::from(shape.duplicates) * 2);
        let max = shape
            .max
            .map_or(usize::MAX, |max| usize::try_from(max).unwrap_or(usize::MAX));
        all.min(max)
    }

    fn place_equal(
        &mut self,
        shape: &Shape,
        placed: &Placed,
        state: &State,
        excluded: &[Constant],
        judge: Judge<'_, '_>,
    ) -> Outcome {
        if !shape.duplicates {
            return settle(self.build(shape, placed, excluded), state, judge);
        }
        let mut outcome = Outcome::Empty;
        let places = self.places(shape);
        for second in 1..places {
            for first in 0..second {
                let mut placed = placed.clone();
                placed.equal = Some((first, second));
                let found = self.build(shape, &placed, excluded);
                outcome = outcome.or(settle(found, state, judge));
                if matches!(outcome, Outcome::Value(_)) {
                    return outcome;
                }
            }
        }
        outcome
    }

    fn build(&mut self, shape: &Shape, placed: &Placed, excluded: &[Constant]) -> Outcome {
        let last = placed.extra.keys().next_back().copied();
        let last = last.max(placed.equal.map(|(_, second)| second));
        let least = last.map_or(0, |last| last as u64 + 1).max(shape.min);
        if shape.max.is_some_and(|max| least > max) {
            return Outcome::Empty;
        }
        if least > MAX_ITEMS {
            self.obstacles.insert("size");
            return Outcome::Unknown;
        }
        if shape.unique && least > MAX_DISTINCT {
            self.obstacles.insert("minItems");
            return Outcome::Unknown;
        }
        if least > LONG {
            self.has_long_values = true;
        }
        // Arrays that are ruled out as a whole leave room for longer ones.
        let mut length = least;
        loop {
            let here: Vec<&[Value]> = excluded
                .iter()
                .filter_map(|constant| constant.value.as_array())
                .filter(|items| items.len() as u64 == length)
                .map(Vec::as_slice)
                .collect();
            let outcome = self.build_avoiding(shape, placed, length, &here);
            let longest = shape.max.is_some_and(|max| length >= max);
            if outcome != Outcome::Empty || here.is_empty() || longest {
                return outcome;
            }
            if length >= MAX_ITEMS {
                self.obstacles.insert("size");
                return Outcome::Unknown;
            }
            length += 1;
        }
    }

    /// An array of a length that is none of the given ones: at some place it differs from each.
    fn build_avoiding(
        &mut self,
        shape: &Shape,
        placed: &Placed,
        length: u64,
        excluded: &[&[Value]],
    ) -> Outcome {
        self.steps += 1;
        if self.is_spent() {
            return Outcome::Unknown;
        }
        let outcome = self.build_of(shape, placed, length);
        let Outcome::Value(Value::Array(items)) = &outcome else {
            return outcome;
        };
        let built = Constant::of(&Value::Array(items.clone()));
        let is_built = |other: &&&[Value]| Constant::of(&Value::Array(other.to_vec())) == built;
        let Some(same) = excluded.iter().find(is_built) else {
            return outcome;
        };
        if excluded.len() > MAX_EXCLUDED {
            self.obstacles.insert("enum");
            return Outcome::Unknown;
        }
        let mut outcome = Outcome::Empty;
        for (place, item) in same.iter().enumerate() {
            let other = self.arena.constants(std::iter::once(Constant::of(item)));
            let mut placed = placed.clone();
            placed.extra.entry(place).or_default().push(other.fails());
            outcome = outcome.or(self.build_avoiding(shape, &placed, length, excluded));
            if matches!(outcome, Outcome::Value(_)) {
                return outcome;
            }
        }
        if outcome == Outcome::Unknown {
            self.obstacles.insert("enum");
        }
        outcome
    }

    fn build_of(&mut self, shape: &Shape, placed: &Placed, length: u64) -> Outcome {
        let mut exact = true;
        let mut certain = true;
        let mut items: Vec<Value> = Vec::new();
        let mut first: Option<Vec<Literal>> = None;
        let mut all_alike = true;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let free = Self::spared(shape, placed, length, &mut exact);
        for place in 0..length {
            let mut goals = goals_at(shape, place);
            goals.extend(placed.extra.get(&place).into_iter().flatten());
            for (schema, spared) in &free {
                if !spared.contains(&place) {
                    goals.push(schema.fails());
                }
            }
            if let Some((first, second)) = placed.equal {
                if place == second {
                    items.extend(items.get(first).cloned());
                    continue;
                }
                if place == first {
                    goals.extend(goals_at(shape, second));
                    goals.extend(placed.extra.get(&second).into_iter().flatten());
                }
            }
            goals.sort_unstable();
            goals.dedup();
            all_alike &= first.as_ref().is_none_or(|first| *first == goals);
            let alike = all_alike;
            first.get_or_insert_with(|| goals.clone());
            if shape.unique && !items.is_empty() {
                let taken = self.arena.constants(items.iter().map(Constant::of));
                goals.push(taken.fails());
            }
            match self.solve(goals) {
                Outcome::Value(value) => items.push(value),
                Outcome::Candidate(value) => {
                    certain = false;
                    items.push(value);
                }
                Outcome::Empty if exact && (!shape.unique || items.is_empty() || alike) => {
                    return Outcome::Empty;
                }
                Outcome::Empty => {
                    self.obstacles.insert(if shape.unique {
                        "uniqueItems"
                    } else {
                        "maxContains"
                    });
                    return Outcome::Unknown;
                }
                Outcome::Unknown => return Outcome::Unknown,
            }
        }
        self.built(Value::Array(items), certain)
    }

    /// The places that may satisfy a schema of which only so many items may.
    fn spared(
        shape: &Shape,
        placed: &Placed,
        length: usize,
        exact: &mut bool,
    ) -> Vec<(Id, Vec<usize>)> {
        let mut spared = Vec::new();
        for (schema, most) in &shape.limits {
            let most = usize::try_from(*most).unwrap_or(usize::MAX);
            if length <= most {
                continue;
            }
            let asked = placed.extra.iter();
            let mut places: Vec<usize> = asked
                .filter(|(_, literals)| literals.contains(&schema.holds()))
                .map(|(place, _)| *place)
                .collect();
            let others: Vec<usize> = (0..length)
                .filter(|place| !places.contains(place))
                .collect();
            places.extend(others.into_iter().take(most.saturating_sub(places.len())));
            places.truncate(most);
            // With none allowed there is nothing to choose; otherwise other places might do.
            *exact &= most == 0;
            spared.push((*schema, places));
        }
        spared
    }

    /// The values a state rules out one by one.
    pub(super) fn excluded(&self, state: &State) -> Vec<Constant> {
        let mut excluded = Vec::new();
        for literal in state.atoms.iter().filter(|literal| !literal.holds) {
            if let Node::Enum(constants) = self.arena.node(literal.id) {
                excluded.extend(constants.iter().cloned());
            }
        }
        excluded
    }
}

fn goals_at(shape: &Shape, place: usize) -> Vec<Literal> {
    let items = shape.items.iter();
    items
        .map(|(prefix, rest)| prefix.get(place).unwrap_or(rest).holds())
        .collect()
}

/// One way to read a fact about arrays.
#[derive(Clone, Debug)]
enum Reading {
    Items(Vec<Id>, Id),
    Min(u64),
    Max(u64),
    Unique,
    Duplicates,
    Demand(Demand),
    /// So many items satisfy a schema.
    Between(Id, u64, Option<u64>),
    Nothing,
}

impl Reading {
    fn apply(&self, shape: &mut Shape) {
        match self {
            Self::Items(prefix, rest) => shape.items.push((prefix.clone(), *rest)),
            Self::Min(min) => shape.min = shape.min.max(*min),
            Self::Max(max) => shape.max = Some(shape.max.map_or(*max, |known| known.min(*max))),
            Self::Unique => shape.unique = true,
            Self::Duplicates => shape.duplicates = true,
            Self::Demand(demand) => shape.demands.push(demand.clone()),
            Self::Between(schema, min, max) => {
                if *min > 0 {
                    shape.demands.push(Demand::Containing(*schema, *min));
                }
                shape.limits.extend(max.map(|max| (*schema, max)));
            }
            Self::Nothing => {}
        }
    }
}
