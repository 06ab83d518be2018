//! Paths in a value that a schema describes.

use serde_json::{Value, json};
use toolwarden_model::json::Pointer;

/// The name of a member that stands for any member of a map.
const ANY_KEY: &str = "key";

/// One step from a value to a part of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    Member(String),
    /// Any member of a map, or those that match a pattern.
    Key(Option<String>),
    /// Any item of a list.
    Item,
    /// One item of a list.
    Index(usize),
}

impl Step {
    /// Whether two steps can lead to the same part.
    fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Member(_) | Self::Key(_), Self::Key(_))
            | (Self::Key(_), Self::Member(_))
            | (Self::Item | Self::Index(_), Self::Item)
            | (Self::Item, Self::Index(_)) => true,
            _ => self == other,
        }
    }
}

/// The path in a value that a schema describes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ValuePath(Vec<Step>);

impl ValuePath {
    /// The place of the whole value.
    pub(super) const fn root() -> Self {
        Self(Vec::new())
    }

    pub(super) fn join(&self, step: Step) -> Self {
        let steps = self.0.iter().cloned().chain([step]);
        Self(steps.collect())
    }

    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the path leads to a member with a name.
    pub(super) fn is_member(&self) -> bool {
        matches!(self.0.last(), Some(Step::Member(_)))
    }

    /// The pattern of the keys that the path leads to, if it leads to the members of a map.
    pub(super) fn keys(&self) -> Option<Option<&str>> {
        match self.0.last() {
            Some(Step::Key(pattern)) => Some(pattern.as_deref()),
            _ => None,
        }
    }

    /// The path to what contains the part; the whole value contains itself.
    pub(super) fn holder(&self) -> Self {
        let steps = self.0.split_last().map_or(&[][..], |(_, steps)| steps);
        Self(steps.to_vec())
    }

    /// Whether the path begins with another one.
    pub(super) fn is_below(&self, other: &Self) -> bool {
        self.0.len() > other.0.len() && self.0.starts_with(&other.0)
    }

    /// Whether two paths can lead to the same part of a value.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        self.0.len() == other.0.len() && self.overlaps_start(other)
    }

    /// Whether the other path can lead to the part, or to one that contains it.
    pub(super) fn overlaps_start(&self, other: &Self) -> bool {
        other.0.len() <= self.0.len() && self.0.iter().zip(&other.0).all(|(a, b)| a.overlaps(b))
    }

    /// The names of the members along the path, the last one last.
    pub(super) fn names(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.iter().filter_map(|step| match step {
            Step::Member(name) => Some(name.as_str()),
            Step::Key(_) | Step::Item | Step::Index(_) => None,
        })
    }

    /// The place that the schema at a pointer describes; `None` for definitions, which describe several
    /// places.
    pub(super) fn of(pointer: &Pointer) -> Option<Self> {
        let segments: Vec<String> = pointer.segments().collect();
        let mut rest = segments.into_iter().peekable();
        let mut steps = Vec::new();
        while let Some(keyword) = rest.next() {
            match keyword.as_str() {
                "properties" => steps.push(Step::Member(rest.next()?)),
                "patternProperties" => steps.push(Step::Key(Some(rest.next()?))),
                "additionalProperties" | "unevaluatedProperties" => steps.push(Step::Key(None)),
                "prefixItems" => steps.push(Step::Index(rest.next()?.parse().ok()?)),
                "items" | "additionalItems" | "unevaluatedItems" => {
                    let index = rest.peek().and_then(|it| it.parse().ok());
                    steps.push(index.map_or(Step::Item, Step::Index));
                    if index.is_some() {
                        rest.next();
                    }
                }
                "allOf" | "anyOf" | "oneOf" => {
                    rest.next();
                }
                "dependentSchemas" | "dependencies" => {
                    rest.next();
                }
                "then" | "else" => {}
                _ => return None,
            }
        }
        Some(Self(steps))
    }

    /// The conditions under which the schema at a pointer applies: for each place, what must hold there.
    pub(super) fn conditions(pointer: &Pointer) -> Vec<(Self, Value)> {
        let segments: Vec<String> = pointer.segments().collect();
        let mut conditions = Vec::new();
        let mut at = Pointer::root();
        for (index, keyword) in segments.iter().enumerate() {
            let next = segments.get(index + 1);
            let place = Self::of(&at);
            let refer = |to: Pointer| json!({"$ref": format!("#{}", to.as_str())});
            let condition = match (keyword.as_str(), next) {
                ("anyOf" | "oneOf", Some(branch)) => Some(refer(at.child(keyword).child(branch))),
                ("dependentSchemas" | "dependencies", Some(key)) => {
                    Some(json!({"required": [key]}))
                }
                ("then", _) => Some(refer(at.child("if"))),
                ("else", _) => Some(json!({"not": refer(at.child("if"))})),
                _ => None,
            };
            conditions.extend(place.zip(condition));
            at = at.child(keyword);
        }
        conditions
    }

    /// The first place in a value that this path matches and that is wanted.
    pub(super) fn find(
        &self,
        value: &Value,
        wanted: &mut dyn FnMut(&Pointer) -> bool,
    ) -> Option<Pointer> {
        found(value, &self.0, &Pointer::root(), wanted)
    }

    /// The value with something inserted here. Lists get one item.
    pub(super) fn put(&self, into: &Value, value: Value) -> Value {
        put(into, &self.0, value)
    }

    /// The value without the member at this place; only members can be removed.
    pub(super) fn without(&self, from: &Value) -> Value {
        let mut left = from.clone();
        let Some(place) = self.find(from, &mut |_| true) else {
            return left;
        };
        let mut holder = place.clone();
        let last = place.segments().last().unwrap_or_default();
        holder.pop();
        if let Some(Value::Object(members)) = left.pointer_mut(holder.as_str()) {
            members.shift_remove(&last);
        }
        left
    }

    /// A schema for values that have something at this place, and what. Up to draft 2019-09, a list of
    /// schemas for the first items is written as `items`.
    pub(super) fn presence(&self, what: Value, list_keyword: &str) -> Value {
        self.0.iter().rev().fold(what, |inner, step| match step {
            Step::Member(name) => {
                json!({"type": "object", "required": [name], "properties": {name: inner}})
            }
            Step::Key(None) => {
                json!({"type": "object", "required": [ANY_KEY], "properties": {ANY_KEY: inner}})
            }
            Step::Key(Some(pattern)) => json!({"type": "object", "minProperties": 1,
                "propertyNames": {"pattern": pattern}, "patternProperties": {pattern: inner}}),
            Step::Item => json!({"type": "array", "minItems": 1, "items": inner}),
            Step::Index(index) => {
                let before = std::iter::repeat_n(json!({}), *index);
                let items: Vec<Value> = before.chain([inner]).collect();
                json!({"type": "array", "minItems": index + 1, list_keyword: items})
            }
        })
    }
}

fn found(
    value: &Value,
    steps: &[Step],
    at: &Pointer,
    wanted: &mut dyn FnMut(&Pointer) -> bool,
) -> Option<Pointer> {
    match steps.split_first() {
        None => wanted(at).then(|| at.clone()),
        Some((Step::Member(name), rest)) => found(value.get(name)?, rest, &at.child(name), wanted),
        Some((Step::Index(index), rest)) => {
            found(value.get(*index)?, rest, &at.index(*index), wanted)
        }
        Some((Step::Key(_), rest)) => {
            let mut members = value.as_object()?.iter();
            members.find_map(|(name, member)| found(member, rest, &at.child(name), wanted))
        }
        Some((Step::Item, rest)) => {
            let mut items = value.as_array()?.iter().enumerate();
            items.find_map(|(index, item)| found(item, rest, &at.index(index), wanted))
        }
    }
}

fn put(into: &Value, steps: &[Step], value: Value) -> Value {
    let Some((step, rest)) = steps.split_first() else {
        return value;
    };
    match step {
        Step::Member(_) | Step::Key(_) => {
            let mut members = into.as_object().cloned().unwrap_or_default();
            let name = match step {
                Step::Member(name) => name.clone(),
                _ => members.keys().next().map_or(ANY_KEY, |it| it).to_owned(),
            };
            let inner = members.get(&name).cloned().unwrap_or(Value::Null);
            members.insert(name, put(&inner, rest, value));
            Value::Object(members)
        }
        Step::Item | Step::Index(_) => {
            let mut items = into.as_array().cloned().unwrap_or_default();
            let at = match step {
                Step::Index(index) => *index,
                _ => 0,
            };
            if items.len() <= at {
                items.resize(at + 1, Value::Null);
            }
            if let Some(item) = items.get_mut(at) {
                *item = put(item, rest, value);
            }
            Value::Array(items)
        }
    }
}
