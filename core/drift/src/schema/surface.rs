//! What a schema declares about each place of a value, wherever in the schema the declaration is.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use toolwarden_model::Draft;
use toolwarden_model::json::{Object, Pointer, percent_decode};

use super::value_path::{Step, ValuePath};

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
    /// Whether some schema describes it in every value.
    pub(super) always: bool,
    /// Whether more may be declared below it: a reference was not followed.
    unfollowed: bool,
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
}

/// What a schema declares about every place of a value, with references and combinations followed.
#[derive(Debug, Default)]
pub(super) struct SchemaDeclarations<'s> {
    places: BTreeMap<ValuePath, Declared<'s>>,
    /// The places that the schema at a pointer describes.
    described: BTreeMap<Pointer, BTreeSet<ValuePath>>,
    /// Members that an object must always have.
    required: BTreeSet<ValuePath>,
    complete: bool,
}

impl<'s> SchemaDeclarations<'s> {
    pub(super) fn of(root: &'s Value) -> Self {
        let mut walk = Walk {
            root,
            surface: Self {
                complete: true,
                ..Self::default()
            },
            visits: 0,
            open: Vec::new(),
            reference_stands_alone: Draft::of(root) <= Draft::Draft7,
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

    /// Whether a default at a pointer applies to some value.
    pub(super) fn applies_default(&self, default: &Pointer) -> bool {
        let mut holder = default.clone();
        holder.pop();
        let mut places = self.described_by(&holder);
        places.any(|path| self.at(path).is_some_and(|it| it.is_described_by(&holder)))
    }

    /// Whether the object at a path has declared members, so that other members are not expected.
    pub(super) fn declares_members(&self, path: &ValuePath) -> bool {
        self.places.keys().any(|place| place.is_below(path))
    }

    /// Whether a schema at a path says that members without a declaration are welcome.
    pub(super) fn welcomes_members(&self, path: &ValuePath) -> bool {
        let schemas = self.at(path).into_iter().flat_map(|it| &it.schemas);
        let mut switches = schemas.flat_map(|(_, schema)| {
            ["additionalProperties", "unevaluatedProperties"]
                .into_iter()
                .filter_map(|keyword| schema.get(keyword))
        });
        switches.any(|value| *value == Value::Bool(true) || *value == Value::Object(Object::new()))
    }

    /// Whether no schema mentions a path.
    pub(super) fn lacks(&self, path: &ValuePath) -> bool {
        let mut places = self.places.iter();
        self.complete
            && !places.any(|(place, said)| {
                path.overlaps(place) || (said.unfollowed && path.overlaps_start(place))
            })
    }
}

/// Whether a declaration always applies, or only for some values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    Always,
    Sometimes,
    /// It is the condition of an `if`, which asks and does not say.
    Asks,
}

impl Sort {
    const fn sometimes(self) -> Self {
        match self {
            Self::Always | Self::Sometimes => Self::Sometimes,
            Self::Asks => Self::Asks,
        }
    }
}

/// Whether a schema is more than the permission to send anything.
fn says_something(schema: &Value) -> bool {
    schema
        .as_object()
        .is_some_and(|members| !members.is_empty())
}

struct Walk<'s> {
    root: &'s Value,
    surface: SchemaDeclarations<'s>,
    visits: usize,
    /// The references that are currently being followed.
    open: Vec<&'s str>,
    /// Up to draft 7, a reference replaces everything beside it.
    reference_stands_alone: bool,
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
        let described = self.surface.described.entry(at.clone()).or_default();
        let is_new = described.insert(path.clone());
        let known = self.surface.places.entry(path.clone()).or_default();
        let was_always = known.always;
        known.always |= sort == Sort::Always;
        if !is_new && (was_always || sort != Sort::Always) {
            return;
        }
        if sort != Sort::Asks && !known.is_described_by(at) {
            known.schemas.push((at.clone(), schema));
            if let Some(default) = schema.get("default").filter(|_| nesting == 0)
                && !known.direct.contains(&default)
            {
                known.direct.push(default);
            }
        }
        if nesting > MAX_NESTING || path.len() > MAX_STEPS {
            known.unfollowed = true;
            return;
        }
        let Some(members) = schema.as_object() else {
            return;
        };
        let alone = self.reference_stands_alone && members.contains_key("$ref");
        let is_read = |keyword: &str| match keyword {
            "$ref" => true,
            "then" | "else" => !alone && members.contains_key("if"),
            _ => !alone,
        };
        for (keyword, value) in members.iter().filter(|(keyword, _)| is_read(keyword)) {
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
            "patternProperties" => {
                for (pattern, schema) in map().filter(|(_, it)| says_something(it)) {
                    let path = path.join(Step::Key(Some(pattern.clone())));
                    self.visit(schema, &at.child(pattern), &path, sort, 0);
                }
            }
            "additionalProperties" | "unevaluatedProperties" if says_something(value) => {
                self.visit(value, at, &path.join(Step::Key(None)), sort, 0);
            }
            "items" | "additionalItems" | "unevaluatedItems" | "prefixItems" => {
                for (index, schema) in list() {
                    let path = path.join(Step::Index(index));
                    self.visit(schema, &at.index(index), &path, sort, 0);
                }
                if !value.is_array() {
                    self.visit(value, at, &path.join(Step::Item), sort, 0);
                }
            }
            "allOf" => {
                for (index, schema) in list() {
                    self.visit(schema, &at.index(index), path, sort, nesting + 1);
                }
            }
            "anyOf" | "oneOf" => {
                for (index, schema) in list() {
                    self.visit(
                        schema,
                        &at.index(index),
                        path,
                        sort.sometimes(),
                        nesting + 1,
                    );
                }
            }
            "if" => self.visit(value, at, path, Sort::Asks, nesting + 1),
            "then" | "else" => self.visit(value, at, path, sort.sometimes(), nesting + 1),
            "dependentSchemas" | "dependencies" => {
                for (name, schema) in map().filter(|(_, it)| !it.is_array()) {
                    self.visit(schema, &at.child(name), path, sort.sometimes(), nesting + 1);
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
            if let Some(known) = self.surface.places.get_mut(path) {
                known.unfollowed = true;
            }
            return;
        };
        self.open.push(reference);
        self.visit(schema, &at, path, sort, nesting + 1);
        self.open.pop();
    }
}
