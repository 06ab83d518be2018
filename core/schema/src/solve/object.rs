use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::state::State;
use super::{Judge, Outcome, Solver, settle};
use crate::set::{Constant, Id, Literal, Node, Properties, TypeSet, applicable};

/// The most patterns whose combinations of matching and not matching are told apart.
const MAX_PATTERNS: usize = 5;
/// The largest object that is written out.
const MAX_MEMBERS: u64 = 1_024;
/// The most objects that are ruled out one by one.
const MAX_EXCLUDED: usize = 64;

/// What the facts about objects ask for.
#[derive(Debug, Default)]
struct Shape {
    maps: Vec<Properties>,
    names: Vec<Id>,
    required: BTreeSet<Arc<str>>,
    absent: BTreeSet<Arc<str>>,
    min: u64,
    max: Option<u64>,
    demands: Vec<Demand>,
    /// Every key that is spoken of by name.
    mentioned: BTreeSet<Arc<str>>,
    /// Every pattern that decides what a key's value must be.
    patterns: BTreeSet<Arc<str>>,
    excluded: Vec<Constant>,
}

/// Something some member must be.
#[derive(Clone, Debug)]
enum Demand {
    /// A member that violates the map.
    Violating(Properties),
    /// A key that violates the schema of keys.
    Misnamed(Id),
}

/// One way to meet a demand.
#[derive(Clone, Debug)]
enum Way {
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
type MetBy = (Arc<str>, Option<Literal>);

impl Solver<'_> {
    pub(super) fn object(&mut self, state: &State, judge: Judge<'_, '_>) -> Outcome {
        let shape = self.shape(state);
        if shape.max.is_some_and(|max| max < shape.min) {
            return Outcome::Empty;
        }
        self.meet(&shape, 0, &Members::new(), state, judge)
    }

    fn shape(&mut self, state: &State) -> Shape {
        let mut shape = Shape {
            excluded: self.excluded(state),
            ..Shape::default()
        };
        let mut limit = |max: u64| shape.max = Some(shape.max.map_or(max, |known| known.min(max)));
        for literal in &state.atoms {
            match (self.arena.node(literal.id), literal.holds) {
                (Node::Properties(map), true) => shape.maps.push(map.clone()),
                (Node::Properties(map), false) => {
                    shape.demands.push(Demand::Violating(map.clone()));
                }
                (Node::Names(names), true) => shape.names.push(*names),
                (Node::Names(names), false) => shape.demands.push(Demand::Misnamed(*names)),
                (Node::Required(name), true) => {
                    shape.required.insert(Arc::clone(name));
                }
                (Node::Required(name), false) => {
                    shape.absent.insert(Arc::clone(name));
                }
                (Node::MinProperties(min), true) => shape.min = shape.min.max(*min),
                (Node::MinProperties(min), false) => limit(min.saturating_sub(1)),
                (Node::MaxProperties(max), true) => limit(*max),
                (Node::MaxProperties(max), false) => {
                    shape.min = shape.min.max(max.saturating_add(1));
                }
                _ => {}
            }
        }
        let violated = shape.demands.iter().filter_map(|demand| match demand {
            Demand::Violating(map) => Some(map),
            Demand::Misnamed(_) => None,
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
    fn meet(
        &mut self,
        shape: &Shape,
        demand: usize,
        chosen: &Members,
        state: &State,
        judge: Judge<'_, '_>,
    ) -> Outcome {
        self.steps += 1;
        if self.is_spent() {
            return Outcome::Unknown;
        }
        let Some(current) = shape.demands.get(demand) else {
            return settle(self.build_object(shape, chosen), state, judge);
        };
        let mut outcome = Outcome::Empty;
        for way in self.ways_to_meet(current) {
            let (keys, complete) = self.keys_for(shape, &way, chosen);
            if !complete {
                outcome = outcome.or(Outcome::Unknown);
            }
            for (key, literal) in keys {
                let mut chosen = chosen.clone();
                let literals = chosen.entry(Arc::clone(&key)).or_default();
                literals.extend(literal);
                match self.member(shape, &key, literals) {
                    Outcome::Empty => continue,
                    Outcome::Unknown => {
                        outcome = outcome.or(Outcome::Unknown);
                        continue;
                    }
                    Outcome::Value(_) | Outcome::Candidate(_) => {}
                }
                outcome = outcome.or(self.meet(shape, demand + 1, &chosen, state, judge));
                if matches!(outcome, Outcome::Value(_)) {
                    return outcome;
                }
            }
        }
        outcome
    }

    fn ways_to_meet(&mut self, demand: &Demand) -> Vec<Way> {
        let map = match demand {
            Demand::Misnamed(names) => {
                return vec![Way::Some {
                    key: vec![names.fails()],
                    besides: BTreeSet::new(),
                    member: None,
                }];
            }
            Demand::Violating(map) => map,
        };
        let always = self.arena.always();
        let named = map.named.iter().filter(|(_, id)| **id != always);
        let mut ways: Vec<Way> = named
            .map(|(name, id)| Way::Key(Arc::clone(name), id.fails()))
            .collect();
        let mut unmatched = Vec::new();
        for (pattern, id) in &map.patterns {
            let pattern = self.arena.add(Node::Pattern(Arc::clone(pattern)));
            unmatched.push(pattern.fails());
            if *id != always {
                ways.push(Way::Some {
                    key: vec![pattern.holds()],
                    besides: BTreeSet::new(),
                    member: Some(id.fails()),
                });
            }
        }
        if map.rest != always {
            ways.push(Way::Some {
                key: unmatched,
                besides: map.named.keys().cloned().collect(),
                member: Some(map.rest.fails()),
            });
        }
        ways
    }

    /// The keys that can meet a demand in one way, one for each way keys differ; and whether that
    /// is all of them.
    fn keys_for(&mut self, shape: &Shape, way: &Way, chosen: &Members) -> (Vec<MetBy>, bool) {
        let (key, besides, member) = match way {
            Way::Key(name, literal) => {
                let allowed = !shape.absent.contains(name);
                let key = allowed.then(|| (Arc::clone(name), Some(*literal)));
                return (key.into_iter().collect(), true);
            }
            Way::Some {
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

    /// A key nobody spoke of for each combination of patterns, satisfying the literals.
    fn fresh_keys(
        &mut self,
        shape: &Shape,
        key: &[Literal],
        chosen: &Members,
    ) -> (Vec<Arc<str>>, bool) {
        let string = self.arena.add(Node::Type(TypeSet::STRING));
        let some_length = self.arena.add(Node::MinLength(1));
        let taken: BTreeSet<&Arc<str>> = shape.mentioned.iter().chain(chosen.keys()).collect();
        let taken = taken
            .into_iter()
            .map(|name| Constant::of(&Value::from(&**name)));
        let taken = self.arena.constants(taken);
        let mut goals = vec![string.holds(), taken.fails()];
        goals.extend(shape.names.iter().map(|names| names.holds()));
        goals.extend(key);
        let mut patterns: Vec<Id> = shape
            .patterns
            .iter()
            .map(|pattern| self.arena.add(Node::Pattern(Arc::clone(pattern))))
            .collect();
        // A key that is wrong for several reasons meets several demands at once.
        patterns.extend(shape.demands.iter().filter_map(|demand| match demand {
            Demand::Misnamed(names) => Some(*names),
            Demand::Violating(_) => None,
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
            // A key that can be seen is a better example than the empty one.
            let mut visible = goals.clone();
            visible.push(some_length.holds());
            let found = match self.solve(visible) {
                Outcome::Empty => self.solve(goals),
                other => other,
            };
            match found {
                Outcome::Value(Value::String(key)) => keys.push(Arc::from(key)),
                Outcome::Candidate(Value::String(key)) => {
                    keys.push(Arc::from(key));
                    complete = false;
                }
                Outcome::Empty => {}
                _ => complete = false,
            }
        }
        (keys, complete)
    }

    /// A value for the member under a key.
    fn member(&mut self, shape: &Shape, key: &Arc<str>, extra: &[Literal]) -> Outcome {
        if shape.absent.contains(key) {
            return Outcome::Empty;
        }
        let text = Value::from(&**key);
        let mut certain = true;
        for names in &shape.names {
            match self.arena.is_true(names.holds(), &text, self.texts) {
                Some(true) => {}
                Some(false) => return Outcome::Empty,
                None => certain = false,
            }
        }
        let mut goals = extra.to_vec();
        for map in &shape.maps {
            match applicable(map, key, self.texts) {
                Some(ids) => goals.extend(ids.into_iter().map(Id::holds)),
                None => {
                    self.obstacles.insert("patternProperties");
                    return Outcome::Unknown;
                }
            }
        }
        let outcome = self.solve(goals);
        if certain { outcome } else { outcome.weakened() }
    }

    fn build_object(&mut self, shape: &Shape, chosen: &Members) -> Outcome {
        self.steps += 1;
        if self.is_spent() {
            return Outcome::Unknown;
        }
        let none = Vec::new();
        let keys: BTreeSet<&Arc<str>> = shape.required.iter().chain(chosen.keys()).collect();
        let size = keys.len() as u64;
        if shape.max.is_some_and(|max| size > max) {
            return Outcome::Empty;
        }
        if shape.min > MAX_MEMBERS {
            self.obstacles.insert("minProperties");
            return Outcome::Unknown;
        }
        let mut members = Map::new();
        let mut certain = true;
        for key in keys {
            let extra = chosen.get(key).unwrap_or(&none);
            match self.member(shape, key, extra) {
                Outcome::Value(value) => {
                    members.insert(key.to_string(), value);
                }
                Outcome::Candidate(value) => {
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
                return self.ruled_out(shape, chosen, &members);
            }
            match self.another_member(shape, chosen, &mut members) {
                Some(more) => certain &= more,
                None => return self.ruled_out(shape, chosen, &members),
            }
        }
        self.built(Value::Object(members), certain)
    }

    /// Adds a member that may be there; whether that is certain, or nothing where none may be.
    fn another_member(
        &mut self,
        shape: &Shape,
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
                Outcome::Value(value) => {
                    members.insert(key.to_string(), value);
                    return Some(true);
                }
                Outcome::Candidate(value) => {
                    members.insert(key.to_string(), value);
                    return Some(false);
                }
                Outcome::Empty => {}
                Outcome::Unknown => unknown = true,
            }
        }
        if unknown {
            self.obstacles.insert("minProperties");
        }
        None
    }

    /// No member can be added. Where the object is only ruled out as a whole, another value of some
    /// member may do.
    fn ruled_out(
        &mut self,
        shape: &Shape,
        chosen: &Members,
        members: &Map<String, Value>,
    ) -> Outcome {
        let too_small = (members.len() as u64) < shape.min;
        let empty = members.is_empty();
        if (too_small || empty) && !self.obstacles.contains("minProperties") {
            return Outcome::Empty;
        }
        if too_small || shape.excluded.len() > MAX_EXCLUDED {
            self.obstacles.insert("enum");
            return Outcome::Unknown;
        }
        // What was added beyond what must be there could be left out, or be something else.
        let needed = |key: &str| shape.required.contains(key) || chosen.contains_key(key);
        let mut outcome = if members.keys().all(|key| needed(key)) {
            Outcome::Empty
        } else {
            Outcome::Unknown
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
            if matches!(outcome, Outcome::Value(_)) {
                return outcome;
            }
        }
        if outcome == Outcome::Unknown || self.obstacles.contains("minProperties") {
            self.obstacles.insert("enum");
            return Outcome::Unknown;
        }
        outcome
    }
}
