use std::collections::BinaryHeap;

use serde_json::{Map, Number, Value};

use super::bound::{Horizons, MAX_DEPTH, MAX_NODES, Rank};
use super::cell::{Cell, Facet, Numeral, Type};
use super::count::{Entry, Tally, Types, Values, add_all, bump, count_of};
use super::format::Format;
use super::key::ValueKey;
use super::name::{ITEMS, MEMBERS, step};

/// What was seen at one path.
///
/// Everything is counted once per result: the items of one array resemble each other, and a test
/// that took them for independent observations would call an unusual array drift.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) name: Box<str>,
    pub(super) rank: Rank,
    /// Results with this path.
    pub(super) n: u64,
    /// Results in which every object at the parent had this member.
    pub(super) full: u64,
    pub(super) types: Types,
    /// Sorted by cell.
    pub(super) cells: Vec<Entry<Cell>>,
    pub(super) values: Values,
    /// Results with a scalar here that is too long or too odd to be a value of an enumeration.
    pub(super) open: Tally,
    /// Sorted by name.
    pub(super) children: Vec<Self>,
    now: Now,
}

/// What was seen in the result being observed, which has this serial number.
#[derive(Clone, Copy, Debug, Default)]
struct Now {
    serial: u64,
    seen: u64,
    objects: u64,
    types: u8,
}

/// What observing one result needs besides the node.
pub(super) struct Visit<'k> {
    /// Tells the results apart; stored counts carry the serial of the last result they counted.
    pub(super) serial: u64,
    pub(super) key: Option<&'k ValueKey>,
    pub(super) horizons: Horizons,
    /// Whether anything takes more room than before.
    pub(super) grown: bool,
    /// The first nodes of those made in this visit. It stops a result of a million names from
    /// making a million nodes.
    pub(super) made: BinaryHeap<Rank>,
}

impl Node {
    pub(super) const fn new(name: Box<str>, rank: Rank) -> Self {
        Self {
            name,
            rank,
            n: 0,
            full: 0,
            types: Types::NONE,
            cells: Vec::new(),
            values: Values::Few(Vec::new()),
            open: Tally::new(0),
            children: Vec::new(),
            now: Now {
                serial: 0,
                seen: 0,
                objects: 0,
                types: 0,
            },
        }
    }

    pub(super) fn observe(&mut self, value: &Value, visit: &mut Visit<'_>) {
        match value {
            Value::Null => self.arrive(Type::Null, visit),
            Value::Bool(value) => {
                self.arrive(Type::Boolean, visit);
                self.observe_value(b'b', &[u8::from(*value)], visit);
            }
            Value::Number(number) => self.observe_number(number, visit),
            Value::String(text) => self.observe_string(text, visit),
            Value::Array(items) => self.observe_array(items, visit),
            Value::Object(members) => self.observe_object(members, visit),
        }
    }

    pub(super) fn observe_plain(&mut self, text: &str, visit: &mut Visit<'_>) {
        self.arrive(Type::String, visit);
        self.count(Cell::format(Format::of_plain(text)), visit);
        self.count(Cell::size(Facet::Length, text.len()), visit);
        self.count(Cell::size(Facet::Lines, text.lines().count()), visit);
    }

    /// Counts, when a result has been observed, which members were in every object.
    pub(super) fn finish(&mut self, serial: u64) {
        let objects = self.now.objects;
        for child in &mut self.children {
            if child.now.serial != serial {
                continue;
            }
            if child.is_member() && objects > 0 && child.now.seen >= objects {
                child.full = child.full.saturating_add(1);
            }
            child.finish(serial);
        }
    }

    fn arrive(&mut self, kind: Type, visit: &mut Visit<'_>) {
        if self.now.serial != visit.serial {
            self.n = self.n.saturating_add(1);
            self.now = Now {
                serial: visit.serial,
                ..Now::default()
            };
        }
        self.now.seen += 1;
        self.count_type(kind, visit);
    }

    fn count_type(&mut self, kind: Type, visit: &mut Visit<'_>) {
        let bit = 1 << kind as u8;
        if self.now.types & bit == 0 {
            self.now.types |= bit;
            visit.grown |= self.types.add(kind, 1);
        }
    }

    fn observe_number(&mut self, number: &Number, visit: &mut Visit<'_>) {
        let numeral = Numeral::of(number);
        self.arrive(Type::Number, visit);
        if !numeral.whole {
            self.count_type(Type::Fraction, visit);
        }
        self.count(Cell::magnitude(numeral.value), visit);
        match numeral.code {
            Some(code) => self.observe_value(b'i', &code.to_le_bytes(), visit),
            None => self.observe_open(visit),
        }
    }

    fn observe_string(&mut self, text: &str, visit: &mut Visit<'_>) {
        let format = Format::of(text);
        self.arrive(Type::String, visit);
        self.count(Cell::format(format), visit);
        self.count(Cell::size(Facet::Length, text.len()), visit);
        if matches!(format, Format::Empty | Format::Word | Format::Text)
            && text.len() <= MAX_VALUE_LEN
        {
            self.observe_value(b's', text.as_bytes(), visit);
        } else {
            self.observe_open(visit);
        }
    }

    fn observe_array(&mut self, items: &[Value], visit: &mut Visit<'_>) {
        self.arrive(Type::Array, visit);
        self.count(Cell::size(Facet::Items, items.len()), visit);
        if items.is_empty() {
            return;
        }
        if let Some(child) = self.step(ITEMS, visit) {
            for item in items {
                child.observe(item, visit);
            }
        }
    }

    fn observe_object(&mut self, members: &Map<String, Value>, visit: &mut Visit<'_>) {
        self.arrive(Type::Object, visit);
        self.now.objects += 1;
        for (name, value) in members {
            if let Some(child) = self.member(name, visit) {
                child.observe(value, visit);
            }
        }
    }

    /// The child for a member, unless it lies beyond the horizon.
    fn member(&mut self, name: &str, visit: &mut Visit<'_>) -> Option<&mut Self> {
        match self.find(name) {
            // A kept name is its own step, so that the name of a known member is not looked at. A
            // member called like the marker of items is no item.
            Ok(at) if name != ITEMS => self.children.get_mut(at),
            Ok(_) | Err(_) => self.step(step(name), visit),
        }
    }

    /// The child for a step, unless it lies beyond the horizon.
    fn step(&mut self, step: &str, visit: &mut Visit<'_>) -> Option<&mut Self> {
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

    fn make(&mut self, at: usize, name: &str, visit: &mut Visit<'_>) -> Option<usize> {
        if self.rank.depth >= MAX_DEPTH {
            visit.horizons.structure = visit.horizons.structure.min(Rank::TOO_DEEP);
            return None;
        }
        let rank = self.rank.child(name);
        if rank >= visit.horizons.structure {
            return None;
        }
        self.children.insert(at, Self::new(name.into(), rank));
        visit.grown = true;
        visit.made.push(rank);
        if visit.made.len() > MAX_NODES
            && let Some(last) = visit.made.pop()
        {
            visit.horizons.structure = visit.horizons.structure.min(last);
        }
        Some(at)
    }

    fn count(&mut self, cell: Cell, visit: &mut Visit<'_>) {
        if self.rank < visit.horizons.details {
            visit.grown |= bump(&mut self.cells, cell, visit.serial);
        }
    }

    fn observe_value(&mut self, tag: u8, bytes: &[u8], visit: &mut Visit<'_>) {
        let Some(key) = visit.key.filter(|_| self.rank < visit.horizons.values) else {
            return;
        };
        if let Values::Few(values) = &mut self.values {
            visit.grown |= bump(values, key.hash(tag, bytes), visit.serial);
            self.values.bound();
        }
    }

    fn observe_open(&mut self, visit: &mut Visit<'_>) {
        if visit.key.is_some() && self.rank < visit.horizons.values {
            visit.grown |= self.open.bump(visit.serial);
        }
    }
}

/// Longer strings are sentences, names and addresses.
const MAX_VALUE_LEN: usize = 48;

impl Node {
    /// Adds what was seen of the same path elsewhere.
    pub(super) fn merge(&mut self, other: &Self) {
        self.n = self.n.saturating_add(other.n);
        self.full = self.full.saturating_add(other.full);
        for (kind, count) in other.types.seen() {
            self.types.add(kind, count);
        }
        add_all(&mut self.cells, &other.cells);
        match (&mut self.values, &other.values) {
            (Values::Few(mine), Values::Few(theirs)) => add_all(mine, theirs),
            (Values::Few(_), Values::Many) => self.values = Values::Many,
            (Values::Many, _) => {}
        }
        self.values.bound();
        self.open.count = self.open.count.saturating_add(other.open.count);
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
    pub(super) fn cut(&mut self, horizons: &Horizons) {
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

    /// Drops the values of this path and of all below.
    pub(super) fn drop_all_values(&mut self) {
        self.drop_values();
        for child in &mut self.children {
            child.drop_all_values();
        }
    }

    fn drop_values(&mut self) {
        self.values = Values::Few(Vec::new());
        self.open = Tally::new(0);
    }

    /// Takes a child that is not there yet.
    pub(super) fn adopt(&mut self, child: Self) {
        if let Err(at) = self.find(&child.name) {
            self.children.insert(at, child);
        }
    }

    pub(super) fn has_values(&self) -> bool {
        self.open.count > 0 || !matches!(&self.values, Values::Few(values) if values.is_empty())
    }

    /// Whether this is one member of an object, rather than all items or members.
    pub(super) fn is_member(&self) -> bool {
        !matches!(&*self.name, ITEMS | MEMBERS)
    }

    pub(super) fn get(&self, name: &str) -> Option<&Self> {
        self.find(name).ok().and_then(|at| self.children.get(at))
    }

    pub(super) fn cell(&self, cell: Cell) -> u64 {
        count_of(&self.cells, cell)
    }
}
