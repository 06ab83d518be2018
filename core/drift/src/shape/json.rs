use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::channel::Channel;
use super::counts::{CountEntry, DistinctValues, ResultCount};
use super::member_name::{ITEMS, path_step};
use super::result_shape::{ChannelShape, Shape, ShapeVersion};
use super::shape_counter::{CounterKind, ShapeCounter, ValueType};
use super::shape_node::ShapeNode;
use super::size_limits::{MAX_DEPTH, MAX_EXACT_RESULTS, PathCutoffs, PathRank};
use super::value_key::{KeyId, ValueHash};

const FIRST_VERSION: u64 = 1;
const VERSION: u64 = 2;

/// The error for JSON that is not a shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidShape {
    /// Its version is missing or unknown to this program.
    #[error("not a shape of version 1 or 2")]
    Version,
    /// A member is missing, has the wrong type, or has a value that no shape has.
    #[error("`{0}` is missing or invalid")]
    Member(&'static str),
    /// It has a member that shapes do not have.
    #[error("shapes have no member `{0}`")]
    Unknown(String),
    /// It is larger than any shape can be.
    #[error("larger than a shape can be")]
    TooLarge,
}

impl Shape {
    /// The shape as JSON: sorted, and the same for the same results.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let shape = self.canonical();
        let mut members = BTreeMap::new();
        let channels = shape.channels.iter().map(|(channel, seen)| {
            let mut members = BTreeMap::from([("results", seen.results.into())]);
            if seen.node.n > 0 {
                members.insert("root", write_node(&seen.node));
            }
            (channel.as_str(), object(members))
        });
        members.insert("channels", object(channels.collect()));
        if shape.cutoffs != PathCutoffs::OPEN {
            members.insert("cut", write_cutoffs(&shape.cutoffs));
        }
        members.insert(
            "key",
            shape.key.map_or(Value::Null, |key| key.to_string().into()),
        );
        if let Some(exact) = shape.exact.as_ref().filter(|it| !it.is_empty()) {
            members.insert("exact", write_hashes(exact).into());
        }
        members.insert("results", shape.results.into());
        let version = match shape.version {
            ShapeVersion::V1 => FIRST_VERSION,
            ShapeVersion::V2 => VERSION,
        };
        members.insert("v", version.into());
        object(members)
    }

    /// Reads what [`to_json`](Self::to_json) wrote.
    ///
    /// # Errors
    /// Fails if the JSON is not a shape, or contradicts itself.
    pub fn from_json(json: &Value) -> Result<Self, InvalidShape> {
        let version = match json.get("v").and_then(Value::as_u64) {
            Some(FIRST_VERSION) => ShapeVersion::V1,
            Some(VERSION) => ShapeVersion::V2,
            _ => return Err(InvalidShape::Version),
        };
        let names = ["channels", "cut", "exact", "key", "results", "v"];
        let members = Members::of(json, "shape", &names)?;
        let key = match members.get("key") {
            Some(Value::String(text)) => {
                Some(KeyId::parse(text).ok_or(InvalidShape::Member("key"))?)
            }
            Some(Value::Null) => None,
            _ => return Err(InvalidShape::Member("key")),
        };
        let mut shape = Self::empty(key);
        shape.results = members.count("results")?;
        shape.version = version;
        shape.exact = read_exact(&members, &shape)?;
        if let Some(cut) = members.get("cut") {
            shape.cutoffs = read_cutoffs(cut)?;
        }
        let channels = members.get("channels").and_then(Value::as_object);
        for (name, seen) in channels.ok_or(InvalidShape::Member("channels"))? {
            let channel = Channel::ALL
                .into_iter()
                .find(|channel| channel.as_str() == name);
            let channel = channel.ok_or(InvalidShape::Member("channels"))?;
            let seen = read_channel(seen, channel, &shape)?;
            shape.channels.insert(channel, seen);
        }
        if shape.is_empty() && (!shape.channels.is_empty() || shape.cutoffs != PathCutoffs::OPEN) {
            return Err(InvalidShape::Member("results"));
        }
        if shape.current_cutoffs() != shape.cutoffs {
            // A shape would have truncated this itself, so a shape did not write it. The first version had
            // other costs.
            if version != ShapeVersion::V1 {
                return Err(InvalidShape::TooLarge);
            }
            shape = shape.canonical().into_owned();
        }
        Ok(shape)
    }
}

fn object(members: BTreeMap<&str, Value>) -> Value {
    let members = members
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value));
    Value::Object(members.collect())
}

fn write_cutoffs(horizons: &PathCutoffs) -> Value {
    let named = [
        ("details", horizons.details),
        ("structure", horizons.structure),
        ("values", horizons.values),
    ];
    let cut = named.into_iter().filter(|(_, rank)| *rank != PathRank::END);
    object(
        cut.map(|(name, rank)| (name, format!("{}:{:016x}", rank.depth, rank.hash).into()))
            .collect(),
    )
}

fn write_node(node: &ShapeNode) -> Value {
    let mut members = BTreeMap::from([("n", node.n.into())]);
    if node.full > 0 {
        members.insert("all", node.full.into());
    }
    let types = node
        .types
        .nonzero()
        .map(|(kind, count)| (kind.letter(), count.into()));
    members.insert("t", object(types.collect()));
    for facet in CounterKind::ALL {
        let cells = node.cells.iter().filter(|entry| entry.of.kind == facet);
        let cells: Map<_, _> = cells
            .map(|entry| (entry.of.to_string(), entry.count.into()))
            .collect();
        if !cells.is_empty() {
            members.insert(facet.letter(), Value::Object(cells));
        }
    }
    if node.open.count > 0 {
        members.insert("u", node.open.count.into());
    }
    if node.digest != ValueHash::NONE {
        members.insert("x", node.digest.to_string().into());
    }
    match &node.values {
        DistinctValues::Few(values) if values.is_empty() => {}
        DistinctValues::Few(values) => {
            members.insert("v", write_hashes(values).into());
        }
        DistinctValues::Many => {
            members.insert("v", MANY.into());
        }
    }
    if !node.children.is_empty() {
        let children = node
            .children
            .iter()
            .map(|child| (&*child.name, write_node(child)));
        members.insert("c", object(children.collect()));
    }
    object(members)
}

fn write_hashes(values: &[CountEntry<ValueHash>]) -> String {
    let values: Vec<_> = values
        .iter()
        .map(|entry| format!("{}={}", entry.of, entry.count))
        .collect();
    values.join(" ")
}

/// The hashes of the results; all of them or none.
fn read_exact(
    members: &Members<'_>,
    shape: &Shape,
) -> Result<Option<Vec<CountEntry<ValueHash>>>, InvalidShape> {
    const INVALID: InvalidShape = InvalidShape::Member("exact");
    let Some(hashes) = members.get("exact") else {
        return Ok(shape.is_empty().then(Vec::new));
    };
    if shape.is_empty() {
        return Err(InvalidShape::Member("results"));
    }
    let hashes = read_hashes(hashes.as_str().ok_or(INVALID)?, shape.results).ok_or(INVALID)?;
    let total = hashes.iter().map(|entry| entry.count).sum::<u64>();
    let complete = total == shape.results && total <= MAX_EXACT_RESULTS && shape.key.is_some();
    complete.then_some(Some(hashes)).ok_or(INVALID)
}

/// Hashes in order, each in at most `of` results.
fn read_hashes(text: &str, of: u64) -> Option<Vec<CountEntry<ValueHash>>> {
    let mut values: Vec<CountEntry<ValueHash>> = Vec::new();
    for entry in text.split(' ') {
        let (hash, count) = entry.split_once('=')?;
        let hash = ValueHash::parse(hash)?;
        let number: u64 = count.parse().ok()?;
        let in_order = values.last().is_none_or(|last| last.of < hash);
        if !in_order || number == 0 || number > of || number.to_string() != count {
            return None;
        }
        values.push(CountEntry::new(hash, number));
    }
    Some(values)
}

const MANY: &str = "many";

/// The members of an object; fails on unknown names.
struct Members<'j>(&'j Map<String, Value>);

impl<'j> Members<'j> {
    fn of(json: &'j Value, what: &'static str, names: &[&str]) -> Result<Self, InvalidShape> {
        let members = json.as_object().ok_or(InvalidShape::Member(what))?;
        match members.keys().find(|name| !names.contains(&name.as_str())) {
            Some(unknown) => Err(InvalidShape::Unknown(unknown.chars().take(64).collect())),
            None => Ok(Self(members)),
        }
    }

    fn get(&self, name: &str) -> Option<&'j Value> {
        self.0.get(name)
    }

    /// A count, which is never written as zero, except the count of all results.
    fn count(&self, name: &'static str) -> Result<u64, InvalidShape> {
        self.get(name)
            .and_then(Value::as_u64)
            .ok_or(InvalidShape::Member(name))
    }

    fn optional_count(&self, name: &'static str) -> Result<u64, InvalidShape> {
        match self.get(name) {
            Some(_) => self.count(name).and_then(|count| positive(count, name)),
            None => Ok(0),
        }
    }

    fn object(
        &self,
        name: &'static str,
    ) -> Result<impl Iterator<Item = (&'j String, &'j Value)> + use<'j>, InvalidShape> {
        match self.get(name) {
            Some(Value::Object(members)) => Ok(Some(members).into_iter().flatten()),
            Some(_) => Err(InvalidShape::Member(name)),
            None => Ok(None.into_iter().flatten()),
        }
    }
}

const fn positive(count: u64, name: &'static str) -> Result<u64, InvalidShape> {
    if count == 0 {
        Err(InvalidShape::Member(name))
    } else {
        Ok(count)
    }
}

/// A count of results that cannot exceed the results it is taken from.
fn read_bounded_count(value: &Value, of: u64, name: &'static str) -> Result<u64, InvalidShape> {
    let count = value.as_u64().filter(|count| (1..=of).contains(count));
    count.ok_or(InvalidShape::Member(name))
}

fn read_cutoffs(cut: &Value) -> Result<PathCutoffs, InvalidShape> {
    let members = Members::of(cut, "cut", &["details", "structure", "values"])?;
    let read = |name: &'static str| match members.get(name) {
        None => Ok(PathRank::END),
        Some(rank) => rank
            .as_str()
            .and_then(read_rank)
            .ok_or(InvalidShape::Member(name)),
    };
    let horizons = PathCutoffs {
        structure: read("structure")?,
        details: read("details")?,
        values: read("values")?,
    };
    let canonical = horizons == horizons.min(PathCutoffs::OPEN) && horizons != PathCutoffs::OPEN;
    canonical
        .then_some(horizons)
        .ok_or(InvalidShape::Member("cut"))
}

fn read_rank(text: &str) -> Option<PathRank> {
    let (depth, hash) = text.split_once(':')?;
    let rank = PathRank {
        depth: depth.parse().ok()?,
        hash: u64::from_str_radix(hash, 16).ok()?,
    };
    let written = format!("{}:{:016x}", rank.depth, rank.hash) == text;
    (written && rank <= PathRank::TOO_DEEP).then_some(rank)
}

fn read_channel(
    json: &Value,
    channel: Channel,
    shape: &Shape,
) -> Result<ChannelShape, InvalidShape> {
    let members = Members::of(json, "channels", &["results", "root"])?;
    let mut seen = ChannelShape::new(channel);
    let results = members
        .get("results")
        .ok_or(InvalidShape::Member("results"))?;
    seen.results = read_bounded_count(results, shape.results, "results")?;
    if let Some(root) = members.get("root") {
        read_node(root, &mut seen.node, seen.results, shape)?;
    }
    Ok(seen)
}

const NODE: [&str; 14] = [
    "a", "all", "b", "c", "e", "f", "l", "m", "n", "r", "t", "u", "v", "x",
];

/// Reads a node that at most `of` results can have.
fn read_node(
    json: &Value,
    node: &mut ShapeNode,
    of: u64,
    shape: &Shape,
) -> Result<(), InvalidShape> {
    if node.rank >= shape.cutoffs.structure || node.rank.depth > MAX_DEPTH {
        return Err(InvalidShape::Member("cut"));
    }
    let members = Members::of(json, "root", &NODE)?;
    node.n = read_bounded_count(members.get("n").ok_or(InvalidShape::Member("n"))?, of, "n")?;
    node.full = members.optional_count("all")?;
    let mut sum = 0_u64;
    for (letter, count) in members.object("t")? {
        let kind = ValueType::ALL
            .into_iter()
            .find(|kind| kind.letter() == letter);
        let count = read_bounded_count(count, node.n, "t")?;
        sum = sum.saturating_add(count);
        node.types
            .add(kind.ok_or(InvalidShape::Member("t"))?, count);
    }
    if node.full > node.n || sum < node.n || (node.full > 0 && !node.is_member()) {
        return Err(InvalidShape::Member("n"));
    }
    read_cells(&members, node)?;
    read_values(&members, node)?;
    if (node.rank >= shape.cutoffs.details && !node.cells.is_empty())
        || (node.has_values() && !shape.keeps_values(node))
        || (node.digest != ValueHash::NONE && shape.exact.is_none())
    {
        return Err(InvalidShape::Member("cut"));
    }
    for (name, child) in members.object("c")? {
        let of = node.types.get(if name == ITEMS {
            ValueType::Array
        } else {
            ValueType::Object
        });
        if name != ITEMS && path_step(name) != name {
            return Err(InvalidShape::Member("c"));
        }
        let mut fresh = ShapeNode::new(name.as_str().into(), node.rank.child(name));
        read_node(child, &mut fresh, of, shape)?;
        node.insert_child(fresh);
    }
    Ok(())
}

fn read_cells(members: &Members<'_>, node: &mut ShapeNode) -> Result<(), InvalidShape> {
    for facet in CounterKind::ALL {
        for (name, count) in members.object(facet.letter())? {
            let cell =
                ShapeCounter::parse(facet, name).ok_or(InvalidShape::Member(facet.letter()))?;
            node.cells.push(CountEntry::new(
                cell,
                read_bounded_count(count, node.n, facet.letter())?,
            ));
        }
    }
    node.cells.sort_unstable_by_key(|entry| entry.of);
    Ok(())
}

fn read_values(members: &Members<'_>, node: &mut ShapeNode) -> Result<(), InvalidShape> {
    const INVALID: InvalidShape = InvalidShape::Member("v");
    let open = members.optional_count("u")?;
    if open > node.n {
        return Err(InvalidShape::Member("u"));
    }
    node.open = ResultCount::new(open);
    if let Some(digest) = members.get("x") {
        let read = digest.as_str().and_then(ValueHash::parse);
        node.digest = read
            .filter(|it| open > 0 && *it != ValueHash::NONE)
            .ok_or(InvalidShape::Member("x"))?;
    }
    let Some(values) = members.get("v") else {
        return Ok(());
    };
    let text = values.as_str().ok_or(INVALID)?;
    if text == MANY {
        node.values = DistinctValues::Many;
        return Ok(());
    }
    let values = read_hashes(text, node.n).ok_or(INVALID)?;
    if values.len() > super::size_limits::MAX_VALUES {
        return Err(INVALID);
    }
    node.values = DistinctValues::Few(values);
    Ok(())
}
