//! Which members of a value a schema declares.
//!
//! A member of a value is declared if a subschema that applies to it says what it is. The question is
//! asked about one accepted value, so that conditions and alternatives are evaluated rather than read:
//! a branch that does not hold declares nothing.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use toolwarden_model::json::{Object, Pointer};

use crate::comparison_policy::{FormatMode, SearchBudget};
use crate::prepare::{Draft, lift_with_descriptions};
use crate::text::PatternCache;
use crate::witness::CompiledSchema;

/// The longest chain of schemas that is followed for one value.
const MAX_NESTING: usize = 64;

/// What counts as a declaration besides `properties`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeclarationRule {
    /// Whatever JSON Schema collects an annotation from.
    Annotated,
    /// Only keywords that have an effect: without them, the schema would accept other values.
    Effective,
}

/// Whether it is proven that two schemas accept the same objects.
pub(crate) type EquivalenceProof = fn(&Value, &Value, FormatMode, SearchBudget) -> bool;

/// A schema as a reader of values.
#[derive(Debug)]
pub(crate) struct DeclaredMembers {
    /// The lifted schema, with descriptions.
    root: Arc<Value>,
    formats: FormatMode,
    budget: SearchBudget,
    are_equivalent: EquivalenceProof,
    texts: PatternCache,
    validators: HashMap<Pointer, Option<CompiledSchema>>,
    effects: HashMap<Pointer, bool>,
}

/// A part of a value, and the path from there to the member in question.
#[derive(Clone, Copy)]
struct Target<'v> {
    value: &'v Value,
    path: &'v [String],
}

impl<'v> Target<'v> {
    /// The next step of the path, and what is there.
    fn step(self) -> Option<(&'v str, Self)> {
        let (first, path) = self.path.split_first()?;
        let value = match self.value {
            Value::Object(members) => members.get(first)?,
            Value::Array(items) => items.get(first.parse::<usize>().ok()?)?,
            _ => return None,
        };
        Some((first, Self { value, path }))
    }
}

impl DeclaredMembers {
    /// Reads a schema; `None` if it cannot be read.
    pub(crate) fn new(
        schema: &Value,
        formats: FormatMode,
        budget: SearchBudget,
        are_equivalent: EquivalenceProof,
    ) -> Option<Self> {
        Some(Self {
            root: Arc::new(lift_with_descriptions(schema, formats).ok()?),
            formats,
            budget,
            are_equivalent,
            texts: PatternCache::new(budget),
            validators: HashMap::new(),
            effects: HashMap::new(),
        })
    }

    /// Whether the schema declares a member of a value that it accepts.
    pub(crate) fn declares(
        &mut self,
        value: &Value,
        member: &Pointer,
        rule: DeclarationRule,
    ) -> bool {
        let path: Vec<String> = member.segments().collect();
        let target = Target { value, path: &path };
        self.visit(&Pointer::root(), target, rule, 0)
    }

    /// Whether the schema at a pointer, which accepts the value, declares the member.
    fn visit(
        &mut self,
        at: &Pointer,
        target: Target<'_>,
        rule: DeclarationRule,
        nesting: usize,
    ) -> bool {
        let root = Arc::clone(&self.root);
        let Some(Value::Object(members)) = at.find(&root) else {
            return false;
        };
        if nesting > MAX_NESTING {
            return false;
        }
        let mut visit = |at: &Pointer| self.visit(at, target, rule, nesting + 1);
        if let Some(Value::String(reference)) = members.get("$ref")
            && visit(&Pointer::from(reference.trim_start_matches('#')))
        {
            return true;
        }
        let all = at.child("allOf");
        if indices(members, "allOf").any(|index| visit(&all.index(index))) {
            return true;
        }
        self.by_combination(members, at, target, rule, nesting)
            || self.by_condition(members, at, target, rule, nesting)
            || self.by_part(members, at, target, rule, nesting)
    }

    /// `anyOf`, `oneOf` and `dependentSchemas`.
    fn by_combination(
        &mut self,
        members: &Object,
        at: &Pointer,
        target: Target<'_>,
        rule: DeclarationRule,
        nesting: usize,
    ) -> bool {
        for keyword in ["anyOf", "oneOf"] {
            let place = at.child(keyword);
            for branch in indices(members, keyword).map(|index| place.index(index)) {
                if self.visit(&branch, target, rule, nesting + 1)
                    && self.accepts(&branch, target.value)
                    && (rule == DeclarationRule::Annotated || self.has_effect(at, &[keyword]))
                {
                    return true;
                }
            }
        }
        let Some(Value::Object(dependent)) = members.get("dependentSchemas") else {
            return false;
        };
        let place = at.child("dependentSchemas");
        let present = dependent
            .keys()
            .filter(|key| target.value.get(key.as_str()).is_some());
        let mut present: Vec<&String> = present.collect();
        present.retain(|key| self.visit(&place.child(key), target, rule, nesting + 1));
        let effective = |key: &&String| self.has_effect(&place, &[key.as_str()]);
        !present.is_empty() && (rule == DeclarationRule::Annotated || present.iter().any(effective))
    }

    /// `if`, `then` and `else`.
    fn by_condition(
        &mut self,
        members: &Object,
        at: &Pointer,
        target: Target<'_>,
        rule: DeclarationRule,
        nesting: usize,
    ) -> bool {
        if !members.contains_key("if") {
            return false;
        }
        let condition = at.child("if");
        let holds = self.accepts(&condition, target.value);
        let branch = at.child(if holds { "then" } else { "else" });
        let in_branch = self.visit(&branch, target, rule, nesting + 1);
        if rule == DeclarationRule::Annotated {
            return in_branch || (holds && self.visit(&condition, target, rule, nesting + 1));
        }
        // A condition reads what it asks about, whatever the answer is.
        (in_branch || self.visit(&condition, target, rule, nesting + 1))
            && self.has_effect(at, &["if", "then", "else"])
    }

    /// Keywords that apply to members and items.
    fn by_part(
        &mut self,
        members: &Object,
        at: &Pointer,
        target: Target<'_>,
        rule: DeclarationRule,
        nesting: usize,
    ) -> bool {
        let Some((name, inner)) = target.step() else {
            return false;
        };
        if let Value::Array(_) = target.value {
            let index = name.parse::<usize>().unwrap_or(usize::MAX);
            let prefix = indices(members, "prefixItems").count();
            let place = match index < prefix {
                true => at.child("prefixItems").index(index),
                false if members.contains_key("items") => at.child("items"),
                false => at.child("unevaluatedItems"),
            };
            let contained = at.child("contains");
            return self.visit(&place, inner, rule, nesting + 1)
                || (self.visit(&contained, inner, rule, nesting + 1)
                    && self.accepts(&contained, inner.value));
        }
        let declared = members.get("properties").and_then(|it| it.get(name));
        if declared.is_some() {
            let place = at.child("properties").child(name);
            if inner.path.is_empty() || self.visit(&place, inner, rule, nesting + 1) {
                return true;
            }
        }
        let mut maps = Vec::new();
        if let Some(Value::Object(patterns)) = members.get("patternProperties") {
            let matching = patterns.keys().filter(|pattern| {
                self.texts.matches(&Arc::from(pattern.as_str()), name) != Some(false)
            });
            let place = at.child("patternProperties");
            maps.extend(matching.map(|pattern| place.child(pattern)));
        }
        if declared.is_none() && maps.is_empty() {
            maps.push(at.child("additionalProperties"));
        }
        maps.push(at.child("unevaluatedProperties"));
        maps.iter().any(|place| match inner.path.is_empty() {
            true => self.says_something(place),
            false => self.visit(place, inner, rule, nesting + 1),
        })
    }

    /// Whether the schema of the values of a map describes or restricts them.
    fn says_something(&mut self, at: &Pointer) -> bool {
        let root = Arc::clone(&self.root);
        match at.find(&root) {
            Some(Value::Object(members)) if members.contains_key("description") => true,
            Some(Value::Object(members)) if !members.is_empty() => self.differs_from(at, |root| {
                if let Some(slot) = root.pointer_mut(at.as_str()) {
                    *slot = Value::Bool(true);
                }
            }),
            _ => false,
        }
    }

    /// Whether the schema would accept other values without these keywords at a place.
    fn has_effect(&mut self, at: &Pointer, keywords: &[&str]) -> bool {
        let key = keywords
            .first()
            .map_or_else(|| at.clone(), |it| at.child(it));
        self.differs_from(&key, |root| {
            if let Some(Value::Object(members)) = root.pointer_mut(at.as_str()) {
                for keyword in keywords {
                    members.shift_remove(*keyword);
                }
            }
        })
    }

    /// Whether an edit changes what the schema accepts. Unless equivalence is proven, it does.
    fn differs_from(&mut self, key: &Pointer, edit: impl FnOnce(&mut Value)) -> bool {
        if let Some(known) = self.effects.get(key) {
            return *known;
        }
        let mut edited = (*self.root).clone();
        edit(&mut edited);
        let differs = !(self.are_equivalent)(&self.root, &edited, self.formats, self.budget);
        self.effects.insert(key.clone(), differs);
        differs
    }

    /// Whether the schema at a pointer accepts a value.
    fn accepts(&mut self, at: &Pointer, value: &Value) -> bool {
        let (root, formats) = (Arc::clone(&self.root), self.formats);
        let build = || {
            let mut schema = at.find(&root)?.clone();
            if let (Value::Object(members), Some(definitions)) = (&mut schema, root.get("$defs")) {
                members.insert("$defs".to_owned(), definitions.clone());
            }
            CompiledSchema::new(&schema, Draft::Draft2020, formats).ok()
        };
        let known = self.validators.entry(at.clone()).or_insert_with(build);
        known.as_ref().is_some_and(|schema| schema.accepts(value))
    }
}

/// The indices of the schemas in a list under a keyword.
fn indices(members: &Object, keyword: &str) -> std::ops::Range<usize> {
    let list = members.get(keyword).and_then(Value::as_array);
    0..list.map_or(0, Vec::len)
}
