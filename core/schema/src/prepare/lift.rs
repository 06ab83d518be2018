use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;
use thiserror::Error;
use toolwarden_model::json::{MAX_DEPTH, Object, Pointer, depth_within, type_name};

use super::draft::{Draft, foreign_keyword};
use super::keywords::{KeywordKind, ValueForm, keyword_kind};
use super::resources::{DynamicScope, Resources, SchemaLocation};
use crate::comparison_policy::FormatMode;

/// The most schemas one document may hold.
const MAX_SCHEMAS: usize = 100_000;

/// Why a schema cannot be read as a set of values.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum PrepareError {
    /// A keyword has an invalid value.
    #[error("`{keyword}` must be {expected}")]
    Invalid {
        pointer: Pointer,
        keyword: String,
        expected: &'static str,
    },
    /// A schema is neither an object nor a boolean.
    #[error("a schema must be an object or a boolean, not {found}")]
    NotASchema {
        pointer: Pointer,
        found: &'static str,
    },
    /// A reference points outside the document or has no target.
    #[error("the reference `{reference}` leads to nothing in this document")]
    Unresolved { pointer: Pointer, reference: String },
    /// A document that names no draft uses keywords of several drafts.
    #[error("`{keyword}` is mixed with keywords of an older draft; name the draft in `$schema`")]
    Mixed { pointer: Pointer, keyword: String },
    /// The document exceeds a limit.
    #[error("the schema has more than {MAX_SCHEMAS} parts or {MAX_DEPTH} levels")]
    TooLarge,
}

/// The schema in draft 2020-12: assertions only, every reference pointing to a definition `d<n>`.
pub(crate) fn lift(schema: &Value, formats: FormatMode) -> Result<Value, PrepareError> {
    lift_document(schema, formats, false)
}

/// The lifted schema, with a `description` wherever a schema is described or titled.
pub(crate) fn lift_with_descriptions(
    schema: &Value,
    formats: FormatMode,
) -> Result<Value, PrepareError> {
    lift_document(schema, formats, true)
}

fn lift_document(
    schema: &Value,
    formats: FormatMode,
    describes: bool,
) -> Result<Value, PrepareError> {
    if !depth_within(schema) {
        return Err(PrepareError::TooLarge);
    }
    let draft = Draft::of(schema);
    if let Some((pointer, keyword)) = foreign_keyword(schema, draft) {
        return Err(PrepareError::Mixed { pointer, keyword });
    }
    let mut lifter = Lifter {
        draft,
        document: 0,
        scope: DynamicScope::new(),
        formats,
        describes,
        resources: Resources::of(schema, draft),
        names: BTreeMap::new(),
        pending: VecDeque::new(),
        schemas: 0,
    };
    let root = lifter.lift(schema, &Pointer::root())?;
    let mut definitions = Object::new();
    while let Some(PendingSchema {
        name,
        place,
        scope,
        target,
    }) = lifter.pending.pop_front()
    {
        lifter.document = place.document;
        lifter.draft = lifter.resources.draft(place.document);
        lifter.scope = scope;
        let lifted = lifter.lift(target, &place.pointer)?;
        definitions.insert(name, lifted);
    }
    let mut root = match root {
        Value::Object(root) => root,
        // A boolean schema cannot hold definitions and needs none.
        other => return Ok(other),
    };
    if !definitions.is_empty() {
        root.insert("$defs".to_owned(), Value::Object(definitions));
    }
    Ok(Value::Object(root))
}

struct Lifter<'s> {
    draft: Draft,
    /// The document being read, and the targets of its dynamic references.
    document: usize,
    scope: DynamicScope,
    formats: FormatMode,
    /// Whether descriptions are kept.
    describes: bool,
    resources: Resources<'s>,
    /// The name of each referenced schema. The targets of its dynamic references depend on the path
    /// to it.
    names: BTreeMap<(SchemaLocation, DynamicScope), String>,
    pending: VecDeque<PendingSchema<'s>>,
    schemas: usize,
}

/// A referenced schema that is not lifted yet.
struct PendingSchema<'s> {
    name: String,
    place: SchemaLocation,
    scope: DynamicScope,
    target: &'s Value,
}

impl Lifter<'_> {
    fn lift(&mut self, schema: &Value, at: &Pointer) -> Result<Value, PrepareError> {
        self.schemas += 1;
        if self.schemas > MAX_SCHEMAS {
            return Err(PrepareError::TooLarge);
        }
        match schema {
            Value::Bool(_) => Ok(schema.clone()),
            Value::Object(members) => {
                if !self.resources.has_dynamic_anchors() {
                    return self.lift_object(members, at);
                }
                let place = self.place(at);
                if !self.resources.is_identified(&place) {
                    return self.lift_object(members, at);
                }
                let inside = self.resources.scope_at(&place, &self.scope);
                let around = std::mem::replace(&mut self.scope, inside);
                let lifted = self.lift_object(members, at);
                self.scope = around;
                lifted
            }
            other => Err(PrepareError::NotASchema {
                pointer: at.clone(),
                found: type_name(other),
            }),
        }
    }

    fn lift_object(&mut self, members: &Object, at: &Pointer) -> Result<Value, PrepareError> {
        if self.draft <= Draft::Draft7
            && let Some(reference) = members.get("$ref").and_then(Value::as_str)
        {
            // Up to draft 7 a reference replaces everything beside it.
            let mut lifted = Object::new();
            lifted.insert("$ref".to_owned(), self.reference(reference, at)?);
            return Ok(Value::Object(lifted));
        }
        let mut lifted = Object::new();
        // Further assertions whose keyword is already taken.
        let mut further = Vec::new();
        for (keyword, value) in sorted(members) {
            match keyword_kind(keyword, self.draft) {
                KeywordKind::Annotation => {
                    let text = value.as_str().filter(|text| !text.trim().is_empty());
                    if let (true, "description" | "title", Some(text)) =
                        (self.describes, keyword.as_str(), text)
                    {
                        lifted.insert("description".to_owned(), Value::from(text));
                    }
                }
                KeywordKind::Plain(form) => {
                    check(form, keyword, value, at)?;
                    lifted.insert(keyword.clone(), value.clone());
                }
                KeywordKind::Schema => {
                    let value = self.lift(value, &at.child(keyword))?;
                    lifted.insert(keyword.clone(), value);
                }
                KeywordKind::Schemas => {
                    let value = self.lift_list(keyword, value, at)?;
                    lifted.insert(keyword.clone(), value);
                }
                KeywordKind::SchemaMap => {
                    let value = self.lift_map(keyword, value, at)?;
                    lifted.insert(keyword.clone(), value);
                }
                KeywordKind::Special => {
                    let parts = self.lift_special(keyword, value, members, at)?;
                    for (keyword, value) in parts {
                        if lifted.contains_key(keyword) || keyword.starts_with("dependent") {
                            let part = [(keyword.to_owned(), value)].into_iter().collect();
                            further.push(Value::Object(part));
                        } else {
                            lifted.insert(keyword.to_owned(), value);
                        }
                    }
                }
            }
        }
        if !further.is_empty() {
            let all = lifted
                .entry("allOf")
                .or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(all) = all {
                all.extend(further);
            }
        }
        Ok(Value::Object(lifted))
    }

    fn lift_list(
        &mut self,
        keyword: &str,
        value: &Value,
        at: &Pointer,
    ) -> Result<Value, PrepareError> {
        let items = value.as_array().filter(|items| !items.is_empty());
        let items = items.ok_or_else(|| invalid(keyword, "a list of schemas, at least one", at))?;
        let place = at.child(keyword);
        let lifted = items.iter().enumerate();
        let lifted: Result<Vec<_>, _> = lifted
            .map(|(index, item)| self.lift(item, &place.index(index)))
            .collect();
        Ok(Value::Array(lifted?))
    }

    fn lift_map(
        &mut self,
        keyword: &str,
        value: &Value,
        at: &Pointer,
    ) -> Result<Value, PrepareError> {
        let map = value
            .as_object()
            .ok_or_else(|| invalid(keyword, "an object of schemas", at))?;
        let place = at.child(keyword);
        let mut lifted = Object::with_capacity(map.len());
        for (name, schema) in sorted(map) {
            lifted.insert(name.clone(), self.lift(schema, &place.child(name))?);
        }
        Ok(Value::Object(lifted))
    }

    /// Lifts a keyword that depends on its sibling keywords.
    fn lift_special(
        &mut self,
        keyword: &str,
        value: &Value,
        members: &Object,
        at: &Pointer,
    ) -> Result<Vec<(&'static str, Value)>, PrepareError> {
        let parts = match keyword {
            "minimum" => {
                check(ValueForm::Number, keyword, value, at)?;
                let strict = self.is_strict(members, "exclusiveMinimum");
                let keyword = if strict {
                    "exclusiveMinimum"
                } else {
                    "minimum"
                };
                vec![(keyword, value.clone())]
            }
            "maximum" => {
                check(ValueForm::Number, keyword, value, at)?;
                let strict = self.is_strict(members, "exclusiveMaximum");
                let keyword = if strict {
                    "exclusiveMaximum"
                } else {
                    "maximum"
                };
                vec![(keyword, value.clone())]
            }
            // In draft 4 this is a boolean that makes the bound beside it exclusive.
            "exclusiveMinimum" | "exclusiveMaximum" => {
                check(ValueForm::Boolean, keyword, value, at)?;
                Vec::new()
            }
            "items" => self.items(value, members, at)?,
            "dependencies" => self.dependencies(value, at)?,
            "format" => self.lift_assertion("format", value, at)?,
            "contentEncoding" => self.lift_assertion("contentEncoding", value, at)?,
            "contentMediaType" => self.lift_assertion("contentMediaType", value, at)?,
            "$ref" => {
                check(ValueForm::Text, keyword, value, at)?;
                let reference = self.reference(value.as_str().unwrap_or_default(), at)?;
                vec![("$ref", reference)]
            }
            "$recursiveRef" => vec![("$ref", self.dynamic("$recursiveRef", "", "#", at)?)],
            "$dynamicRef" => {
                check(ValueForm::Text, keyword, value, at)?;
                let reference = value.as_str().unwrap_or_default();
                let anchor = reference.split_once('#').map_or("", |(_, anchor)| anchor);
                vec![("$ref", self.dynamic("$dynamicRef", anchor, reference, at)?)]
            }
            // `additionalItems` is read together with a list under `items`.
            _ => Vec::new(),
        };
        Ok(parts)
    }

    /// Lifts a keyword that is an assertion only if the policy says so.
    fn lift_assertion(
        &self,
        keyword: &'static str,
        value: &Value,
        at: &Pointer,
    ) -> Result<Vec<(&'static str, Value)>, PrepareError> {
        check(ValueForm::Text, keyword, value, at)?;
        Ok(match self.formats {
            FormatMode::Assert => vec![(keyword, value.clone())],
            FormatMode::Annotate => Vec::new(),
        })
    }

    fn is_strict(&self, members: &Object, exclusive: &str) -> bool {
        self.draft == Draft::Draft4 && members.get(exclusive) == Some(&Value::Bool(true))
    }

    fn items(
        &mut self,
        value: &Value,
        members: &Object,
        at: &Pointer,
    ) -> Result<Vec<(&'static str, Value)>, PrepareError> {
        let place = at.child("items");
        let Some(items) = value.as_array().filter(|_| self.draft < Draft::Draft2020) else {
            return Ok(vec![("items", self.lift(value, &place)?)]);
        };
        let mut parts = Vec::new();
        if !items.is_empty() {
            parts.push(("prefixItems", self.lift_list("items", value, at)?));
        }
        if let Some(rest) = members.get("additionalItems") {
            parts.push(("items", self.lift(rest, &at.child("additionalItems"))?));
        }
        Ok(parts)
    }

    fn dependencies(
        &mut self,
        value: &Value,
        at: &Pointer,
    ) -> Result<Vec<(&'static str, Value)>, PrepareError> {
        let expected = "an object of schemas or lists of names";
        let map = value
            .as_object()
            .ok_or_else(|| invalid("dependencies", expected, at))?;
        let place = at.child("dependencies");
        let (mut names, mut schemas) = (Object::new(), Object::new());
        for (name, needed) in map {
            if needed.is_array() {
                check(ValueForm::Names, "dependencies", needed, at)?;
                names.insert(name.clone(), needed.clone());
            } else {
                schemas.insert(name.clone(), self.lift(needed, &place.child(name))?);
            }
        }
        let parts = [("dependentRequired", names), ("dependentSchemas", schemas)];
        let present = parts.into_iter().filter(|(_, map)| !map.is_empty());
        Ok(present
            .map(|(keyword, map)| (keyword, Value::Object(map)))
            .collect())
    }

    fn dynamic(
        &mut self,
        keyword: &str,
        anchor: &str,
        reference: &str,
        at: &Pointer,
    ) -> Result<Value, PrepareError> {
        let from = self.place(at);
        let found = self
            .resources
            .resolve_dynamic(&from, reference, anchor, &self.scope);
        let (place, target) = found.ok_or_else(|| PrepareError::Unresolved {
            pointer: at.child(keyword),
            reference: reference.to_owned(),
        })?;
        Ok(self.definition_reference(place, target))
    }

    fn place(&self, at: &Pointer) -> SchemaLocation {
        SchemaLocation {
            document: self.document,
            pointer: at.clone(),
        }
    }

    /// The local reference that replaces a reference of the document; its target is lifted later.
    fn reference(&mut self, reference: &str, at: &Pointer) -> Result<Value, PrepareError> {
        let found = self.resources.resolve(&self.place(at), reference);
        let (place, target) = found.ok_or_else(|| PrepareError::Unresolved {
            pointer: at.child("$ref"),
            reference: reference.to_owned(),
        })?;
        Ok(self.definition_reference(place, target))
    }
}

impl<'s> Lifter<'s> {
    /// The reference to a schema by the name it gets in the lifted document.
    fn definition_reference(&mut self, place: SchemaLocation, target: &'s Value) -> Value {
        let scope = if self.resources.has_dynamic_anchors() {
            self.resources.scope_at(&place, &self.scope)
        } else {
            DynamicScope::new()
        };
        let next = self.names.len();
        let key = (place, scope);
        let name = match self.names.get(&key) {
            Some(name) => name.clone(),
            None => {
                let name = format!("d{next}");
                self.pending.push_back(PendingSchema {
                    name: name.clone(),
                    place: key.0.clone(),
                    scope: key.1.clone(),
                    target,
                });
                self.names.insert(key, name.clone());
                name
            }
        };
        Value::from(format!("#/$defs/{name}"))
    }
}

/// Members sorted by name. Definitions are numbered in the order they are met, which must not depend
/// on the key order of a document.
fn sorted(members: &Object) -> Vec<(&String, &Value)> {
    let mut members: Vec<_> = members.iter().collect();
    members.sort_unstable_by_key(|(name, _)| *name);
    members
}

fn check(form: ValueForm, keyword: &str, value: &Value, at: &Pointer) -> Result<(), PrepareError> {
    form.check(value)
        .map_err(|expected| invalid(keyword, expected, at))
}

fn invalid(keyword: &str, expected: &'static str, at: &Pointer) -> PrepareError {
    PrepareError::Invalid {
        pointer: at.child(keyword),
        keyword: keyword.to_owned(),
        expected,
    }
}
