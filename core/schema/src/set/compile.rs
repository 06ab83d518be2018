use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::Value;
use thiserror::Error;
use toolwarden_model::json::{Object, to_canonical_string};

use super::arena::{Arena, Constant, Fact, NodeId, Properties};
use super::ratio::Ratio;
use super::types::TypeSet;
use super::unevaluated;
use crate::prepare::parse_count;

/// The most levels of nested or referenced schemas.
const MAX_NESTING: u32 = 256;

/// Why a lifted schema cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum CompileError {
    #[error("`{keyword}` is out of the range that is computed exactly")]
    OutOfRange { keyword: String },
    #[error("schemas are nested or referenced more than {MAX_NESTING} levels deep")]
    TooDeep,
}

/// Adds a lifted schema to the arena.
pub(crate) fn compile(arena: &mut Arena, lifted: &Value) -> Result<NodeId, CompileError> {
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

/// The progress of compiling a schema.
#[derive(Clone, Copy, Debug)]
enum Progress {
    /// The schema is being compiled, so reaching it again closes a cycle. `steps` counts the steps into
    /// parts of the value that lead to it; `definition` represents it, once needed.
    Open {
        steps: u32,
        definition: Option<usize>,
    },
    Done(NodeId),
}

#[derive(Debug)]
pub(super) struct Compiler<'a> {
    pub(super) arena: &'a mut Arena,
    pub(super) definitions: &'a Object,
    /// How many steps into parts of the value lead to the current schema.
    steps: u32,
    /// How many schemas enclose the current one.
    nesting: u32,
    /// The progress of each schema of the document, by its address in memory.
    progress: HashMap<*const Object, Progress>,
}

impl<'a> Compiler<'a> {
    pub(super) fn schema(&mut self, schema: &Value) -> Result<NodeId, CompileError> {
        match schema {
            Value::Bool(false) => Ok(self.arena.never()),
            Value::Object(members) => self.compile_once(members),
            _ => Ok(self.arena.always()),
        }
    }

    /// Each schema is compiled once, however often it is referred to or asked for.
    fn compile_once(&mut self, members: &Object) -> Result<NodeId, CompileError> {
        let place = std::ptr::from_ref(members);
        match self.progress.get_mut(&place) {
            Some(Progress::Done(id)) => return Ok(*id),
            Some(Progress::Open { steps, .. }) if *steps == self.steps => {
                // The cycle never steps into a part of the value, so its meaning is undefined.
                return Ok(self.opaque("$ref", members));
            }
            Some(Progress::Open { definition, .. }) => {
                let number = match definition {
                    Some(number) => *number,
                    None => *definition.insert(self.arena.reserve_definition()),
                };
                return Ok(self.arena.add(Fact::Definition(number)));
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

    fn object(&mut self, members: &Object) -> Result<NodeId, CompileError> {
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
                    Some(self.arena.add(Fact::Names(names)))
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
                parts.push(self.arena.add(Fact::Required(name.into())));
            }
        }
        Ok(self.arena.all(parts))
    }

    /// A keyword that says one thing about the value itself.
    fn plain(&mut self, keyword: &str, value: &Value) -> Result<Option<NodeId>, CompileError> {
        let number = || {
            Ratio::of_value(value).ok_or_else(|| CompileError::OutOfRange {
                keyword: keyword.to_owned(),
            })
        };
        let size = parse_count(value).unwrap_or_default();
        let node = match keyword {
            "type" => {
                let words = value
                    .as_array()
                    .map_or_else(|| std::slice::from_ref(value), Vec::as_slice);
                let types = words.iter().filter_map(Value::as_str);
                Fact::Type(types.fold(TypeSet::NONE, |set, word| set.or(TypeSet::named(word))))
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
            "minimum" => Fact::AtLeast {
                bound: number()?,
                strict: false,
            },
            "exclusiveMinimum" => Fact::AtLeast {
                bound: number()?,
                strict: true,
            },
            "maximum" => Fact::AtMost {
                bound: number()?,
                strict: false,
            },
            "exclusiveMaximum" => Fact::AtMost {
                bound: number()?,
                strict: true,
            },
            "multipleOf" => Fact::MultipleOf(number()?),
            "minLength" if size > 0 => Fact::MinLength(size),
            "maxLength" => Fact::MaxLength(size),
            "minItems" if size > 0 => Fact::MinItems(size),
            "maxItems" => Fact::MaxItems(size),
            "minProperties" if size > 0 => Fact::MinProperties(size),
            "maxProperties" => Fact::MaxProperties(size),
            "uniqueItems" if *value == Value::Bool(true) => Fact::UniqueItems,
            "pattern" => Fact::Pattern(text(value)),
            "format" => {
                let schema: Object = [("format".to_owned(), value.clone())].into_iter().collect();
                Fact::Format(to_canonical_string(&Value::Object(schema)).into())
            }
            "dependentRequired" => return self.dependent_required(value).map(Some),
            _ => return Ok(None),
        };
        Ok(Some(self.arena.add(node)))
    }

    /// A schema about a part of the value.
    pub(super) fn part(&mut self, schema: &Value) -> Result<NodeId, CompileError> {
        self.steps += 1;
        let id = self.schema(schema);
        self.steps -= 1;
        id
    }

    pub(super) fn list(&mut self, value: &Value) -> Result<Vec<NodeId>, CompileError> {
        let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
        items.iter().map(|item| self.schema(item)).collect()
    }

    fn reference(&mut self, reference: &str) -> Result<NodeId, CompileError> {
        let name = reference.trim_start_matches("#/$defs/");
        match self.definitions.get(name) {
            Some(body) => self.schema(body),
            None => Ok(self.arena.always()),
        }
    }

    fn one_of(&mut self, value: &Value) -> Result<NodeId, CompileError> {
        let mut branches = self.list(value)?;
        let never = self.arena.never();
        branches.retain(|branch| *branch != never);
        branches.sort_unstable();
        Ok(match branches.as_slice() {
            [] => never,
            [only] => *only,
            _ => self.arena.add(Fact::One(branches)),
        })
    }

    fn conditional(&mut self, condition: &Value, members: &Object) -> Result<NodeId, CompileError> {
        let condition = self.schema(condition)?;
        let otherwise = self.arena.not(condition);
        let then = self.branch(members, "then")?;
        let no = self.branch(members, "else")?;
        let then = self.arena.any([otherwise, then]);
        let no = self.arena.any([condition, no]);
        Ok(self.arena.all([then, no]))
    }

    fn branch(&mut self, members: &Object, keyword: &str) -> Result<NodeId, CompileError> {
        match members.get(keyword) {
            Some(schema) => self.schema(schema),
            None => Ok(self.arena.always()),
        }
    }

    fn contains(&mut self, value: &Value, members: &Object) -> Result<NodeId, CompileError> {
        let schema = self.part(value)?;
        let min = members
            .get("minContains")
            .and_then(parse_count)
            .unwrap_or(1);
        let max = members.get("maxContains").and_then(parse_count);
        if min == 0 && max.is_none() {
            return Ok(self.arena.always());
        }
        Ok(self.arena.add(Fact::Contains { schema, min, max }))
    }

    fn dependent_required(&mut self, value: &Value) -> Result<NodeId, CompileError> {
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
                let present = self.arena.add(Fact::Required(other.into()));
                parts.push(self.arena.any([absent, present]));
            }
        }
        Ok(self.arena.all(parts))
    }

    fn dependent_schemas(&mut self, value: &Value) -> Result<NodeId, CompileError> {
        let map = value.as_object().into_iter().flatten();
        let mut parts = Vec::new();
        for (name, schema) in map {
            let absent = self.absent(name);
            let other = self.arena.add(Fact::Type(TypeSet::OBJECT.complement()));
            let schema = self.schema(schema)?;
            parts.push(self.arena.any([absent, other, schema]));
        }
        Ok(self.arena.all(parts))
    }

    /// The fact that the value is an object without the key.
    fn absent(&mut self, name: &str) -> NodeId {
        let required = self.arena.add(Fact::Required(name.into()));
        self.arena.not(required)
    }

    fn properties(&mut self, members: &Object) -> Result<Option<NodeId>, CompileError> {
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
        mut named: BTreeMap<Arc<str>, NodeId>,
        mut patterns: Vec<(Arc<str>, NodeId)>,
        rest: NodeId,
        always: NodeId,
    ) -> Option<NodeId> {
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
        Some(self.arena.add(Fact::Properties(Properties {
            named,
            patterns,
            rest,
        })))
    }

    /// What a string must decode to; the two keywords are one fact.
    fn content(&mut self, members: &Object) -> Option<NodeId> {
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
        Some(self.arena.add(Fact::Format(schema.into())))
    }

    fn items(&mut self, members: &Object) -> Result<Option<NodeId>, CompileError> {
        let mut prefix = match members.get("prefixItems") {
            Some(list) => {
                let items = list.as_array().map(Vec::as_slice).unwrap_or_default();
                let items: Result<Vec<NodeId>, _> =
                    items.iter().map(|item| self.part(item)).collect();
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
        Ok(Some(self.arena.add(Fact::Items { prefix, rest })))
    }

    /// A fact no rule reads, equal only to itself where it could refer to something.
    pub(super) fn opaque(&mut self, keyword: &'static str, members: &Object) -> NodeId {
        let text = to_canonical_string(&Value::Object(members.clone()));
        let text = if text.contains("\"$ref\"") {
            format!("{} {text}", self.arena.reserve_definition())
        } else {
            text
        };
        self.arena.add(Fact::Opaque {
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
