use std::collections::BinaryHeap;

use serde_json::{Map, Number, Value};

use super::counts::{CountEntry, DistinctValues, ResultCount, TypeCounts, add_all, bump, count_of};
use super::error_text::reads_like_error;
use super::member_name::{ITEMS, MEMBERS, path_step};
use super::shape_counter::{CounterKind, NumberFacts, ShapeCounter, ValueType};
use super::size_limits::{MAX_DEPTH, MAX_NODES, PathCutoffs, PathRank};
use super::string_format::StringFormat;
use super::value_key::{ValueHash, ValueKey};

/// What was seen at one path.
///
/// Everything is counted once per result: the items of one array resemble each other, and a test that
/// treated them as independent observations would report an unusual array as drift.
#[derive(Clone, Debug)]
pub(super) struct ShapeNode {
    pub(super) name: Box<str>,
    pub(super) rank: PathRank,
    /// Results with this path.
    pub(super) n: u64,
    /// Results in which every object at the parent had this member.
    pub(super) full: u64,
    pub(super) types: TypeCounts,
    /// Sorted by cell.
    pub(super) cells: Vec<CountEntry<ShapeCounter>>,
    pub(super) values: DistinctValues,
    /// Results with a scalar here that is too long or too unusual to be a value of an enumeration.
    pub(super) open: ResultCount,
    /// The digest of these scalars and of plain texts, while the shape can be compared exactly.
    pub(super) digest: ValueHash,
    /// Sorted by name.
    pub(super) children: Vec<Self>,
    current: CurrentResult,
}

/// What was seen in the result being observed, which has this serial number.
#[derive(Clone, Copy, Debug, Default)]
struct CurrentResult {
    serial: u64,
    seen: u64,
    objects: u64,
    types: u8,
}

/// The context for observing one result.
pub(super) struct ObserveContext<'k> {
    /// Identifies the result; stored counts carry the serial of the last result they counted.
    pub(super) serial: u64,
    pub(super) key: Option<&'k ValueKey>,
    pub(super) cutoffs: PathCutoffs,
    /// Whether digests of long and unusual values are kept.
    pub(super) is_exact: bool,
    /// Whether anything needs more space than before.
    pub(super) grown: bool,
    /// The first of the nodes created in this visit. The limit stops a result with a million names from
    /// creating a million nodes.
    pub(super) new_ranks: BinaryHeap<PathRank>,
}

impl ShapeNode {
    pub(super) const fn new(name: Box<str>, rank: PathRank) -> Self {
        Self {
            name,
            rank,
            n: 0,
            full: 0,
            types: TypeCounts::NONE,
            cells: Vec::new(),
            values: DistinctValues::Few(Vec::new()),
            open: ResultCount::new(0),
            digest: ValueHash::NONE,
            children: Vec::new(),
            current: CurrentResult {
                serial: 0,
                seen: 0,
                objects: 0,
                types: 0,
            },
        }
    }

    pub(super) fn observe(&mut self, value: &Value, visit: &mut ObserveContext<'_>) {
        match value {
            Value::Null => self.count_visit(ValueType::Null, visit),
            Value::Bool(value) => {
                self.count_visit(ValueType::Boolean, visit);
                self.count(ShapeCounter::boolean(*value), visit);
                self.observe_value(b'b', &[u8::from(*value)], visit);
            }
            Value::Number(number) => self.observe_number(number, visit),
            Value::String(text) => self.observe_string(text, visit),
            Value::Array(items) => self.observe_array(items, visit),
            Value::Object(members) => self.observe_object(members, visit),
        }
    }

    pub(super) fn observe_plain(&mut self, text: &str, visit: &mut ObserveContext<'_>) {
        self.count_visit(ValueType::String, visit);
        self.count(ShapeCounter::format(StringFormat::of_plain(text)), visit);
        self.count(ShapeCounter::size(CounterKind::Length, text.len()), visit);
        self.count(
            ShapeCounter::size(CounterKind::Lines, text.lines().count()),
            visit,
        );
        if reads_like_error(text) {
            self.count(ShapeCounter::ERROR_TEXT, visit);
        }
        self.observe_open(b't', text.as_bytes(), visit);
    }

    /// After a result was observed, counts which members were in every object.
    pub(super) fn finish(&mut self, serial: u64) {
        let objects = self.current.objects;
        for child in &mut self.children {
            if child.current.serial != serial {
                continue;
            }
            if child.is_member() && objects > 0 && child.current.seen >= objects {
                child.full = child.full.saturating_add(1);
            }
            child.finish(serial);
        }
    }

    fn count_visit(&mut self, kind: ValueType, visit: &mut ObserveContext<'_>) {
        if self.current.serial != visit.serial {
            self.n = self.n.saturating_add(1);
            self.current = CurrentResult {
                serial: visit.serial,
                ..CurrentResult::default()
            };
        }
        self.current.seen += 1;
        self.count_type(kind, visit);
    }

    fn count_type(&mut self, kind: ValueType, visit: &mut ObserveContext<'_>) {
        let bit = 1 << kind as u8;
        if self.current.types & bit == 0 {
            self.current.types |= bit;
            visit.grown |= self.types.add(kind, 1);
        }
    }

    fn observe_number(&mut self, number: &Number, visit: &mut ObserveContext<'_>) {
        let numeral = NumberFacts::of(number);
        self.count_visit(ValueType::Number, visit);
        if !numeral.whole {
            self.count_type(ValueType::Fraction, visit);
        }
        self.count(ShapeCounter::magnitude(numeral.value), visit);
        match numeral.code {
            Some(code) => self.observe_value(b'i', &code.to_le_bytes(), visit),
            None => self.observe_open(b'n', &numeral.value.to_bits().to_le_bytes(), visit),
        }
    }

    fn observe_string(&mut self, text: &str, visit: &mut ObserveContext<'_>) {
        let format = StringFormat::of(text);
        self.count_visit(ValueType::String, visit);
        self.count(ShapeCounter::format(format), visit);
        self.count(ShapeCounter::size(CounterKind::Length, text.len()), visit);
        let is_wording = matches!(format, StringFormat::Word | StringFormat::Text);
        if is_wording && reads_like_error(text) {
            self.count(ShapeCounter::ERROR_TEXT, visit);
        }
        if (is_wording || format == StringFormat::Empty) && text.len() <= MAX_VALUE_LEN {
            self.observe_value(b's', text.as_bytes(), visit);
        } else {
            self.observe_open(b's', text.as_bytes(), visit);
        }
    }

    fn observe_array(&mut self, items: &[Value], visit: &mut ObserveContext<'_>) {
        self.count_visit(ValueType::Array, visit);
        self.count(ShapeCounter::size(CounterKind::Items, items.len()), visit);
        if items.is_empty() {
            return;
        }
        if let Some(child) = self.step(ITEMS, visit) {
            for item in items {
                child.observe(item, visit);
            }
        }
    }

    fn observe_object(&mut self, members: &Map<String, Value>, visit: &mut ObserveContext<'_>) {
        self.count_visit(ValueType::Object, visit);
        self.current.objects += 1;
        for (name, value) in members {
            if let Some(child) = self.member(name, visit) {
                child.observe(value, visit);
            }
        }
    }

    /// The child for a member, unless it lies beyond the horizon.
    fn member(&mut self, name: &str, visit: &mut ObserveContext<'_>) -> Option<&mut Self> {
        match self.find(name) {
            // A stored name is its own step, so the name of a known member is not classified again. A
            // member whose name equals the item marker is not an item.
            Ok(at) if name != ITEMS => self.children.get_mut(at),
            Ok(_) | Err(_) => self.step(path_step(name), visit),
        }
    }

    /// The child for a step, unless it lies beyond the horizon.
    fn step(&mut self, step: &str, visit: &mut ObserveContext<'_>) -> Option<&mut Self> {
        let at = match self.find(step) {
            Ok(at) => at,
            Err(at) => self.make(at, step, visit)?,
        };
        self.children.get_mut(at)
    }

    fn find(&self, name: &str) -> Result<usize, usize> {
        self.children
            .binary_search_by(|child| (*child.name).cmp(name))
    }

    fn make(&mut self, at: usize, name: &str, visit: &mut ObserveContext<'_>) -> Option<usize> {
        if self.rank.depth >= MAX_DEPTH {
            visit.cutoffs.structure = visit.cutoffs.structure.min(PathRank::TOO_DEEP);
            return None;
        }
        let rank = self.rank.child(name);
        if rank >= visit.cutoffs.structure {
            return None;
        }
        self.children.insert(at, Self::new(name.into(), rank));
        visit.grown = true;
        visit.new_ranks.push(rank);
        if visit.new_ranks.len() > MAX_NODES
            && let Some(last) = visit.new_ranks.pop()
        {
            visit.cutoffs.structure = visit.cutoffs.structure.min(last);
        }
        Some(at)
    }

    fn count(&mut self, cell: ShapeCounter, visit: &mut ObserveContext<'_>) {
        if self.rank < visit.cutoffs.details {
            visit.grown |= bump(&mut self.cells, cell, visit.serial);
        }
    }

    fn observe_value(&mut self, tag: u8, bytes: &[u8], visit: &mut ObserveContext<'_>) {
        let Some(key) = visit.key.filter(|_| self.rank < visit.cutoffs.values) else {
            return;
        };
        if let DistinctValues::Few(values) = &mut self.values {
            visit.grown |= bump(values, key.hash(tag, bytes), visit.serial);
            self.values.bound();
        }
    }

    fn observe_open(&mut self, tag: u8, bytes: &[u8], visit: &mut ObserveContext<'_>) {
        let Some(key) = visit.key.filter(|_| self.rank < visit.cutoffs.values) else {
            return;
        };
        visit.grown |= self.open.bump(visit.serial);
        if visit.is_exact {
            self.digest = self.digest.combined(key.hash(tag, bytes));
        }
    }
}

/// Longer strings are sentences, names and addresses.
const MAX_VALUE_LEN: usize = 48;

impl ShapeNode {
    /// Merges what another shape saw at the same path.
    pub(super) fn merge(&mut self, other: &Self) {
        self.n = self.n.saturating_add(other.n);
        self.full = self.full.saturating_add(other.full);
        for (kind, count) in other.types.nonzero() {
            self.types.add(kind, count);
        }
        add_all(&mut self.cells, &other.cells);
        match (&mut self.values, &other.values) {
            (DistinctValues::Few(mine), DistinctValues::Few(theirs)) => add_all(mine, theirs),
            (DistinctValues::Few(_), DistinctValues::Many) => self.values = DistinctValues::Many,
            (DistinctValues::Many, _) => {}
        }
        self.values.bound();
        self.open.count = self.open.count.saturating_add(other.open.count);
        self.digest = self.digest.combined(other.digest);
        for child in &other.children {
            match self.find(&child.name) {
                Ok(at) => {
                    if let Some(mine) = self.children.get_mut(at) {
                        mine.merge(child);
                    }
                }
                Err(at) => {
                    let mut fresh = Self::new(child.name.clone(), child.rank);
                    fresh.merge(child);
                    self.children.insert(at, fresh);
                }
            }
        }
    }

    /// Drops what lies beyond the horizons.
    pub(super) fn cut(&mut self, horizons: &PathCutoffs) {
        if self.rank >= horizons.details {
            self.cells = Vec::new();
        }
        if self.rank >= horizons.values {
            self.drop_values();
        }
        self.children
            .retain(|child| child.rank < horizons.structure);
        if self.children.capacity() > 2 * self.children.len() + 8 {
            self.children.shrink_to_fit();
        }
        for child in &mut self.children {
            child.cut(horizons);
        }
    }

    /// Drops the values of this path and of all paths below it.
    pub(super) fn drop_all_values(&mut self) {
        self.drop_values();
        for child in &mut self.children {
            child.drop_all_values();
        }
    }

    fn drop_values(&mut self) {
        self.values = DistinctValues::Few(Vec::new());
        self.open = ResultCount::new(0);
        self.digest = ValueHash::NONE;
    }

    /// Drops the digests of this path and of all paths below it.
    pub(super) fn drop_digests(&mut self) {
        self.digest = ValueHash::NONE;
        for child in &mut self.children {
            child.drop_digests();
        }
    }

    /// Inserts a child that does not exist yet.
    pub(super) fn insert_child(&mut self, child: Self) {
        if let Err(at) = self.find(&child.name) {
            self.children.insert(at, child);
        }
    }

    pub(super) fn has_values(&self) -> bool {
        self.open.count > 0
            || !matches!(&self.values, DistinctValues::Few(values) if values.is_empty())
    }

    /// Whether this is a single member of an object, rather than all items or members.
    pub(super) fn is_member(&self) -> bool {
        !matches!(&*self.name, ITEMS | MEMBERS)
    }

    pub(super) fn get(&self, name: &str) -> Option<&Self> {
        self.find(name).ok().and_then(|at| self.children.get(at))
    }

    pub(super) fn cell(&self, cell: ShapeCounter) -> u64 {
        count_of(&self.cells, cell)
    }
}
