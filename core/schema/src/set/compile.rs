use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::Value;
use thiserror::Error;
use toolwarden_model::json::{Object, to_canonical_string};

use super::node::{Arena, Constant, Id, Node, Properties};
use super::number::Ratio;
use super::types::TypeSet;
use super::unevaluated;
use crate::prepare::count;

/// The most schemas that may lie inside or behind each other.
const MAX_NESTING: u32 = 256;

/// Why a lifted schema cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum CompileError {
    #[error("`{keyword}` is out of the range that is computed exactly")]
    OutOfRange { keyword: String },
    #[error("more than {MAX_NESTING} schemas lie inside or behind each other")]
    TooDeep,
}

/// Adds a lifted schema to the arena.
pub(crate) fn compile(arena: &mut Arena, lifted: &Value) -> Result<Id, CompileError> {
    let no_definitions = Object::new();
    let definitions = lifted
        .get("$defs")
        .and_then(Value::as_object)
        .unwrap_or(&no_definitions);
    let mut compiler = Compiler {
        arena,
        definitions,
        steps: 0,
        nesting: 0,
        progress: HashMap::new(),
    };
    compiler.schema(lifted)
}

/// How far the compilation of a schema has come.
#[derive(Clone, Copy, Debug)]
enum Progress {
    /// It is being compiled: who asks for it now closes a circle. With the number of steps into
    /// parts of the value that lead to it, and the definition that stands for it, once needed.
    Open {
        steps: u32,
        definition: Option<usize>,
    },
    Done(Id),
}

#[derive(Debug)]
pub(super) struct Compiler<'a> {
    pub(super) arena: &'a mut Arena,
    pub(super) definitions: &'a Object,
    /// How many steps into parts of the value lead to the schema at hand.
    steps: u32,
    /// How many schemas lie around the one at hand.
    nesting: u32,
    /// What became of each schema of the document, by its place in memory.
    progress: HashMap<*const Object, Progress>,
}

impl<'a> Compiler<'a> {
    pub(super) fn schema(&mut self, schema: &Value) -> Result<Id, CompileError> {
        match schema {
            Value::Bool(false) => Ok(self.arena.never()),
            Value::Object(members) => self.once(members),
            _ => Ok(self.arena.always()),
        }
    }

    /// Each schema is compiled once, however often it is referred to or asked for.
    fn once(&mut self, members: &Object) -> Result<Id, CompileError> {
        let place = std::ptr::from_ref(members);
        match self.progress.get_mut(&place) {
            Some(Progress::Done(id)) => return Ok(*id),
            Some(Progress::Open { steps, .. }) if *steps == self.steps => {
                // The circle never steps into a part of the value: what it means is not defined.
                return Ok(self.opaque("$ref", members));
            }
            Some(Progress::Open { definition, .. }) => {
                let number = match definition {
                    Some(number) => *number,
                    None => *definition.insert(self.arena.reserve_definition()),
                };
                return Ok(self.arena.add(Node::Definition(number)));
            }
            None => {}
        }
        let open = Progress::Open {
            steps: self.steps,
            definition: None,
        };
        self.progress.insert(place, open);
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(CompileError::TooDeep);
        }
        let id = self.object(members)?;
        self.nesting -= 1;
        if let Some(Progress::Open {
            definition: Some(number),
            ..
        }) = self.progress.insert(place, Progress::Done(id))
        {
            self.arena.define(number, id);
        }
        Ok(id)
    }

    fn object(&mut self, members: &Object) -> Result<Id, CompileError> {
        let mut parts = Vec::new();
        for (keyword, value) in members {
            let part = match keyword.as_str() {
                "$ref" => Some(self.reference(value.as_str().unwrap_or_default())?),
                "allOf" => {
                    let all = self.list(value)?;
                    Some(self.arena.all(all))
                }
                "anyOf" => {
                    let any = self.list(value)?;
                    Some(self.arena.any(any))
                }
                "oneOf" => Some(self.one_of(value)?),
                "not" => {
                    let inner = self.schema(value)?;
                    Some(self.arena.not(inner))
                }
                "if" => Some(self.conditional(value, members)?),
                "propertyNames" => {
                    let names = self.part(value)?;
                    Some(self.arena.add(Node::Names(names)))
                }
                "contains" => Some(self.contains(value, members)?),
                "dependentSchemas" => Some(self.dependent_schemas(value)?),
                "unevaluatedProperties" => Some(unevaluated::properties(self, value, members)?),
                "unevaluatedItems" => Some(unevaluated::items(self, value, members)?),
                _ => self.plain(keyword, value)?,
            };
            parts.extend(part);
        }
        parts.extend(self.properties(members)?);
        parts.extend(self.items(members)?);
        parts.extend(self.content(members));
        if let Some(names) = members.get("required").and_then(Value::as_array) {
            for name in names.iter().filter_map(Value::as_str) {
                parts.push(self.arena.add(Node::Required(name.into())));
            }
        }
        Ok(self.arena.all(parts))
    }

    /// A keyword that says one thing about the value itself.
    fn plain(&mut self, keyword: &str, value: &Value) -> Result<Option<Id>, CompileError> {
        let number = || {
            Ratio::of_value(value).ok_or_else(|| CompileError::OutOfRange {
                keyword: keyword.to_owned(),
            })
        };
        let size = count(value).unwrap_or_default();
        let node = match keyword {
            "type" => {
                let words = value
                    .as_array()
                    .map_or_else(|| std::slice::from_ref(value), Vec::as_slice);
                let types = words.iter().filter_map(Value::as_str);
                Node::Type(types.fold(TypeSet::NONE, |set, word| set.or(TypeSet::named(word))))
            }
            "enum" | "const" if !is_computable(value) => {
                return Err(CompileError::OutOfRange {
                    keyword: keyword.to_owned(),
                });
            }
            "enum" => {
                let values = value.as_array().map(Vec::as_slice).unwrap_or_default();
                return Ok(Some(self.arena.constants(values.iter().map(Constant::of))));
            }
            "const" => return Ok(Some(self.arena.constants([Constant::of(value)]))),
            "minimum" => Node::AtLeast {
                bound: number()?,
                strict: false,
            },
            "exclusiveMinimum" => Node::AtLeast {
                bound: number()?,
                strict: true,
            },
            "maximum" => Node::AtMost {
                bound: number()?,
                strict: false,
            },
            "exclusiveMaximum" => Node::AtMost {
                bound: number()?,
                strict: true,
            },
            "multipleOf" => Node::MultipleOf(number()?),
            "minLength" if size > 0 => Node::MinLength(size),
            "maxLength" => Node::MaxLength(size),
            "minItems" if size > 0 => Node::MinItems(size),
            "maxItems" => Node::MaxItems(size),
            "minProperties" if size > 0 => Node::MinProperties(size),
            "maxProperties" => Node::MaxProperties(size),
            "uniqueItems" if *value == Value::Bool(true) => Node::UniqueItems,
            "pattern" => Node::Pattern(text(value)),
            "format" => {
                let schema: Object = [("format".to_owned(), value.clone())].into_iter().collect();
                Node::Format(to_canonical_string(&Value::Object(schema)).into())
            }
            "dependentRequired" => return self.dependent_required(value).map(Some),
            _ => return Ok(None),
        };
        Ok(Some(self.arena.add(node)))
    }

    /// A schema about a part of the value.
    pub(super) fn part(&mut self, schema: &Value) -> Result<Id, CompileError> {
        self.steps += 1;
        let id = self.schema(schema);
        self.steps -= 1;
        id
    }

    pub(super) fn list(&mut self, value: &Value) -> Result<Vec<Id>, CompileError> {
        let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
        items.iter().map(|item| self.schema(item)).collect()
    }

    fn reference(&mut self, reference: &str) -> Result<Id, CompileError> {
        let name = reference.trim_start_matches("#/$defs/");
        match self.definitions.get(name) {
            Some(body) => self.schema(body),
            None => Ok(self.arena.always()),
        }
    }

    fn one_of(&mut self, value: &Value) -> Result<Id, CompileError> {
        let mut branches = self.list(value)?;
        let never = self.arena.never();
        branches.retain(|branch| *branch != never);
        branches.sort_unstable();
        Ok(match branches.as_slice() {
            [] => never,
            [only] => *only,
            _ => self.arena.add(Node::One(branches)),
        })
    }

    fn conditional(&mut self, condition: &Value, members: &Object) -> Result<Id, CompileError> {
        let condition = self.schema(condition)?;
        let otherwise = self.arena.not(condition);
        let then = self.branch(members, "then")?;
        let no = self.branch(members, "else")?;
        let then = self.arena.any([otherwise, then]);
        let no = self.arena.any([condition, no]);
        Ok(self.arena.all([then, no]))
    }

    fn branch(&mut self, members: &Object, keyword: &str) -> Result<Id, CompileError> {
        match members.get(keyword) {
            Some(schema) => self.schema(schema),
            None => Ok(self.arena.always()),
        }
    }

    fn contains(&mut self, value: &Value, members: &Object) -> Result<Id, CompileError> {
        let schema = self.part(value)?;
        let min = members.get("minContains").and_then(count).unwrap_or(1);
        let max = members.get("maxContains").and_then(count);
        if min == 0 && max.is_none() {
            return Ok(self.arena.always());
        }
        Ok(self.arena.add(Node::Contains { schema, min, max }))
    }

    fn dependent_required(&mut self, value: &Value) -> Result<Id, CompileError> {
        let map = value.as_object().into_iter().flatten();
        let mut parts = Vec::new();
        for (name, needed) in map {
            let absent = self.absent(name);
            for other in needed
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
            {
                let present = self.arena.add(Node::Required(other.into()));
                parts.push(self.arena.any([absent, present]));
            }
        }
        Ok(self.arena.all(parts))
    }

    fn dependent_schemas(&mut self, value: &Value) -> Result<Id, CompileError> {
        let map = value.as_object().into_iter().flatten();
        let mut parts = Vec::new();
        for (name, schema) in map {
            let absent = self.absent(name);
            let other = self.arena.add(Node::Type(TypeSet::OBJECT.complement()));
            let schema = self.schema(schema)?;
            parts.push(self.arena.any([absent, other, schema]));
        }
        Ok(self.arena.all(parts))
    }

    /// The fact that the value is an object without the key.
    fn absent(&mut self, name: &str) -> Id {
        let required = self.arena.add(Node::Required(name.into()));
        self.arena.not(required)
    }

    fn properties(&mut self, members: &Object) -> Result<Option<Id>, CompileError> {
        let map = |keyword: &str| members.get(keyword).and_then(Value::as_object);
        let always = self.arena.always();
        let mut named = BTreeMap::new();
        for (name, schema) in map("properties").into_iter().flatten() {
            named.insert(Arc::from(name.as_str()), self.part(schema)?);
        }
        let mut patterns = Vec::new();
        for (pattern, schema) in map("patternProperties").into_iter().flatten() {
            patterns.push((Arc::from(pattern.as_str()), self.part(schema)?));
        }
        patterns.sort();
        let rest = match members.get("additionalProperties") {
            Some(schema) => self.part(schema)?,
            None => always,
        };
        Ok(self.property_map(named, patterns, rest, always))
    }

    /// The fact about an object's values, without the parts that say nothing.
    pub(super) fn property_map(
        &mut self,
        mut named: BTreeMap<Arc<str>, Id>,
        mut patterns: Vec<(Arc<str>, Id)>,
        rest: Id,
        always: Id,
    ) -> Option<Id> {
        if rest == always {
            named.retain(|_, id| *id != always);
            patterns.retain(|(_, id)| *id != always);
            if named.is_empty() && patterns.is_empty() {
                return None;
            }
        }
        if patterns.is_empty() {
            named.retain(|_, id| *id != rest);
        }
        Some(self.arena.add(Node::Properties(Properties {
            named,
            patterns,
            rest,
        })))
    }

    /// What a string must decode to; the two keywords are one fact.
    fn content(&mut self, members: &Object) -> Option<Id> {
        let content = members.iter().filter(|(keyword, _)| {
            matches!(keyword.as_str(), "contentEncoding" | "contentMediaType")
        });
        let content: Object = content
            .map(|(keyword, value)| (keyword.clone(), value.clone()))
            .collect();
        if content.is_empty() {
            return None;
        }
        let schema = to_canonical_string(&Value::Object(content));
        Some(self.arena.add(Node::Format(schema.into())))
    }

    fn items(&mut self, members: &Object) -> Result<Option<Id>, CompileError> {
        let mut prefix = match members.get("prefixItems") {
            Some(list) => {
                let items = list.as_array().map(Vec::as_slice).unwrap_or_default();
                let items: Result<Vec<Id>, _> = items.iter().map(|item| self.part(item)).collect();
                items?
            }
            None => Vec::new(),
        };
        let rest = match members.get("items") {
            Some(schema) => self.part(schema)?,
            None => self.arena.always(),
        };
        while prefix.last() == Some(&rest) {
            prefix.pop();
        }
        if prefix.is_empty() && rest == self.arena.always() {
            return Ok(None);
        }
        Ok(Some(self.arena.add(Node::Items { prefix, rest })))
    }

    /// A fact no rule reads, equal only to itself where it could refer to something.
    pub(super) fn opaque(&mut self, keyword: &'static str, members: &Object) -> Id {
        let text = to_canonical_string(&Value::Object(members.clone()));
        let text = if text.contains("\"$ref\"") {
            format!("{} {text}", self.arena.reserve_definition())
        } else {
            text
        };
        self.arena.add(Node::Opaque {
            keyword,
            text: text.into(),
        })
    }
}

/// Whether every number inside a value can be computed with.
fn is_computable(value: &Value) -> bool {
    match value {
        Value::Number(number) => Ratio::of(number).is_some(),
        Value::Array(items) => items.iter().all(is_computable),
        Value::Object(members) => members.values().all(is_computable),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}

fn text(value: &Value) -> Arc<str> {
    Arc::from(value.as_str().unwrap_or_default())
}
