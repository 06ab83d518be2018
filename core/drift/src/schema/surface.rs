//! What a schema declares about each place of a value, wherever in the schema the declaration is.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use toolwarden_model::json::{Object, Pointer, percent_decode};

use super::call_effect::{Step, ValuePath};

/// The maximum number of subschemas visited; anything beyond is unknown.
pub(super) const MAX_VISITS: usize = 20_000;
/// The maximum depth of a place in a value.
const MAX_STEPS: usize = 12;
/// The longest chain of schemas followed without a step into the value.
const MAX_NESTING: usize = 32;

/// What a schema declares about one place of a value.
#[derive(Clone, Debug, Default)]
pub(super) struct Declared<'s> {
    /// The schemas that describe it, with their pointers.
    pub(super) schemas: Vec<(Pointer, &'s Value)>,
    /// The defaults declared at the place itself, rather than in a schema that it refers to.
    direct: Vec<&'s Value>,
    /// Whether keys that no schema names are read too, or may be.
    map: bool,
}

impl<'s> Declared<'s> {
    /// The defaults that apply to it, each once. A default next to a reference comes first.
    pub(super) fn defaults(&self) -> Vec<&'s Value> {
        if !self.direct.is_empty() {
            return self.direct.clone();
        }
        let mut found = Vec::new();
        for (_, schema) in &self.schemas {
            found.extend(schema.get("default").filter(|it| !found.contains(it)));
        }
        found
    }

    /// Whether the schema at a pointer describes it.
    pub(super) fn is_described_by(&self, at: &Pointer) -> bool {
        self.schemas.iter().any(|(place, _)| place == at)
    }

    /// Whether it is a boolean or one of a few values.
    pub(super) fn is_choice(&self) -> bool {
        let is_boolean = |kind: &Value| match kind {
            Value::String(kind) => kind == "boolean",
            // Of a union with other types the value decides.
            Value::Array(kinds) => {
                let mut kinds = kinds.iter().filter(|it| *it != "null").peekable();
                kinds.peek().is_some() && kinds.all(|it| it == "boolean")
            }
            _ => false,
        };
        let mut schemas = self.schemas.iter();
        schemas.any(|(_, schema)| {
            schema.get("enum").is_some() || schema.get("type").is_some_and(is_boolean)
        })
    }

    fn accepts_anything(&self) -> bool {
        let says_nothing = |schema: &Value| match schema {
            Value::Bool(accepts) => *accepts,
            Value::Object(members) => !members.keys().any(|keyword| says_shape(keyword)),
            _ => false,
        };
        self.schemas.iter().all(|(_, schema)| says_nothing(schema))
    }
}

fn says_shape(keyword: &str) -> bool {
    !matches!(
        keyword,
        "title" | "description" | "default" | "examples" | "$comment" | "deprecated"
    )
}

/// What a schema declares about every place of a value, with references and combinations followed.
#[derive(Debug, Default)]
pub(super) struct Surface<'s> {
    places: BTreeMap<ValuePath, Declared<'s>>,
    /// The places that the schema at a pointer describes.
    described: BTreeMap<Pointer, BTreeSet<ValuePath>>,
    /// Members that an object must always have.
    required: BTreeSet<ValuePath>,
    complete: bool,
}

impl<'s> Surface<'s> {
    pub(super) fn of(root: &'s Value) -> Self {
        let mut walk = Walk {
            root,
            surface: Self {
                complete: true,
                ..Self::default()
            },
            visits: 0,
            open: Vec::new(),
        };
        walk.visit(root, &Pointer::root(), &ValuePath::root(), Sort::Always, 0);
        walk.surface
    }

    /// Whether the whole schema was visited.
    pub(super) const fn is_complete(&self) -> bool {
        self.complete
    }

    pub(super) fn requires(&self, path: &ValuePath) -> bool {
        self.required.contains(path)
    }

    pub(super) fn places(&self) -> impl Iterator<Item = (&ValuePath, &Declared<'s>)> {
        self.places.iter()
    }

    pub(super) fn at(&self, path: &ValuePath) -> Option<&Declared<'s>> {
        self.places.get(path)
    }

    /// The places that the schema at a pointer describes; empty if no value reaches it.
    pub(super) fn described_by(&self, at: &Pointer) -> impl Iterator<Item = &ValuePath> {
        self.described.get(at).into_iter().flatten()
    }

    /// Whether a path names a member that this schema does not declare, in an object that it does
    /// declare.
    pub(super) fn lacks(&self, path: &ValuePath) -> bool {
        if !self.complete || self.places.contains_key(path) {
            return false;
        }
        let Some(holder) = path.holder() else {
            return false;
        };
        let Some(said) = self.places.get(&holder) else {
            return false;
        };
        // If the schema accepts any key, the server may read any key.
        let free = holder != ValuePath::root() && said.accepts_anything();
        !said.map && !free
    }
}

/// Whether a declaration always applies, or only for some values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    Always,
    Sometimes,
}

struct Walk<'s> {
    root: &'s Value,
    surface: Surface<'s>,
    visits: usize,
    /// The references that are currently being followed.
    open: Vec<&'s str>,
}

impl<'s> Walk<'s> {
    fn visit(
        &mut self,
        schema: &'s Value,
        at: &Pointer,
        path: &ValuePath,
        sort: Sort,
        nesting: usize,
    ) {
        self.visits += 1;
        if self.visits > MAX_VISITS {
            self.surface.complete = false;
            return;
        }
        let known = self.surface.places.entry(path.clone()).or_default();
        if known.schemas.iter().any(|(place, _)| place == at) {
            return;
        }
        known.schemas.push((at.clone(), schema));
        if let Some(default) = schema.get("default").filter(|_| nesting == 0)
            && !known.direct.contains(&default)
        {
            known.direct.push(default);
        }
        if nesting > MAX_NESTING || path.len() > MAX_STEPS {
            known.map = true;
            return;
        }
        let described = self.surface.described.entry(at.clone()).or_default();
        described.insert(path.clone());
        let Some(members) = schema.as_object() else {
            return;
        };
        for (keyword, value) in members {
            self.keyword(keyword, value, &at.child(keyword), path, (sort, nesting));
        }
    }

    fn keyword(
        &mut self,
        keyword: &str,
        value: &'s Value,
        at: &Pointer,
        path: &ValuePath,
        (sort, nesting): (Sort, usize),
    ) {
        let list = || value.as_array().into_iter().flatten().enumerate();
        let map = || value.as_object().into_iter().flat_map(Object::iter);
        match keyword {
            "properties" => {
                for (name, schema) in map() {
                    let path = path.join(Step::Member(name.clone()));
                    self.visit(schema, &at.child(name), &path, sort, 0);
                }
            }
            "patternProperties" => self.read_as_map(path, map().next().is_some()),
            "additionalProperties" | "unevaluatedProperties" => {
                self.read_as_map(path, map().next().is_some());
            }
            "items" | "additionalItems" | "unevaluatedItems" | "prefixItems" => {
                let path = path.join(Step::Item);
                for (index, schema) in list() {
                    self.visit(schema, &at.index(index), &path, sort, 0);
                }
                if !value.is_array() {
                    self.visit(value, at, &path, sort, 0);
                }
            }
            "allOf" => {
                for (index, schema) in list() {
                    self.visit(schema, &at.index(index), path, sort, nesting + 1);
                }
            }
            "anyOf" | "oneOf" => {
                for (index, schema) in list() {
                    self.visit(schema, &at.index(index), path, Sort::Sometimes, nesting + 1);
                }
            }
            "if" | "then" | "else" => {
                self.visit(value, at, path, Sort::Sometimes, nesting + 1);
            }
            "dependentSchemas" | "dependencies" => {
                for (name, schema) in map().filter(|(_, it)| !it.is_array()) {
                    self.visit(schema, &at.child(name), path, Sort::Sometimes, nesting + 1);
                }
            }
            "required" if sort == Sort::Always => {
                for name in list().filter_map(|(_, name)| name.as_str()) {
                    let path = path.join(Step::Member(name.to_owned()));
                    self.surface.required.insert(path);
                }
            }
            "$ref" | "$dynamicRef" | "$recursiveRef" => self.follow(value, path, sort, nesting),
            _ => {}
        }
    }

    fn read_as_map(&mut self, path: &ValuePath, is_map: bool) {
        if let Some(known) = self.surface.places.get_mut(path) {
            known.map |= is_map;
        }
    }

    fn follow(&mut self, value: &'s Value, path: &ValuePath, sort: Sort, nesting: usize) {
        let Some(reference) = value.as_str() else {
            return;
        };
        // A recursive schema is followed into itself once.
        let is_inside = self.open.iter().filter(|it| **it == reference).count() > 1;
        let target = reference.strip_prefix('#').and_then(percent_decode);
        let target = target.and_then(|place| {
            let schema = self.root.pointer(&place)?;
            Some((schema, Pointer::from(place.as_str())))
        });
        let Some((schema, at)) = target.filter(|_| !is_inside) else {
            // The target of the reference may declare anything.
            return self.read_as_map(path, true);
        };
        self.open.push(reference);
        self.visit(schema, &at, path, sort, nesting + 1);
        self.open.pop();
    }
}
