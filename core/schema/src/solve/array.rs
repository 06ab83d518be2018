use std::collections::BTreeMap;

use serde_json::Value;

use super::conjunction::Conjunction;
use super::{SearchOutcome, Solver, ValueCheck, finish_branch};
use crate::set::{Constant, Fact, Literal, NodeId};

/// The longest array that is written out.
const MAX_ITEMS: u64 = 1_000_000;
/// From here on an array is so long that copies of it are counted.
const LONG: u64 = 4_096;
/// The most arrays that are ruled out one by one.
const MAX_EXCLUDED: usize = 64;
/// The most items that are made distinct from each other.
const MAX_DISTINCT: u64 = 256;
/// The most items one `contains` may require before the search gives up.
const MAX_CONTAINED: u64 = 8;

/// What the facts about arrays require.
#[derive(Clone, Debug, Default)]
struct ArrayConstraints {
    /// Every item: the first few by their place, the others alike.
    items: Vec<(Vec<NodeId>, NodeId)>,
    min: u64,
    max: Option<u64>,
    unique: bool,
    /// The most items that may satisfy a schema.
    limits: Vec<(NodeId, u64)>,
    demands: Vec<ItemDemand>,
    /// Two items are equal.
    duplicates: bool,
}

/// A requirement that some item must meet.
#[derive(Clone, Debug)]
enum ItemDemand {
    /// An item that violates the schema of its place.
    Violating(Vec<NodeId>, NodeId),
    /// A number of items that satisfy a schema.
    Containing(NodeId, u64),
}

impl ItemDemand {
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

/// Items with extra requirements besides the schema of their place.
#[derive(Clone, Debug, Default)]
struct ItemAssignment {
    extra: BTreeMap<usize, Vec<Literal>>,
    equal: Option<(usize, usize)>,
}

impl Solver<'_> {
    pub(super) fn array(
        &mut self,
        state: &Conjunction,
        judge: ValueCheck<'_, '_>,
    ) -> SearchOutcome {
        let mut shapes = vec![ArrayConstraints::default()];
        for literal in &state.atoms {
            let alternatives = self.constraints_of(*literal);
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
                return SearchOutcome::Unknown;
            }
        }
        let excluded = self.excluded(state);
        let mut outcome = SearchOutcome::Empty;
        for shape in shapes {
            if shape
                .demands
                .iter()
                .any(|demand| demand.count() > MAX_CONTAINED)
            {
                self.obstacles.insert("minContains");
                outcome = outcome.or(SearchOutcome::Unknown);
                continue;
            }
            let nowhere = ItemAssignment::default();
            let found = self.place(&shape, 0, 0, 0, &nowhere, state, &excluded, judge);
            outcome = outcome.or(found);
            if matches!(outcome, SearchOutcome::Value(_)) {
                break;
            }
        }
        outcome
    }

    /// The ways one fact about arrays can be read.
    fn constraints_of(&self, literal: Literal) -> Vec<ArrayConstraint> {
        match (self.arena.node(literal.id), literal.holds) {
            (Fact::Items { prefix, rest }, true) => {
                vec![ArrayConstraint::Items(prefix.clone(), *rest)]
            }
            (Fact::Items { prefix, rest }, false) => {
                vec![ArrayConstraint::Demand(ItemDemand::Violating(
                    prefix.clone(),
                    *rest,
                ))]
            }
            (Fact::MinItems(min), true) => vec![ArrayConstraint::Min(*min)],
            (Fact::MinItems(min), false) => vec![ArrayConstraint::Max(min.saturating_sub(1))],
            (Fact::MaxItems(max), true) => vec![ArrayConstraint::Max(*max)],
            (Fact::MaxItems(max), false) => vec![ArrayConstraint::Min(max.saturating_add(1))],
            (Fact::UniqueItems, true) => vec![ArrayConstraint::Unique],
            (Fact::UniqueItems, false) => vec![ArrayConstraint::Duplicates],
            (Fact::Contains { schema, min, max }, true) => {
                vec![ArrayConstraint::Between(*schema, *min, *max)]
            }
            (Fact::Contains { schema, min, max }, false) => {
                let fewer = min
                    .checked_sub(1)
                    .map(|most| ArrayConstraint::Between(*schema, 0, Some(most)));
                let more =
                    max.map(|most| ArrayConstraint::Between(*schema, most.saturating_add(1), None));
                fewer.into_iter().chain(more).collect()
            }
            _ => vec![ArrayConstraint::Nothing],
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
        shape: &ArrayConstraints,
        demand: usize,
        done: u64,
        from: usize,
        placed: &ItemAssignment,
        state: &Conjunction,
        excluded: &[Constant],
        judge: ValueCheck<'_, '_>,
    ) -> SearchOutcome {
        self.steps += 1;
        if self.is_exhausted() {
            return SearchOutcome::Unknown;
        }
        let Some(current) = shape.demands.get(demand) else {
            return self.place_equal(shape, placed, state, excluded, judge);
        };
        if done >= current.count() {
            return self.place(shape, demand + 1, 0, 0, placed, state, excluded, judge);
        }
        let mut outcome = SearchOutcome::Empty;
        for place in from..self.places(shape) {
            let literal = current.at(place);
            let mut goals = goals_at(shape, place);
            goals.push(literal);
            if matches!(self.solve(goals), SearchOutcome::Empty) {
                continue;
            }
            let mut placed = placed.clone();
            placed.extra.entry(place).or_default().push(literal);
            let (done, from) = (done + 1, place + 1);
            let next = self.place(shape, demand, done, from, &placed, state, excluded, judge);
            outcome = outcome.or(next);
            if matches!(outcome, SearchOutcome::Value(_)) {
                return outcome;
            }
        }
        outcome
    }

    /// How many places differ, or could have a requirement at the same time.
    fn places(&self, shape: &ArrayConstraints) -> usize {
        let prefixes = shape.items.iter().map(|(prefix, _)| prefix.len());
        let reaches = shape.demands.iter().map(ItemDemand::reach);
        let distinct = prefixes.chain(reaches).max().unwrap_or(0);
        let asked: u64 = shape.demands.iter().map(ItemDemand::count).sum();
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
        shape: &ArrayConstraints,
        placed: &ItemAssignment,
        state: &Conjunction,
        excluded: &[Constant],
        judge: ValueCheck<'_, '_>,
    ) -> SearchOutcome {
        if !shape.duplicates {
            return finish_branch(self.build(shape, placed, excluded), state, judge);
        }
        let mut outcome = SearchOutcome::Empty;
        let places = self.places(shape);
        for second in 1..places {
            for first in 0..second {
                let mut placed = placed.clone();
                placed.equal = Some((first, second));
                let found = self.build(shape, &placed, excluded);
                outcome = outcome.or(finish_branch(found, state, judge));
                if matches!(outcome, SearchOutcome::Value(_)) {
                    return outcome;
                }
            }
        }
        outcome
    }

    fn build(
        &mut self,
        shape: &ArrayConstraints,
        placed: &ItemAssignment,
        excluded: &[Constant],
    ) -> SearchOutcome {
        let last = placed.extra.keys().next_back().copied();
        let last = last.max(placed.equal.map(|(_, second)| second));
        let least = last.map_or(0, |last| last as u64 + 1).max(shape.min);
        if shape.max.is_some_and(|max| least > max) {
            return SearchOutcome::Empty;
        }
        if least > MAX_ITEMS {
            self.obstacles.insert("size");
            return SearchOutcome::Unknown;
        }
        if shape.unique && least > MAX_DISTINCT {
            self.obstacles.insert("minItems");
            return SearchOutcome::Unknown;
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
            if outcome != SearchOutcome::Empty || here.is_empty() || longest {
                return outcome;
            }
            if length >= MAX_ITEMS {
                self.obstacles.insert("size");
                return SearchOutcome::Unknown;
            }
            length += 1;
        }
    }

    /// An array of a length that is none of the given ones: at some place it differs from each.
    fn build_avoiding(
        &mut self,
        shape: &ArrayConstraints,
        placed: &ItemAssignment,
        length: u64,
        excluded: &[&[Value]],
    ) -> SearchOutcome {
        self.steps += 1;
        if self.is_exhausted() {
            return SearchOutcome::Unknown;
        }
        let outcome = self.build_of(shape, placed, length);
        let SearchOutcome::Value(Value::Array(items)) = &outcome else {
            return outcome;
        };
        let built = Constant::of(&Value::Array(items.clone()));
        let is_built = |other: &&&[Value]| Constant::of(&Value::Array(other.to_vec())) == built;
        let Some(same) = excluded.iter().find(is_built) else {
            return outcome;
        };
        if excluded.len() > MAX_EXCLUDED {
            self.obstacles.insert("enum");
            return SearchOutcome::Unknown;
        }
        let mut outcome = SearchOutcome::Empty;
        for (place, item) in same.iter().enumerate() {
            let other = self.arena.constants(std::iter::once(Constant::of(item)));
            let mut placed = placed.clone();
            placed.extra.entry(place).or_default().push(other.fails());
            outcome = outcome.or(self.build_avoiding(shape, &placed, length, excluded));
            if matches!(outcome, SearchOutcome::Value(_)) {
                return outcome;
            }
        }
        if outcome == SearchOutcome::Unknown {
            self.obstacles.insert("enum");
        }
        outcome
    }

    fn build_of(
        &mut self,
        shape: &ArrayConstraints,
        placed: &ItemAssignment,
        length: u64,
    ) -> SearchOutcome {
        let mut exact = true;
        let mut certain = true;
        let mut items: Vec<Value> = Vec::new();
        let mut first: Option<Vec<Literal>> = None;
        let mut all_alike = true;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let free = Self::spare_places(shape, placed, length, &mut exact);
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
                SearchOutcome::Value(value) => items.push(value),
                SearchOutcome::Candidate(value) => {
                    certain = false;
                    items.push(value);
                }
                SearchOutcome::Empty if exact && (!shape.unique || items.is_empty() || alike) => {
                    return SearchOutcome::Empty;
                }
                SearchOutcome::Empty => {
                    self.obstacles.insert(if shape.unique {
                        "uniqueItems"
                    } else {
                        "maxContains"
                    });
                    return SearchOutcome::Unknown;
                }
                SearchOutcome::Unknown => return SearchOutcome::Unknown,
            }
        }
        self.check_value_size(Value::Array(items), certain)
    }

    /// For each schema that only a limited number of items may satisfy, the places that may satisfy it.
    fn spare_places(
        shape: &ArrayConstraints,
        placed: &ItemAssignment,
        length: usize,
        exact: &mut bool,
    ) -> Vec<(NodeId, Vec<usize>)> {
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
            // With none allowed, nothing is chosen; otherwise other places might work.
            *exact &= most == 0;
            spared.push((*schema, places));
        }
        spared
    }

    /// The values a state rules out one by one.
    pub(super) fn excluded(&self, state: &Conjunction) -> Vec<Constant> {
        let mut excluded = Vec::new();
        for literal in state.atoms.iter().filter(|literal| !literal.holds) {
            if let Fact::Enum(constants) = self.arena.node(literal.id) {
                excluded.extend(constants.iter().cloned());
            }
        }
        excluded
    }
}

fn goals_at(shape: &ArrayConstraints, place: usize) -> Vec<Literal> {
    let items = shape.items.iter();
    items
        .map(|(prefix, rest)| prefix.get(place).unwrap_or(rest).holds())
        .collect()
}

/// One way to read a fact about arrays.
#[derive(Clone, Debug)]
enum ArrayConstraint {
    Items(Vec<NodeId>, NodeId),
    Min(u64),
    Max(u64),
    Unique,
    Duplicates,
    Demand(ItemDemand),
    /// A number of items satisfy a schema.
    Between(NodeId, u64, Option<u64>),
    Nothing,
}

impl ArrayConstraint {
    fn apply(&self, shape: &mut ArrayConstraints) {
        match self {
            Self::Items(prefix, rest) => shape.items.push((prefix.clone(), *rest)),
            Self::Min(min) => shape.min = shape.min.max(*min),
            Self::Max(max) => shape.max = Some(shape.max.map_or(*max, |known| known.min(*max))),
            Self::Unique => shape.unique = true,
            Self::Duplicates => shape.duplicates = true,
            Self::Demand(demand) => shape.demands.push(demand.clone()),
            Self::Between(schema, min, max) => {
                if *min > 0 {
                    shape.demands.push(ItemDemand::Containing(*schema, *min));
                }
                shape.limits.extend(max.map(|max| (*schema, max)));
            }
            Self::Nothing => {}
        }
    }
}
