use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::bound::{Horizons, MAX_DEPTH, Rank};
use super::cell::{Cell, Facet, Type};
use super::channel::Channel;
use super::count::{Entry, Tally, Values};
use super::key::{KeyId, ValueHash};
use super::name::{ITEMS, step};
use super::node::Node;
use super::sketch::{Seen, Shape};

const VERSION: u64 = 1;

/// Why JSON is no shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidShape {
    /// It is of a version this program does not know, or of none.
    #[error("not a shape of version 1")]
    Version,
    /// A member is missing, is of the wrong type, or says something no shape says.
    #[error("`{0}` is not as shapes have it")]
    Member(&'static str),
    /// There is a member shapes do not have.
    #[error("shapes have no member `{0}`")]
    Unknown(String),
    /// It is larger than any shape.
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
        if shape.horizons != Horizons::OPEN {
            members.insert("cut", write_horizons(&shape.horizons));
        }
        members.insert(
            "key",
            shape.key.map_or(Value::Null, |key| key.to_string().into()),
        );
        members.insert("results", shape.results.into());
        members.insert("v", VERSION.into());
        object(members)
    }

    /// Reads what [`to_json`](Self::to_json) wrote.
    ///
    /// # Errors
    /// It is no shape, or contradicts itself.
    pub fn from_json(json: &Value) -> Result<Self, InvalidShape> {
        if json.get("v").and_then(Value::as_u64) != Some(VERSION) {
            return Err(InvalidShape::Version);
        }
        let members = Members::of(json, "shape", &["channels", "cut", "key", "results", "v"])?;
        let key = match members.get("key") {
            Some(Value::String(text)) => {
                Some(KeyId::parse(text).ok_or(InvalidShape::Member("key"))?)
            }
            Some(Value::Null) => None,
            _ => return Err(InvalidShape::Member("key")),
        };
        let mut shape = Self::empty(key);
        shape.results = members.count("results")?;
        if let Some(cut) = members.get("cut") {
            shape.horizons = read_horizons(cut)?;
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
        if shape.is_empty() && (!shape.channels.is_empty() || shape.horizons != Horizons::OPEN) {
            return Err(InvalidShape::Member("results"));
        }
        // Whatever a shape would cut itself was not written by one.
        if shape.current_horizons() != shape.horizons {
            return Err(InvalidShape::TooLarge);
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

fn write_horizons(horizons: &Horizons) -> Value {
    let named = [
        ("details", horizons.details),
        ("structure", horizons.structure),
        ("values", horizons.values),
    ];
    let cut = named.into_iter().filter(|(_, rank)| *rank != Rank::END);
    object(
        cut.map(|(name, rank)| (name, format!("{}:{:016x}", rank.depth, rank.hash).into()))
            .collect(),
    )
}

fn write_node(node: &Node) -> Value {
    let mut members = BTreeMap::from([("n", node.n.into())]);
    if node.full > 0 {
        members.insert("all", node.full.into());
    }
    let types = node
        .types
        .seen()
        .map(|(kind, count)| (kind.letter(), count.into()));
    members.insert("t", object(types.collect()));
    for facet in Facet::ALL {
        let cells = node.cells.iter().filter(|entry| entry.of.facet == facet);
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
    match &node.values {
        Values::Few(values) if values.is_empty() => {}
        Values::Few(values) => {
            let values: Vec<_> = values
                .iter()
                .map(|entry| format!("{}={}", entry.of, entry.count))
                .collect();
            members.insert("v", values.join(" ").into());
        }
        Values::Many => {
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

const MANY: &str = "many";

/// The members of an object none of whose names is unknown.
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

    /// A count that is never zero where it is written, except that of all results.
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

/// A count of results that cannot exceed that of the results it is taken from.
fn counted(value: &Value, of: u64, name: &'static str) -> Result<u64, InvalidShape> {
    let count = value.as_u64().filter(|count| (1..=of).contains(count));
    count.ok_or(InvalidShape::Member(name))
}

fn read_horizons(cut: &Value) -> Result<Horizons, InvalidShape> {
    let members = Members::of(cut, "cut", &["details", "structure", "values"])?;
    let read = |name: &'static str| match members.get(name) {
        None => Ok(Rank::END),
        Some(rank) => rank
            .as_str()
            .and_then(read_rank)
            .ok_or(InvalidShape::Member(name)),
    };
    let horizons = Horizons {
        structure: read("structure")?,
        details: read("details")?,
        values: read("values")?,
    };
    let canonical = horizons == horizons.min(Horizons::OPEN) && horizons != Horizons::OPEN;
    canonical
        .then_some(horizons)
        .ok_or(InvalidShape::Member("cut"))
}

fn read_rank(text: &str) -> Option<Rank> {
    let (depth, hash) = text.split_once(':')?;
    let rank = Rank {
        depth: depth.parse().ok()?,
        hash: u64::from_str_radix(hash, 16).ok()?,
    };
    let written = format!("{}:{:016x}", rank.depth, rank.hash) == text;
    (written && rank <= Rank::TOO_DEEP).then_some(rank)
}

fn read_channel(json: &Value, channel: Channel, shape: &Shape) -> Result<Seen, InvalidShape> {
    let members = Members::of(json, "channels", &["results", "root"])?;
    let mut seen = Seen::new(channel);
    let results = members
        .get("results")
        .ok_or(InvalidShape::Member("results"))?;
    seen.results = counted(results, shape.results, "results")?;
    if let Some(root) = members.get("root") {
        read_node(root, &mut seen.node, seen.results, shape)?;
    }
    Ok(seen)
}

const NODE: [&str; 10] = ["a", "all", "c", "f", "l", "m", "n", "r", "t", "u"];

/// Reads a node that at most `of` results can have.
fn read_node(json: &Value, node: &mut Node, of: u64, shape: &Shape) -> Result<(), InvalidShape> {
    if node.rank >= shape.horizons.structure || node.rank.depth > MAX_DEPTH {
        return Err(InvalidShape::Member("cut"));
    }
    let mut names = NODE.to_vec();
    names.push("v");
    let members = Members::of(json, "root", &names)?;
    node.n = counted(members.get("n").ok_or(InvalidShape::Member("n"))?, of, "n")?;
    node.full = members.optional_count("all")?;
    let mut sum = 0_u64;
    for (letter, count) in members.object("t")? {
        let kind = Type::ALL.into_iter().find(|kind| kind.letter() == letter);
        let count = counted(count, node.n, "t")?;
        sum = sum.saturating_add(count);
        node.types
            .add(kind.ok_or(InvalidShape::Member("t"))?, count);
    }
    if node.full > node.n || sum < node.n || (node.full > 0 && !node.is_member()) {
        return Err(InvalidShape::Member("n"));
    }
    read_cells(&members, node)?;
    read_values(&members, node)?;
    if (node.rank >= shape.horizons.details && !node.cells.is_empty())
        || (node.has_values() && !shape.keeps_values(node))
    {
        return Err(InvalidShape::Member("cut"));
    }
    for (name, child) in members.object("c")? {
        let of = node.types.get(if name == ITEMS {
            Type::Array
        } else {
            Type::Object
        });
        if name != ITEMS && step(name) != name {
            return Err(InvalidShape::Member("c"));
        }
        let mut fresh = Node::new(name.as_str().into(), node.rank.child(name));
        read_node(child, &mut fresh, of, shape)?;
        node.adopt(fresh);
    }
    Ok(())
}

fn read_cells(members: &Members<'_>, node: &mut Node) -> Result<(), InvalidShape> {
    for facet in Facet::ALL {
        for (name, count) in members.object(facet.letter())? {
            let cell = Cell::parse(facet, name).ok_or(InvalidShape::Member(facet.letter()))?;
            node.cells
                .push(Entry::new(cell, counted(count, node.n, facet.letter())?));
        }
    }
    node.cells.sort_unstable_by_key(|entry| entry.of);
    Ok(())
}

fn read_values(members: &Members<'_>, node: &mut Node) -> Result<(), InvalidShape> {
    const INVALID: InvalidShape = InvalidShape::Member("v");
    let open = members.optional_count("u")?;
    if open > node.n {
        return Err(InvalidShape::Member("u"));
    }
    node.open = Tally::new(open);
    let Some(values) = members.get("v") else {
        return Ok(());
    };
    let text = values.as_str().ok_or(INVALID)?;
    if text == MANY {
        node.values = Values::Many;
        return Ok(());
    }
    let mut values: Vec<Entry<ValueHash>> = Vec::new();
    for entry in text.split(' ') {
        let (hash, count) = entry.split_once('=').ok_or(INVALID)?;
        let hash = ValueHash::parse(hash).ok_or(INVALID)?;
        let number: u64 = count.parse().map_err(|_| INVALID)?;
        let in_order = values.last().is_none_or(|last| last.of < hash);
        if !in_order || number == 0 || number > node.n || number.to_string() != count {
            return Err(INVALID);
        }
        values.push(Entry::new(hash, number));
    }
    if values.len() > super::bound::MAX_VALUES {
        return Err(INVALID);
    }
    node.values = Values::Few(values);
    Ok(())
}
