//! Compiles `unevaluatedProperties` and `unevaluatedItems` by case distinction.
//!
//! A key counts as evaluated when a schema that holds for the value mentions it. More schemas that
//! hold mean more evaluated keys, so this condition suffices: for some choice of branches, all of
//! them hold, and every key that none of them mentions satisfies the keyword.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use toolwarden_model::json::Object;

use super::arena::{Fact, NodeId};
use super::compile::{CompileError, Compiler};

/// The most cases one keyword is split into.
const MAX_CASES: usize = 64;

/// The most references followed from one keyword.
const MAX_FOLLOWED: usize = 16;

/// One way the schemas beside the keyword can hold.
#[derive(Clone, Debug, Default)]
struct Case {
    conditions: Vec<NodeId>,
    names: BTreeSet<Arc<str>>,
    patterns: BTreeSet<Arc<str>>,
    everything: bool,
}

impl Case {
    fn names_keys(&self) -> bool {
        self.everything || !self.names.is_empty() || !self.patterns.is_empty()
    }

    fn with(&self, other: &Self) -> Self {
        let mut both = self.clone();
        both.conditions.extend(&other.conditions);
        both.names.extend(other.names.iter().cloned());
        both.patterns.extend(other.patterns.iter().cloned());
        both.everything |= other.everything;
        both
    }
}

/// The role of the keyword in the current schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keyword {
    /// It asks which keys are evaluated.
    Asserting,
    /// It has evaluated them, for a schema around this one that asks.
    Evaluating,
}

pub(super) fn properties(
    compiler: &mut Compiler<'_>,
    schema: &Value,
    members: &Object,
) -> Result<NodeId, CompileError> {
    let Some(cases) = cases(compiler, members, Keyword::Asserting, &mut Vec::new())? else {
        return Ok(compiler.opaque("unevaluatedProperties", members));
    };
    let rest = compiler.part(schema)?;
    let always = compiler.arena.always();
    let mut alternatives = Vec::new();
    for case in cases {
        let mut parts = case.conditions;
        if !case.everything {
            let named: BTreeMap<_, _> = case.names.into_iter().map(|name| (name, always)).collect();
            let patterns = case.patterns.into_iter().map(|pattern| (pattern, always));
            parts.extend(compiler.property_map(named, patterns.collect(), rest, always));
        }
        alternatives.push(compiler.arena.all(parts));
    }
    Ok(compiler.arena.any(alternatives))
}

/// The ways the schemas beside the keyword can hold, or `None` if there are too many.
fn cases(
    compiler: &mut Compiler<'_>,
    members: &Object,
    keyword: Keyword,
    followed: &mut Vec<String>,
) -> Result<Option<Vec<Case>>, CompileError> {
    let mut own = Case {
        everything: members.contains_key("additionalProperties")
            || (keyword == Keyword::Evaluating && members.contains_key("unevaluatedProperties")),
        ..Case::default()
    };
    let keys = |keyword: &str| members.get(keyword).and_then(Value::as_object);
    for name in keys("properties").into_iter().flat_map(Object::keys) {
        own.names.insert(Arc::from(name.as_str()));
    }
    for pattern in keys("patternProperties").into_iter().flat_map(Object::keys) {
        own.patterns.insert(Arc::from(pattern.as_str()));
    }
    let mut found = vec![own];
    for (keyword, value) in members {
        let choices = match keyword.as_str() {
            "$ref" => {
                let name = value.as_str().unwrap_or_default();
                let name = name.trim_start_matches("#/$defs/").to_owned();
                if followed.contains(&name) || followed.len() >= MAX_FOLLOWED {
                    return Ok(None);
                }
                followed.push(name.clone());
                let definitions = compiler.definitions;
                let part = part(compiler, definitions.get(&name), followed)?;
                followed.pop();
                vec![part]
            }
            "allOf" => {
                let mut choices = Vec::new();
                for branch in value.as_array().into_iter().flatten() {
                    choices.push(part(compiler, Some(branch), followed)?);
                }
                choices
            }
            "anyOf" => any_of(compiler, value, followed)?,
            "oneOf" => vec![one_of(compiler, value, followed)?],
            "if" => vec![conditional(compiler, value, members, followed)?],
            "dependentSchemas" => dependent(compiler, value, followed)?,
            _ => continue,
        };
        for choice in choices {
            let Some(choice) = choice else {
                return Ok(None);
            };
            if found.len() * choice.len() > MAX_CASES {
                return Ok(None);
            }
            let combined = found
                .iter()
                .flat_map(|case| choice.iter().map(|other| case.with(other)));
            found = combined.collect();
        }
    }
    Ok(Some(found))
}

type Choice = Option<Vec<Case>>;

fn part(
    compiler: &mut Compiler<'_>,
    schema: Option<&Value>,
    followed: &mut Vec<String>,
) -> Result<Choice, CompileError> {
    match schema {
        Some(Value::Object(members)) => cases(compiler, members, Keyword::Evaluating, followed),
        _ => Ok(Some(vec![Case::default()])),
    }
}

/// Each branch that mentions keys may hold or not.
fn any_of(
    compiler: &mut Compiler<'_>,
    value: &Value,
    followed: &mut Vec<String>,
) -> Result<Vec<Choice>, CompileError> {
    let mut choices = Vec::new();
    for branch in value.as_array().into_iter().flatten() {
        choices.push(optional(compiler, branch, None, followed)?);
    }
    Ok(choices)
}

/// One branch holds; a branch that mentions no keys adds nothing.
fn one_of(
    compiler: &mut Compiler<'_>,
    value: &Value,
    followed: &mut Vec<String>,
) -> Result<Choice, CompileError> {
    let mut alternatives = vec![Case::default()];
    for branch in value.as_array().into_iter().flatten() {
        let Some(cases) = optional(compiler, branch, None, followed)? else {
            return Ok(None);
        };
        alternatives.extend(cases.into_iter().skip(1));
    }
    Ok(Some(alternatives))
}

fn conditional(
    compiler: &mut Compiler<'_>,
    condition: &Value,
    members: &Object,
    followed: &mut Vec<String>,
) -> Result<Choice, CompileError> {
    let holds = compiler.schema(condition)?;
    let fails = compiler.arena.not(holds);
    let condition = part(compiler, Some(condition), followed)?;
    let then = part(compiler, members.get("then"), followed)?;
    let otherwise = part(compiler, members.get("else"), followed)?;
    let (Some(condition), Some(then), Some(otherwise)) = (condition, then, otherwise) else {
        return Ok(None);
    };
    let mut alternatives = Vec::new();
    for first in &condition {
        for second in &then {
            let mut case = first.with(second);
            case.conditions.push(holds);
            alternatives.push(case);
        }
    }
    for mut case in otherwise {
        case.conditions.push(fails);
        alternatives.push(case);
    }
    Ok(Some(alternatives))
}

fn dependent(
    compiler: &mut Compiler<'_>,
    value: &Value,
    followed: &mut Vec<String>,
) -> Result<Vec<Choice>, CompileError> {
    let mut choices = Vec::new();
    for (name, schema) in value.as_object().into_iter().flatten() {
        let present = compiler.arena.add(Fact::Required(name.as_str().into()));
        choices.push(optional(compiler, schema, Some(present), followed)?);
    }
    Ok(choices)
}

/// Either nothing, or that a schema holds with the keys it mentions.
fn optional(
    compiler: &mut Compiler<'_>,
    schema: &Value,
    condition: Option<NodeId>,
    followed: &mut Vec<String>,
) -> Result<Choice, CompileError> {
    let Some(cases) = part(compiler, Some(schema), followed)? else {
        return Ok(None);
    };
    let mut alternatives = vec![Case::default()];
    let holds = compiler.schema(schema)?;
    for mut case in cases.into_iter().filter(Case::names_keys) {
        case.conditions.push(holds);
        case.conditions.extend(condition);
        alternatives.push(case);
    }
    Ok(Some(alternatives))
}

pub(super) fn items(
    compiler: &mut Compiler<'_>,
    schema: &Value,
    members: &Object,
) -> Result<NodeId, CompileError> {
    let Some(evaluated) = evaluated_items(compiler, members, 0) else {
        return Ok(compiler.opaque("unevaluatedItems", members));
    };
    let always = compiler.arena.always();
    let rest = compiler.part(schema)?;
    Ok(match evaluated {
        Evaluated::Every => always,
        Evaluated::First(count) => compiler.arena.add(Fact::Items {
            prefix: vec![always; count],
            rest,
        }),
    })
}

enum Evaluated {
    First(usize),
    Every,
}

/// How many items the schemas beside the keyword mention, if that number is unconditional.
fn evaluated_items(compiler: &Compiler<'_>, members: &Object, depth: usize) -> Option<Evaluated> {
    const CONDITIONAL: &[&str] = &["anyOf", "oneOf", "if", "dependentSchemas", "contains"];
    if depth > 16
        || CONDITIONAL
            .iter()
            .any(|keyword| members.contains_key(*keyword))
    {
        return None;
    }
    if members.contains_key("items") || (depth > 0 && members.contains_key("unevaluatedItems")) {
        return Some(Evaluated::Every);
    }
    let prefix = members.get("prefixItems").and_then(Value::as_array);
    let mut count = prefix.map_or(0, Vec::len);
    let reference = members.get("$ref").and_then(Value::as_str);
    let target = reference.map(|name| name.trim_start_matches("#/$defs/"));
    let target = target.and_then(|name| compiler.definitions.get(name));
    let all = members.get("allOf").and_then(Value::as_array);
    for part in target.into_iter().chain(all.into_iter().flatten()) {
        let Value::Object(part) = part else {
            continue;
        };
        match evaluated_items(compiler, part, depth + 1)? {
            Evaluated::Every => return Some(Evaluated::Every),
            Evaluated::First(other) => count = count.max(other),
        }
    }
    Some(Evaluated::First(count))
}
