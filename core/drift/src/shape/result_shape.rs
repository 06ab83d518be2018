use std::borrow::Cow;
use std::collections::{BTreeMap, BinaryHeap};

use serde_json::Value;
use toolwarden_model::json::to_canonical_string;

use super::channel::{Channel, ChannelContent, split_channels};
use super::counts::{CountEntry, add_all, bump};
use super::shape_node::{ObserveContext, ShapeNode};
use super::size_limits::{MAX_EXACT_RESULTS, PathCutoffs, PathRank};
use super::value_key::{KeyId, ValueHash, ValueKey};

/// What the results of one tool look like.
///
/// Shapes are a commutative monoid: results can be observed in any order and in any number of shapes,
/// and the shapes merged in any order. The outcome is the same to the byte, even when the bounds are
/// reached. A shape takes at most [`MAX_BYTES`](super::MAX_BYTES) as JSON, and holds field names,
/// counts and hashes, but no values.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The key of the value hashes; without a key, a shape that has results keeps no values.
    pub(super) key: Option<KeyId>,
    pub(super) results: u64,
    pub(super) channels: BTreeMap<Channel, ChannelShape>,
    pub(super) cutoffs: PathCutoffs,
    /// The hash of each result, while there are few; `None` if they are not known.
    pub(super) exact: Option<Vec<CountEntry<ValueHash>>>,
    /// The version of the oldest part.
    pub(super) version: ShapeVersion,
    serial: u64,
}

/// What the counts of a shape cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ShapeVersion {
    /// Neither booleans nor texts that read like errors are counted, and results have no hashes.
    V1,
    /// Everything.
    V2,
}

/// What was seen in one channel.
#[derive(Clone, Debug)]
pub(super) struct ChannelShape {
    /// Results that used the channel.
    pub(super) results: u64,
    pub(super) node: ShapeNode,
    serial: u64,
}

impl Shape {
    /// An empty shape whose values will be hashed under this key.
    #[must_use]
    pub const fn new(key: KeyId) -> Self {
        Self::empty(Some(key))
    }

    pub(super) const fn empty(key: Option<KeyId>) -> Self {
        Self {
            key,
            results: 0,
            channels: BTreeMap::new(),
            cutoffs: PathCutoffs::OPEN,
            exact: Some(Vec::new()),
            version: ShapeVersion::V2,
            serial: 0,
        }
    }

    /// Adds a result.
    ///
    /// If the key differs from that of the earlier results, the shape no longer keeps values.
    pub fn observe(&mut self, result: &Value, key: &ValueKey) {
        self.reconcile_key(Some(key.id()));
        self.results = self.results.saturating_add(1);
        self.serial += 1;
        self.observe_exact(result, key);
        let mut visit = ObserveContext {
            serial: self.serial,
            key: self.key.map(|_| key),
            cutoffs: self.cutoffs,
            is_exact: self.exact.is_some(),
            grown: false,
            new_ranks: BinaryHeap::new(),
        };
        split_channels(result, |channel, part| {
            let seen = self
                .channels
                .entry(channel)
                .or_insert_with(|| ChannelShape::new(channel));
            seen.observe(&part, &mut visit);
        });
        for seen in self.channels.values_mut() {
            if seen.serial == self.serial {
                seen.node.finish(self.serial);
            }
        }
        if visit.grown || visit.cutoffs != self.cutoffs {
            self.cutoffs = visit.cutoffs;
            self.bound();
        }
    }

    /// Adds all results of another shape.
    ///
    /// Hashes under different keys cannot be compared, so the shape then no longer keeps values.
    pub fn merge(&mut self, other: &Self) {
        if other.is_empty() {
            return;
        }
        self.reconcile_key(other.key);
        self.version = if self.is_empty() {
            other.version
        } else {
            self.version.min(other.version)
        };
        self.results = self.results.saturating_add(other.results);
        self.cutoffs = self.cutoffs.min(other.cutoffs);
        for (channel, theirs) in &other.channels {
            let seen = self
                .channels
                .entry(*channel)
                .or_insert_with(|| ChannelShape::new(*channel));
            seen.results = seen.results.saturating_add(theirs.results);
            seen.node.merge(&theirs.node);
        }
        match (&mut self.exact, &other.exact) {
            (Some(mine), Some(theirs)) if self.results <= MAX_EXACT_RESULTS => {
                add_all(mine, theirs);
            }
            _ => self.drop_exact(),
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

    /// Whether the shape left something out because of its bounds.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.canonical().cutoffs != PathCutoffs::OPEN
    }

    /// The key under which its values are hashed, if it keeps any.
    #[must_use]
    pub const fn key_id(&self) -> Option<KeyId> {
        self.key
    }

    /// The same shape without value hashes, for files that others may read.
    #[must_use]
    pub fn without_values(&self) -> Self {
        let mut shape = self.clone();
        shape.key = None;
        shape.drop_values();
        shape
    }

    /// The shape within its bounds. Counts that gained a digit may have exceeded them since it last
    /// grew.
    pub(super) fn canonical(&self) -> Cow<'_, Self> {
        if self.current_cutoffs() == self.cutoffs {
            return Cow::Borrowed(self);
        }
        let mut shape = self.clone();
        shape.bound();
        Cow::Owned(shape)
    }

    pub(super) fn current_cutoffs(&self) -> PathCutoffs {
        self.cutoffs
            .of(self.channels.values().map(|seen| &seen.node))
    }

    /// Whether the values of this node are kept.
    pub(super) fn keeps_values(&self, node: &ShapeNode) -> bool {
        self.key.is_some() && node.rank < self.cutoffs.values
    }

    fn bound(&mut self) {
        self.cutoffs = self.current_cutoffs();
        if self.cutoffs != PathCutoffs::OPEN {
            for seen in self.channels.values_mut() {
                seen.node.cut(&self.cutoffs);
            }
        }
    }

    fn reconcile_key(&mut self, key: Option<KeyId>) {
        if self.is_empty() {
            self.key = key;
        } else if self.key.is_some() && self.key != key {
            self.key = None;
            self.drop_values();
        }
    }

    /// Hashes a result, if all results before it were hashed and there are few of them.
    fn observe_exact(&mut self, result: &Value, key: &ValueKey) {
        let few = self.key.is_some() && self.results <= MAX_EXACT_RESULTS;
        match &mut self.exact {
            Some(known) if few => {
                bump(
                    known,
                    key.hash(b'r', result_text(result).as_bytes()),
                    self.serial,
                );
            }
            Some(_) => self.drop_exact(),
            None => {}
        }
    }

    fn drop_exact(&mut self) {
        self.exact = None;
        for seen in self.channels.values_mut() {
            seen.node.drop_digests();
        }
    }

    fn drop_values(&mut self) {
        self.exact = None;
        self.cutoffs.values = PathRank::END;
        for seen in self.channels.values_mut() {
            seen.node.drop_all_values();
        }
    }
}

/// The text of a result, without what only the client reads.
fn result_text(result: &Value) -> String {
    let is_call_result = result.get("content").is_some_and(Value::is_array);
    match result {
        Value::Object(members) if is_call_result && members.contains_key("_meta") => {
            let mut members = members.clone();
            members.remove("_meta");
            to_canonical_string(&Value::Object(members))
        }
        _ => to_canonical_string(result),
    }
}

impl PartialEq for Shape {
    fn eq(&self, other: &Self) -> bool {
        self.to_json() == other.to_json()
    }
}

impl ChannelShape {
    pub(super) fn new(channel: Channel) -> Self {
        let name = channel.as_str();
        Self {
            results: 0,
            node: ShapeNode::new(name.into(), PathRank::root(name)),
            serial: 0,
        }
    }

    fn observe(&mut self, part: &ChannelContent<'_>, visit: &mut ObserveContext<'_>) {
        if self.serial != visit.serial {
            self.serial = visit.serial;
            self.results = self.results.saturating_add(1);
        }
        match part {
            ChannelContent::Value(value) => self.node.observe(value, visit),
            ChannelContent::Parsed(value) => self.node.observe(value, visit),
            ChannelContent::Plain(text) => self.node.observe_plain(text, visit),
            ChannelContent::Nothing => {}
        }
    }
}
