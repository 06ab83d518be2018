use std::borrow::Cow;
use std::collections::{BTreeMap, BinaryHeap};

use serde_json::Value;

use super::bound::{Horizons, Rank};
use super::channel::{Channel, Part, take_apart};
use super::key::{KeyId, ValueKey};
use super::node::{Node, Visit};

/// What the results of one tool look like.
///
/// Shapes are a commutative monoid: results can be observed in any order, in any number of shapes,
/// and the shapes merged in any order, and the outcome is the same to the byte, also when the bounds
/// are reached. It takes at most [`MAX_BYTES`](super::MAX_BYTES) as JSON, and holds field names,
/// counts and hashes, but no values.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Whose hashes the values are; without a key, a shape that has results keeps no values.
    pub(super) key: Option<KeyId>,
    pub(super) results: u64,
    pub(super) channels: BTreeMap<Channel, Seen>,
    pub(super) horizons: Horizons,
    serial: u64,
}

/// What was seen in one channel.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// Results that used the channel.
    pub(super) results: u64,
    pub(super) node: Node,
    serial: u64,
}

impl Shape {
    /// The shape of no results, whose values will be hashed under this key.
    #[must_use]
    pub const fn new(key: KeyId) -> Self {
        Self::empty(Some(key))
    }

    pub(super) const fn empty(key: Option<KeyId>) -> Self {
        Self {
            key,
            results: 0,
            channels: BTreeMap::new(),
            horizons: Horizons::OPEN,
            serial: 0,
        }
    }

    /// Adds a result.
    ///
    /// Under another key than that of the results before, values are no longer kept.
    pub fn observe(&mut self, result: &Value, key: &ValueKey) {
        self.agree_on(Some(key.id()));
        self.results = self.results.saturating_add(1);
        self.serial += 1;
        let mut visit = Visit {
            serial: self.serial,
            key: self.key.map(|_| key),
            horizons: self.horizons,
            grown: false,
            made: BinaryHeap::new(),
        };
        take_apart(result, |channel, part| {
            let seen = self
                .channels
                .entry(channel)
                .or_insert_with(|| Seen::new(channel));
            seen.observe(&part, &mut visit);
        });
        for seen in self.channels.values_mut() {
            if seen.serial == self.serial {
                seen.node.finish(self.serial);
            }
        }
        if visit.grown || visit.horizons != self.horizons {
            self.horizons = visit.horizons;
            self.bound();
        }
    }

    /// Adds all results of another shape.
    ///
    /// Hashes under different keys cannot be compared, so values are then no longer kept.
    pub fn merge(&mut self, other: &Self) {
        if other.is_empty() {
            return;
        }
        self.agree_on(other.key);
        self.results = self.results.saturating_add(other.results);
        self.horizons = self.horizons.min(other.horizons);
        for (channel, theirs) in &other.channels {
            let seen = self
                .channels
                .entry(*channel)
                .or_insert_with(|| Seen::new(*channel));
            seen.results = seen.results.saturating_add(theirs.results);
            seen.node.merge(&theirs.node);
        }
        if self.key.is_none() {
            self.drop_values();
        }
        self.bound();
    }

    /// How many results it describes.
    #[must_use]
    pub const fn results(&self) -> u64 {
        self.results
    }

    /// Whether it describes no results.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.results == 0
    }

    /// Whether something was left out because it would not fit.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.canonical().horizons != Horizons::OPEN
    }

    /// The key its values are hashed under, if it keeps any.
    #[must_use]
    pub const fn key_id(&self) -> Option<KeyId> {
        self.key
    }

    /// The same shape without hashes of values, for files others may read.
    #[must_use]
    pub fn without_values(&self) -> Self {
        let mut shape = self.clone();
        shape.key = None;
        shape.drop_values();
        shape
    }

    /// The shape within its bounds. Counts that have gained a digit may have pushed it beyond them
    /// since it last grew.
    pub(super) fn canonical(&self) -> Cow<'_, Self> {
        if self.current_horizons() == self.horizons {
            return Cow::Borrowed(self);
        }
        let mut shape = self.clone();
        shape.bound();
        Cow::Owned(shape)
    }

    pub(super) fn current_horizons(&self) -> Horizons {
        self.horizons
            .of(self.channels.values().map(|seen| &seen.node))
    }

    /// Whether the values of this node are kept.
    pub(super) fn keeps_values(&self, node: &Node) -> bool {
        self.key.is_some() && node.rank < self.horizons.values
    }

    fn bound(&mut self) {
        self.horizons = self.current_horizons();
        if self.horizons != Horizons::OPEN {
            for seen in self.channels.values_mut() {
                seen.node.cut(&self.horizons);
            }
        }
    }

    fn agree_on(&mut self, key: Option<KeyId>) {
        if self.is_empty() {
            self.key = key;
        } else if self.key.is_some() && self.key != key {
            self.key = None;
            self.drop_values();
        }
    }

    fn drop_values(&mut self) {
        self.horizons.values = Rank::END;
        for seen in self.channels.values_mut() {
            seen.node.drop_all_values();
        }
    }
}

impl PartialEq for Shape {
    fn eq(&self, other: &Self) -> bool {
        self.to_json() == other.to_json()
    }
}

impl Seen {
    pub(super) fn new(channel: Channel) -> Self {
        let name = channel.as_str();
        Self {
            results: 0,
            node: Node::new(name.into(), Rank::root(name)),
            serial: 0,
        }
    }

    fn observe(&mut self, part: &Part<'_>, visit: &mut Visit<'_>) {
        if self.serial != visit.serial {
            self.serial = visit.serial;
            self.results = self.results.saturating_add(1);
        }
        match part {
            Part::Value(value) => self.node.observe(value, visit),
            Part::Parsed(value) => self.node.observe(value, visit),
            Part::Plain(text) => self.node.observe_plain(text, visit),
            Part::Nothing => {}
        }
    }
}
