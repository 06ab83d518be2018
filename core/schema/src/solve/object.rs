use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::conjunction::Conjunction;
use super::{SearchOutcome, Solver, ValueCheck, finish_branch};
use crate::set::{Constant, Fact, Literal, NodeId, Properties, TypeSet, applicable};

/// The most patterns whose combinations of matching and not matching are distinguished.
const MAX_PATTERNS: usize = 5;
/// The largest object that is written out.
const MAX_MEMBERS: u64 = 1_024;
/// The most objects that are ruled out one by one.
const MAX_EXCLUDED: usize = 64;

/// What the facts about objects require.
#[derive(Debug, Default)]
struct ObjectConstraints {
    maps: Vec<Properties>,
    names: Vec<NodeId>,
    required: BTreeSet<Arc<str>>,
    absent: BTreeSet<Arc<str>>,
    min: u64,
    max: Option<u64>,
    demands: Vec<MemberDemand>,
    /// Every key that a fact names.
    mentioned: BTreeSet<Arc<str>>,
    /// Every pattern that decides what a key's value must be.
    patterns: BTreeSet<Arc<str>>,
    excluded: Vec<Constant>,
}

/// A requirement that some member must meet.
#[derive(Clone, Debug)]
enum MemberDemand {
    /// A member that violates the map.
    Violating(Properties),
    /// A key that violates the schema of keys.
    Misnamed(NodeId),
}

/// One way to meet a demand.
#[derive(Clone, Debug)]
enum DemandSolution {
    /// The member under this key satisfies the literal.
    Key(Arc<str>, Literal),
    /// A member whose key satisfies literals of its own, and is none of these.
    Some {
        key: Vec<Literal>,
        besides: BTreeSet<Arc<str>>,
        member: Option<Literal>,
    },
}

type Members = BTreeMap<Arc<str>, Vec<Literal>>;

/// A key that meets a demand, and what its member must be for that.
type SatisfyingKey = (Arc<str>, Option<Literal>);

impl Solver<'_> {
    pub(super) fn object(
        &mut self,
        state: &Conjunction,
        judge: ValueCheck<'_, '_>,
    ) -> SearchOutcome {
        let shape = self.shape(state);
        if shape.max.is_some_and(|max| max < shape.min) {
            return SearchOutcome::Empty;
        }
        self.satisfy_demands(&shape, 0, &Members::new(), state, judge)
    }

    fn shape(&mut self, state: &Conjunction) -> ObjectConstraints {
        let mut shape = ObjectConstraints {
            excluded: self.excluded(state),
            ..ObjectConstraints::default()
        };
        let mut limit = |max: u64| shape.max = Some(shape.max.map_or(max, |known| known.min(max)));
        for literal in &state.atoms {
            match (self.arena.node(literal.id), literal.holds) {
                (Fact::Properties(map), true) => shape.maps.push(map.clone()),
                (Fact::Properties(map), false) => {
                    shape.demands.push(MemberDemand::Violating(map.clone()));
                }
                (Fact::Names(names), true) => shape.names.push(*names),
                (Fact::Names(names), false) => shape.demands.push(MemberDemand::Misnamed(*names)),
                (Fact::Required(name), true) => {
                    shape.required.insert(Arc::clone(name));
                }
                (Fact::Required(name), false) => {
                    shape.absent.insert(Arc::clone(name));
                }
                (Fact::MinProperties(min), true) => shape.min = shape.min.max(*min),
                (Fact::MinProperties(min), false) => limit(min.saturating_sub(1)),
                (Fact::MaxProperties(max), true) => limit(*max),
                (Fact::MaxProperties(max), false) => {
                    shape.min = shape.min.max(max.saturating_add(1));
                }
                _ => {}
            }
        }
        let violated = shape.demands.iter().filter_map(|demand| match demand {
            MemberDemand::Violating(map) => Some(map),
            MemberDemand::Misnamed(_) => None,
        });
        for map in shape.maps.iter().chain(violated) {
            shape.mentioned.extend(map.named.keys().cloned());
            shape
                .patterns
                .extend(map.patterns.iter().map(|(pattern, _)| Arc::clone(pattern)));
        }
        shape.mentioned.extend(shape.required.iter().cloned());
        shape.mentioned.extend(shape.absent.iter().cloned());
        shape
    }

    /// Finds a member for each demand, one after the other, then builds the object.
    fn satisfy_demands(
        &mut self,
        shape: &ObjectConstraints,
        demand: usize,
        chosen: &Members,
        state: &Conjunction,
        judge: ValueCheck<'_, '_>,
    ) -> SearchOutcome {
        self.steps += 1;
        if self.is_exhausted() {
            return SearchOutcome::Unknown;
        }
        let Some(current) = shape.demands.get(demand) else {
            return finish_branch(self.build_object(shape, chosen), state, judge);
        };
        let mut outcome = SearchOutcome::Empty;
        for way in self.demand_solutions(current) {
            let (keys, complete) = self.keys_for(shape, &way, chosen);
            if !complete {
                outcome = outcome.or(SearchOutcome::Unknown);
            }
            for (key, literal) in keys {
                let mut chosen = chosen.clone();
                let literals = chosen.entry(Arc::clone(&key)).or_default();
                literals.extend(literal);
                match self.member(shape, &key, literals) {
                    SearchOutcome::Empty => continue,
                    SearchOutcome::Unknown => {
                        outcome = outcome.or(SearchOutcome::Unknown);
                        continue;
                    }
                    SearchOutcome::Value(_) | SearchOutcome::Candidate(_) => {}
                }
                outcome =
                    outcome.or(self.satisfy_demands(shape, demand + 1, &chosen, state, judge));
                if matches!(outcome, SearchOutcome::Value(_)) {
                    return outcome;
                }
            }
        }
        outcome
    }

    fn demand_solutions(&mut self, demand: &MemberDemand) -> Vec<DemandSolution> {
        let map = match demand {
            MemberDemand::Misnamed(names) => {
                return vec![DemandSolution::Some {
                    key: vec![names.fails()],
                    besides: BTreeSet::new(),
                    member: None,
                }];
            }
            MemberDemand::Violating(map) => map,
        };
        let always = self.arena.always();
        let named = map.named.iter().filter(|(_, id)| **id != always);
        let mut ways: Vec<DemandSolution> = named
            .map(|(name, id)| DemandSolution::Key(Arc::clone(name), id.fails()))
            .collect();
        let mut unmatched = Vec::new();
        for (pattern, id) in &map.patterns {
            let pattern = self.arena.add(Fact::Pattern(Arc::clone(pattern)));
            unmatched.push(pattern.fails());
            if *id != always {
                ways.push(DemandSolution::Some {
                    key: vec![pattern.holds()],
                    besides: BTreeSet::new(),
                    member: Some(id.fails()),
                });
            }
        }
        if map.rest != always {
            ways.push(DemandSolution::Some {
                key: unmatched,
                besides: map.named.keys().cloned().collect(),
                member: Some(map.rest.fails()),
            });
        }
        ways
    }

    /// The keys that can meet a demand in one way, one for each way keys differ; and whether that
    /// is all of them.
    fn keys_for(
        &mut self,
        shape: &ObjectConstraints,
        way: &DemandSolution,
        chosen: &Members,
    ) -> (Vec<SatisfyingKey>, bool) {
        let (key, besides, member) = match way {
            DemandSolution::Key(name, literal) => {
                let allowed = !shape.absent.contains(name);
                let key = allowed.then(|| (Arc::clone(name), Some(*literal)));
                return (key.into_iter().collect(), true);
            }
            DemandSolution::Some {
                key,
                besides,
                member,
            } => (key, besides, *member),
        };
        let mut complete = true;
        let (fresh, all) = self.fresh_keys(shape, key, chosen);
        complete &= all;
        let mut keys: Vec<_> = fresh.into_iter().map(|key| (key, member)).collect();
        let known = shape.mentioned.iter().chain(chosen.keys());
        for name in known.cloned().collect::<BTreeSet<_>>() {
            if besides.contains(&name) || shape.absent.contains(&name) {
                continue;
            }
            let text = Value::from(&*name);
            let mut fits = Some(true);
            for literal in key {
                match self.arena.is_true(*literal, &text, self.texts) {
                    Some(true) => {}
                    Some(false) => {
                        fits = Some(false);
                        break;
                    }
                    None => fits = None,
                }
            }
            match fits {
                Some(true) => keys.push((name, member)),
                Some(false) => {}
                None => complete = false,
            }
        }
        (keys, complete)
    }

    /// For each combination of patterns, a key that no schema names and that satisfies the literals.
    fn fresh_keys(
        &mut self,
        shape: &ObjectConstraints,
        key: &[Literal],
        chosen: &Members,
    ) -> (Vec<Arc<str>>, bool) {
        let string = self.arena.add(Fact::Type(TypeSet::STRING));
        let some_length = self.arena.add(Fact::MinLength(1));
        let taken: BTreeSet<&Arc<str>> = shape.mentioned.iter().chain(chosen.keys()).collect();
        let taken = taken
            .into_iter()
            .map(|name| Constant::of(&Value::from(&**name)));
        let taken = self.arena.constants(taken);
        let mut goals = vec![string.holds(), taken.fails()];
        goals.extend(shape.names.iter().map(|names| names.holds()));
        goals.extend(key);
        let mut patterns: Vec<NodeId> = shape
            .patterns
            .iter()
            .map(|pattern| self.arena.add(Fact::Pattern(Arc::clone(pattern))))
            .collect();
        // A key that is wrong for several reasons meets several demands at once.
        patterns.extend(shape.demands.iter().filter_map(|demand| match demand {
            MemberDemand::Misnamed(names) => Some(*names),
            MemberDemand::Violating(_) => None,
        }));
        patterns.sort_unstable();
        patterns.dedup();
        if patterns.len() > MAX_PATTERNS {
            self.obstacles.insert("patternProperties");
            return (Vec::new(), false);
        }
        let mut keys = Vec::new();
        let mut complete = true;
        for combination in 0..1_u32 << patterns.len() {
            let mut goals = goals.clone();
            goals.extend(patterns.iter().enumerate().map(|(index, pattern)| Literal {
                id: *pattern,
                holds: combination >> index & 1 == 1,
            }));
            // A visible key is a better example than the empty one.
            let mut visible = goals.clone();
            visible.push(some_length.holds());
            let found = match self.solve(visible) {
                SearchOutcome::Empty => self.solve(goals),
                other => other,
            };
            match found {
                SearchOutcome::Value(Value::String(key)) => keys.push(Arc::from(key)),
                SearchOutcome::Candidate(Value::String(key)) => {
                    keys.push(Arc::from(key));
                    complete = false;
                }
                SearchOutcome::Empty => {}
                _ => complete = false,
            }
        }
        (keys, complete)
    }

    /// A value for the member under a key.
    fn member(
        &mut self,
        shape: &ObjectConstraints,
        key: &Arc<str>,
        extra: &[Literal],
    ) -> SearchOutcome {
        if shape.absent.contains(key) {
            return SearchOutcome::Empty;
        }
        let text = Value::from(&**key);
        let mut certain = true;
        for names in &shape.names {
            match self.arena.is_true(names.holds(), &text, self.texts) {
                Some(true) => {}
                Some(false) => return SearchOutcome::Empty,
                None => certain = false,
            }
        }
        let mut goals = extra.to_vec();
        for map in &shape.maps {
            match applicable(map, key, self.texts) {
                Some(ids) => goals.extend(ids.into_iter().map(NodeId::holds)),
                None => {
                    self.obstacles.insert("patternProperties");
                    return SearchOutcome::Unknown;
                }
            }
        }
        let outcome = self.solve(goals);
        if certain {
            outcome
        } else {
            outcome.into_candidate()
        }
    }

    fn build_object(&mut self, shape: &ObjectConstraints, chosen: &Members) -> SearchOutcome {
        self.steps += 1;
        if self.is_exhausted() {
            return SearchOutcome::Unknown;
        }
        let none = Vec::new();
        let keys: BTreeSet<&Arc<str>> = shape.required.iter().chain(chosen.keys()).collect();
        let size = keys.len() as u64;
        if shape.max.is_some_and(|max| size > max) {
            return SearchOutcome::Empty;
        }
        if shape.min > MAX_MEMBERS {
            self.obstacles.insert("minProperties");
            return SearchOutcome::Unknown;
        }
        let mut members = Map::new();
        let mut certain = true;
        for key in keys {
            let extra = chosen.get(key).unwrap_or(&none);
            match self.member(shape, key, extra) {
                SearchOutcome::Value(value) => {
                    members.insert(key.to_string(), value);
                }
                SearchOutcome::Candidate(value) => {
                    certain = false;
                    members.insert(key.to_string(), value);
                }
                other => return other,
            }
        }
        let full = |members: &Map<String, Value>| {
            let ruled_out = !shape.excluded.is_empty()
                && shape
                    .excluded
                    .contains(&Constant::of(&Value::Object(members.clone())));
            members.len() as u64 >= shape.min && !ruled_out
        };
        while !full(&members) {
            if shape.max.is_some_and(|max| members.len() as u64 >= max) {
                return self.avoid_excluded(shape, chosen, &members);
            }
            match self.another_member(shape, chosen, &mut members) {
                Some(more) => certain &= more,
                None => return self.avoid_excluded(shape, chosen, &members),
            }
        }
        self.check_value_size(Value::Object(members), certain)
    }

    /// Adds an optional member. Returns whether it is certain to be valid, or `None` if no member fits.
    fn another_member(
        &mut self,
        shape: &ObjectConstraints,
        chosen: &Members,
        members: &mut Map<String, Value>,
    ) -> Option<bool> {
        let mut taken = chosen.clone();
        for key in members.keys() {
            taken.entry(Arc::from(key.as_str())).or_default();
        }
        let named = shape
            .mentioned
            .iter()
            .filter(|key| !taken.contains_key(*key));
        let named: Vec<Arc<str>> = named.cloned().collect();
        let (fresh, complete) = self.fresh_keys(shape, &[], &taken);
        let mut unknown = !complete;
        for key in named.into_iter().chain(fresh) {
            match self.member(shape, &key, &[]) {
                SearchOutcome::Value(value) => {
                    members.insert(key.to_string(), value);
                    return Some(true);
                }
                SearchOutcome::Candidate(value) => {
                    members.insert(key.to_string(), value);
                    return Some(false);
                }
                SearchOutcome::Empty => {}
                SearchOutcome::Unknown => unknown = true,
            }
        }
        if unknown {
            self.obstacles.insert("minProperties");
        }
        None
    }

    /// Handles an object to which no member can be added. If it is only excluded as a whole, another
    /// value of some member may work.
    fn avoid_excluded(
        &mut self,
        shape: &ObjectConstraints,
        chosen: &Members,
        members: &Map<String, Value>,
    ) -> SearchOutcome {
        let too_small = (members.len() as u64) < shape.min;
        let empty = members.is_empty();
        if (too_small || empty) && !self.obstacles.contains("minProperties") {
            return SearchOutcome::Empty;
        }
        if too_small || shape.excluded.len() > MAX_EXCLUDED {
            self.obstacles.insert("enum");
            return SearchOutcome::Unknown;
        }
        // Members added beyond the required ones could be left out or have other values.
        let needed = |key: &str| shape.required.contains(key) || chosen.contains_key(key);
        let mut outcome = if members.keys().all(|key| needed(key)) {
            SearchOutcome::Empty
        } else {
            SearchOutcome::Unknown
        };
        for (key, value) in members {
            let other = self.arena.constants(std::iter::once(Constant::of(value)));
            let mut chosen = chosen.clone();
            let literals = chosen.entry(Arc::from(key.as_str())).or_default();
            if literals.contains(&other.fails()) {
                continue;
            }
            literals.push(other.fails());
            outcome = outcome.or(self.build_object(shape, &chosen));
            if matches!(outcome, SearchOutcome::Value(_)) {
                return outcome;
            }
        }
        if outcome == SearchOutcome::Unknown || self.obstacles.contains("minProperties") {
            self.obstacles.insert("enum");
            return SearchOutcome::Unknown;
        }
        outcome
    }
}
