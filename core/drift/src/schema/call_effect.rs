//! Calls that are still accepted but have a different effect.

use serde_json::{Value, json};
use toolwarden_model::json::{Object, Pointer};
use toolwarden_schema::{Callers, SchemaPair, SchemaVerdict, ValueDomain};

use crate::change::CallEffect;
use crate::compare::Options;

/// The deepest chain of references that is followed.
const MAX_DEPTH: usize = 32;

/// One step from a value to a part of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    Member(String),
    /// Any item of a list.
    Item,
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

    /// The object that contains this member; `None` for items and the whole value.
    pub(super) fn holder(&self) -> Option<Self> {
        match self.0.split_last() {
            Some((Step::Member(_), rest)) => Some(Self(rest.to_vec())),
            _ => None,
        }
    }

    /// The names of the members along the path, the last one last.
    pub(super) fn names(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.iter().filter_map(|step| match step {
            Step::Member(name) => Some(name.as_str()),
            Step::Item => None,
        })
    }

    /// The place that the schema at a pointer describes; `None` for definitions, which describe several
    /// places.
    pub(super) fn of(pointer: &Pointer) -> Option<Self> {
        let segments: Vec<String> = pointer.segments().collect();
        let mut rest = segments.into_iter();
        let mut steps = Vec::new();
        while let Some(keyword) = rest.next() {
            match keyword.as_str() {
                "properties" => steps.push(Step::Member(rest.next()?)),
                "items" | "additionalItems" | "unevaluatedItems" => steps.push(Step::Item),
                "prefixItems" => {
                    rest.next();
                    steps.push(Step::Item);
                }
                "allOf" | "anyOf" | "oneOf" => {
                    rest.next();
                }
                "then" | "else" => {}
                _ => return None,
            }
        }
        Some(Self(steps))
    }

    /// The first place in a value that this path matches.
    pub(super) fn find(&self, value: &Value) -> Option<Pointer> {
        found(value, &self.0, &Pointer::root())
    }

    /// The value with something inserted here. Lists get one item.
    pub(super) fn put(&self, into: &Value, value: Value) -> Value {
        put(into, &self.0, value)
    }

    /// The value without the member at this place; only members can be removed.
    fn without(&self, from: &Value) -> Value {
        let mut left = from.clone();
        let Some(place) = self.find(from) else {
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
}

fn found(value: &Value, steps: &[Step], at: &Pointer) -> Option<Pointer> {
    match steps.split_first() {
        None => Some(at.clone()),
        Some((Step::Member(name), rest)) => found(value.get(name)?, rest, &at.child(name)),
        Some((Step::Item, rest)) => {
            let mut items = value.as_array()?.iter().enumerate();
            items.find_map(|(index, item)| found(item, rest, &at.index(index)))
        }
    }
}

fn put(into: &Value, steps: &[Step], value: Value) -> Value {
    match steps.split_first() {
        None => value,
        Some((Step::Member(name), rest)) => {
            let mut members = into.as_object().cloned().unwrap_or_default();
            let inner = members.get(name).cloned().unwrap_or(Value::Null);
            members.insert(name.clone(), put(&inner, rest, value));
            Value::Object(members)
        }
        Some((Step::Item, rest)) => {
            let mut items = into.as_array().cloned().unwrap_or_default();
            match items.first_mut() {
                Some(first) => *first = put(first, rest, value),
                None => items.push(put(&Value::Null, rest, value)),
            }
            Value::Array(items)
        }
    }
}

/// A value that a schema accepts, as small as the search makes it.
pub(super) fn find_accepted_value(
    schema: &Value,
    domain: ValueDomain,
    options: &Options,
) -> Option<Value> {
    let nothing = Value::Bool(false);
    let pair = SchemaPair::new(schema, &nothing, domain, options.formats, options.budget);
    match pair.ok()?.verdict(Callers::Declared) {
        SchemaVerdict::Breaking(witness) => Some(witness.value),
        SchemaVerdict::Equivalent(_)
        | SchemaVerdict::Compatible { .. }
        | SchemaVerdict::Unknown(_) => None,
    }
}

/// A call that both schemas accept, with a value for an argument that only the old one declares.
pub(super) fn find_ignored_argument(
    pair: &mut SchemaPair<'_>,
    (old, new): (&Value, &Value),
    (path, property): (&ValuePath, &Value),
    options: &Options,
) -> Option<CallEffect> {
    let empty = Value::Object(Object::new());
    let bases = [
        Some(empty),
        find_accepted_value(old, ValueDomain::Objects, options),
        find_accepted_value(new, ValueDomain::Objects, options),
    ];
    let values = values(property, options);
    for base in bases.into_iter().flatten() {
        for value in &values {
            let call = path.put(&base, value.clone());
            let is_accepted =
                pair.old_accepts(&call) && pair.witness_of(&call, &Pointer::root()).is_none();
            if let (true, Some(pointer)) = (is_accepted, path.find(&call)) {
                return Some(CallEffect::Ignored { call, pointer });
            }
        }
    }
    None
}

/// Possible values of an argument, the most distinctive first.
fn values(property: &Value, options: &Options) -> Vec<Value> {
    let default = property.get("default");
    let list = |key: &str| property.get(key).and_then(Value::as_array).cloned();
    let mut values = Vec::new();
    let kind = property.get("type").and_then(Value::as_str);
    if kind == Some("boolean") {
        let opposite = default != Some(&Value::Bool(true));
        values.extend([Value::Bool(opposite), Value::Bool(!opposite)]);
    }
    let listed = list("enum").into_iter().flatten();
    values.extend(
        listed
            .filter(|value| Some(value) != default && !value.is_null())
            .take(4),
    );
    values.extend(property.get("const").cloned());
    values.extend(list("examples").into_iter().flatten().take(2));
    values.extend(default.filter(|it| !it.is_null()).cloned());
    match kind {
        Some("string") => values.push(json!("a")),
        Some("integer" | "number") => values.push(json!(1)),
        _ => {}
    }
    values.extend(find_accepted_value(property, ValueDomain::Values, options));
    values.extend([json!(true), json!("a"), json!(1), json!({}), json!([])]);
    values
}

/// The effect of a changed default on a call that omits the argument. The caller of this function
/// states whether the tool writes.
pub(super) fn default_effect(
    pair: &mut SchemaPair<'_>,
    (old, new): (&Value, &Value),
    at: &Pointer,
    options: &Options,
) -> Option<CallEffect> {
    let mut property = at.clone();
    property.pop();
    if is_required(new, &property) {
        return None;
    }
    let (before, after) = (at.find(old), at.find(new));
    let schema = property.find(new).or_else(|| property.find(old));
    let is_choice = schema.is_some_and(|schema| {
        schema.get("enum").is_some() || schema.get("type").is_some_and(|it| it == "boolean")
    });
    let is_truth = |value: Option<&Value>| value.is_some_and(Value::is_boolean);
    let calls = ValuePath::of(&property)
        .and_then(|path| completed(pair, old, &path, (before, after), options));
    Some(CallEffect::Default {
        calls,
        replaced: before.is_some_and(|before| after.is_some() || !before.is_null()),
        switch: is_choice || is_truth(before) || is_truth(after),
        writes: true,
    })
}

/// A call that omits an argument, completed with the old default and with the new one.
pub(super) fn completed(
    pair: &mut SchemaPair<'_>,
    old: &Value,
    path: &ValuePath,
    (before, after): (Option<&Value>, Option<&Value>),
    options: &Options,
) -> Option<(Value, Value)> {
    let empty = Value::Object(Object::new());
    let base = if pair.old_accepts(&empty) {
        empty
    } else {
        find_accepted_value(old, ValueDomain::Objects, options)?
    };
    let base = path.without(&base);
    let completed = |value: Option<&Value>| match value {
        Some(value) => path.put(&base, value.clone()),
        None => base.clone(),
    };
    Some((completed(before), completed(after)))
}

fn is_required(schema: &Value, property: &Pointer) -> bool {
    let mut holder = property.clone();
    let Some(name) = property.segments().last() else {
        return false;
    };
    holder.pop();
    holder.pop();
    let required = holder.find(schema).and_then(|it| it.get("required"));
    let mut names = required.and_then(Value::as_array).into_iter().flatten();
    names.any(|it| it.as_str() == Some(&name))
}

/// Whether an object schema, or one of the schemas it is composed of, still describes a member.
pub(super) fn declares(root: &Value, schema: &Value, name: &str) -> bool {
    mentions_member(root, schema, name, 0)
}

fn mentions_member(root: &Value, schema: &Value, name: &str, depth: usize) -> bool {
    let Some(members) = schema.as_object().filter(|_| depth < MAX_DEPTH) else {
        return false;
    };
    let inner = |schema: &Value| mentions_member(root, schema, name, depth + 1);
    members
        .iter()
        .any(|(keyword, value)| match keyword.as_str() {
            "properties" => value.get(name).is_some(),
            // A map from arbitrary keys to values reads every key.
            "patternProperties" => value.as_object().is_some_and(|it| !it.is_empty()),
            "additionalProperties" | "unevaluatedProperties" => {
                value.as_object().is_some_and(|it| !it.is_empty())
            }
            "allOf" | "anyOf" | "oneOf" => value.as_array().into_iter().flatten().any(inner),
            "then" | "else" | "if" => inner(value),
            "dependentSchemas" => {
                let schemas = value.as_object().into_iter().flat_map(Object::values);
                schemas.into_iter().any(inner)
            }
            "$ref" => {
                let target = value.as_str().and_then(|it| it.strip_prefix('#'));
                let target = target.and_then(|it| root.pointer(it));
                target.is_some_and(inner)
            }
            _ => false,
        })
}
