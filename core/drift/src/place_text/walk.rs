//! Visits a schema in the order of the value it describes, and collects what it says about each place.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::Value;
use toolwarden_model::json::{Object, Pointer, percent_decode, to_canonical_string};
use toolwarden_model::keywords::{SubschemaForm, subschema_form, subschemas};

use super::{Place, Statement};
use crate::definition_text::schema_texts;

/// The maximum number of subschemas visited.
pub(crate) const MAX_VISITS: usize = 20_000;
/// The longest chain of schemas that is followed.
const MAX_NESTING: usize = 128;

/// Keywords that decide about values, or that name a schema. What they say is compared as a schema.
const NOT_SAID: &[&str] = &[
    "type",
    "enum",
    "const",
    "default",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minContains",
    "maxContains",
    "required",
    "minProperties",
    "maxProperties",
    "dependentRequired",
    "$schema",
    "$id",
    "id",
    "$anchor",
    "$dynamicAnchor",
    "$recursiveAnchor",
    "$vocabulary",
];

/// Keywords that refer to another schema.
const REFERENCES: &[&str] = &["$ref", "$dynamicRef", "$recursiveRef"];

/// Every statement of a schema, by the place that it is about.
#[derive(Debug, Default)]
pub(super) struct PlaceTexts<'s> {
    pub(super) places: BTreeMap<String, Place<'s>>,
}

impl<'s> PlaceTexts<'s> {
    pub(super) fn of(root: &'s Value) -> Option<Self> {
        let mut walk = Walk {
            root,
            names: named_schemas(root),
            texts: Self::default(),
            visits: 0,
            complete: true,
            open: Vec::new(),
            seen: BTreeSet::new(),
        };
        let start = Position {
            place: String::new(),
            member: None,
            choice: None,
        };
        walk.visit(root, &Pointer::root(), &start, 0);
        walk.complete.then_some(walk.texts)
    }
}

/// Schemas that a reference finds by a name: an anchor or an identifier.
fn named_schemas(root: &Value) -> BTreeMap<String, Pointer> {
    let mut names = BTreeMap::new();
    let mut waiting = vec![(Pointer::root(), root)];
    while let Some((at, schema)) = waiting.pop() {
        let Some(members) = schema.as_object().filter(|_| names.len() <= MAX_VISITS) else {
            continue;
        };
        for keyword in ["$anchor", "$dynamicAnchor"] {
            if let Some(Value::String(name)) = members.get(keyword) {
                names.insert(format!("#{name}"), at.clone());
            }
        }
        for keyword in ["$id", "id"] {
            if let Some(Value::String(name)) = members.get(keyword) {
                names.insert(name.clone(), at.clone());
            }
        }
        waiting.extend(subschemas(members, &at));
    }
    names
}

/// Where a walk is in a value.
#[derive(Clone)]
struct Position {
    place: String,
    member: Option<String>,
    /// Shared by all places below a branch, because it may be as long as the branch.
    choice: Option<Rc<str>>,
}

impl Position {
    fn step(&self, step: &str) -> Self {
        Self {
            place: format!("{}/{step}", self.place),
            ..self.clone()
        }
    }

    fn member(&self, name: &str) -> Self {
        let name = name.to_owned();
        Self {
            member: Some(name.clone()),
            ..self.step(&format!(".{name}"))
        }
    }

    fn choice(&self, choice: String) -> Self {
        Self {
            choice: Some(choice.into()),
            ..self.clone()
        }
    }
}

struct Walk<'s> {
    root: &'s Value,
    names: BTreeMap<String, Pointer>,
    texts: PlaceTexts<'s>,
    visits: usize,
    /// Whether the whole schema was visited.
    complete: bool,
    /// The references that are currently being followed.
    open: Vec<&'s str>,
    seen: BTreeSet<(Pointer, String, Option<Rc<str>>)>,
}

impl<'s> Walk<'s> {
    fn visit(&mut self, schema: &'s Value, at: &Pointer, position: &Position, nesting: usize) {
        let Some(members) = schema.as_object() else {
            return;
        };
        self.visits += 1;
        if self.visits > MAX_VISITS || nesting > MAX_NESTING {
            self.complete = false;
            return;
        }
        let key = (at.clone(), position.place.clone(), position.choice.clone());
        if !self.seen.insert(key) {
            return;
        }
        let place = self.texts.places.entry(position.place.clone());
        let place = place.or_default();
        place.member.clone_from(&position.member);
        for (keyword, value) in members {
            if is_said(keyword) {
                state(
                    place,
                    members,
                    (keyword, value),
                    &at.child(keyword),
                    position,
                );
            }
        }
        if let Some(condition) = members.get("if").filter(|_| speaks_conditionally(members)) {
            place.said.push(Statement {
                keyword: "if",
                value: condition,
                content: without_text(condition).to_string(),
                at: at.child("if"),
                choice: position.choice.clone(),
            });
        }
        for (keyword, value) in members {
            self.keyword(keyword, value, &at.child(keyword), position, nesting + 1);
        }
    }

    fn keyword(
        &mut self,
        keyword: &'s str,
        value: &'s Value,
        at: &Pointer,
        position: &Position,
        nesting: usize,
    ) {
        if REFERENCES.contains(&keyword) {
            self.follow(keyword, value, at, position, nesting);
            return;
        }
        if matches!(keyword, "$defs" | "definitions") {
            return;
        }
        match (subschema_form(keyword), value) {
            (Some(SubschemaForm::Map), Value::Object(schemas)) => {
                for (name, schema) in schemas {
                    let position = match keyword {
                        "properties" => position.member(name),
                        "patternProperties" => position.step(&format!("~{name}")),
                        // A schema for the whole value, if the member is there.
                        _ => position.choice(format!("{keyword} {name}")),
                    };
                    self.visit(schema, &at.child(name), &position, nesting);
                }
            }
            (Some(_), Value::Array(schemas)) => {
                for (index, schema) in schemas.iter().enumerate() {
                    let position = match keyword {
                        "allOf" => position.clone(),
                        "anyOf" | "oneOf" => position.choice(self.choice(schema)),
                        _ => position.step(&format!("[{index}]")),
                    };
                    self.visit(schema, &at.index(index), &position, nesting);
                }
            }
            (Some(_), schema) => {
                let position = match keyword {
                    "additionalProperties" | "unevaluatedProperties" => position.step("*"),
                    "items" | "additionalItems" | "unevaluatedItems" => position.step("[]"),
                    "then" | "else" => position.choice(keyword.to_owned()),
                    other => position.step(other),
                };
                self.visit(schema, at, &position, nesting);
            }
            (None, _) => {}
        }
    }

    fn follow(
        &mut self,
        keyword: &'s str,
        value: &'s Value,
        at: &Pointer,
        position: &Position,
        nesting: usize,
    ) {
        let Some(reference) = value.as_str() else {
            return;
        };
        let Some((schema, target)) = self.find(reference) else {
            // What it says is not known, but another reference may say something else.
            let place = self.texts.places.entry(position.place.clone());
            place.or_default().said.push(Statement {
                keyword,
                value,
                content: reference.to_owned(),
                at: at.clone(),
                choice: position.choice.clone(),
            });
            return;
        };
        // A recursive schema is followed into itself once.
        if self.open.iter().filter(|it| **it == reference).count() > 1 {
            return;
        }
        self.open.push(reference);
        self.visit(schema, &target, position, nesting);
        self.open.pop();
    }

    fn find(&self, reference: &str) -> Option<(&'s Value, Pointer)> {
        let by_name = self.names.get(reference).cloned();
        let by_place = || {
            let place = reference.strip_prefix('#').and_then(percent_decode)?;
            Some(Pointer::from(place.as_str()))
        };
        let at = by_name.or_else(by_place)?;
        Some((at.find(self.root)?, at))
    }

    /// What selects a branch: what it accepts, without its text and without the names of definitions.
    fn choice(&self, branch: &Value) -> String {
        let mut schema = branch;
        let mut beside = Vec::new();
        for _ in 0..MAX_NESTING {
            let Some(reference) = schema.get("$ref").and_then(Value::as_str) else {
                break;
            };
            let Some((target, _)) = self.find(reference) else {
                break;
            };
            beside.push(without_text(schema));
            schema = target;
        }
        let mut whole = without_text(schema);
        if let Value::Object(whole) = &mut whole {
            for members in beside.iter().filter_map(Value::as_object) {
                let members = members.iter().filter(|(keyword, _)| *keyword != "$ref");
                whole.extend(members.map(|(keyword, value)| (keyword.clone(), value.clone())));
            }
            // A constant and an enumeration of one value are the same choice.
            if let Some(value) = whole.shift_remove("const") {
                whole.insert("enum".to_owned(), Value::Array(vec![value]));
            }
            if whole.contains_key("enum") {
                whole.shift_remove("type");
            }
        }
        to_canonical_string(&whole)
    }
}

/// Whether a keyword says something to a reader, rather than to a validator.
fn is_said(keyword: &str) -> bool {
    subschema_form(keyword).is_none()
        && !NOT_SAID.contains(&keyword)
        && !REFERENCES.contains(&keyword)
}

/// Whether `then` or `else` has text, so that it matters what the condition is.
fn speaks_conditionally(members: &Object) -> bool {
    let mut branches = ["then", "else"]
        .into_iter()
        .filter_map(|it| members.get(it));
    branches.any(|branch| !schema_texts(branch).is_empty())
}

/// Adds what a keyword says. A list that is as long as the enumeration beside it describes its values one
/// by one.
fn state<'s>(
    place: &mut Place<'s>,
    members: &'s Object,
    (keyword, value): (&'s str, &'s Value),
    at: &Pointer,
    position: &Position,
) {
    let mut add = |value: &'s Value, at: Pointer, choice: Option<Rc<str>>| {
        let content = match value {
            Value::String(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
            other => to_canonical_string(other),
        };
        place.said.push(Statement {
            keyword,
            value,
            content,
            at,
            choice,
        });
    };
    if let Some((values, texts)) = described_values(members, keyword) {
        for (index, (choice, text)) in values.iter().zip(texts).enumerate() {
            let choice = format!("value {}", to_canonical_string(choice));
            add(text, at.index(index), Some(choice.into()));
        }
        return;
    }
    add(value, at.clone(), position.choice.clone());
}

/// The values of an enumeration and the list beside it that describes them one by one.
pub(crate) fn described_values<'s>(
    members: &'s Object,
    keyword: &str,
) -> Option<(&'s [Value], &'s [Value])> {
    let values = members.get("enum")?.as_array()?;
    let texts = members.get(keyword)?.as_array()?;
    let is_parallel = values.len() == texts.len() && is_said(keyword) && keyword != "examples";
    is_parallel.then_some((values.as_slice(), texts.as_slice()))
}

/// A schema without what it says to a reader.
fn without_text(schema: &Value) -> Value {
    let Value::Object(members) = schema else {
        return schema.clone();
    };
    let mut left = Object::new();
    for (keyword, value) in members.iter().filter(|(keyword, _)| !is_said(keyword)) {
        let value = match (subschema_form(keyword), value) {
            (Some(SubschemaForm::Map), Value::Object(schemas)) => {
                let schemas = schemas.iter();
                let schemas = schemas.map(|(name, it)| (name.clone(), without_text(it)));
                Value::Object(schemas.collect())
            }
            (Some(_), Value::Array(schemas)) => {
                Value::Array(schemas.iter().map(without_text).collect())
            }
            (Some(_), schema) => without_text(schema),
            (None, value) => value.clone(),
        };
        left.insert(keyword.clone(), value);
    }
    Value::Object(left)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_places_of_a_branch_share_the_text_of_its_choice() {
        let text = json!({"type": "string", "description": "A"});
        let schema = json!({"anyOf": [{"properties": {"a": text, "b": text}}]});
        let texts = PlaceTexts::of(&schema).unwrap();
        let said = texts.places.values().flat_map(|it| &it.said);
        let choices: Vec<&Rc<str>> = said.filter_map(|it| it.choice.as_ref()).collect();
        let [one, other] = choices.as_slice() else {
            panic!("{choices:?}");
        };
        assert!(Rc::ptr_eq(one, other));
    }
}
