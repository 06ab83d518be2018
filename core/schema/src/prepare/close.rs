use std::collections::BTreeSet;

use serde_json::Value;
use toolwarden_model::json::{Object, Pointer};
use toolwarden_model::keywords::subschemas;

use crate::comparison_policy::ValueDomain;

/// Keywords whose schemas apply to the same value as the schema that contains them.
const IN_PLACE: &[&str] = &[
    "$ref",
    "allOf",
    "anyOf",
    "oneOf",
    "if",
    "then",
    "else",
    "dependentSchemas",
];

/// The most references followed to see what a schema declares.
const MAX_FOLLOWED: usize = 128;

/// A lifted schema narrowed to values with declared keys only.
///
/// A schema that declares properties and says nothing about others no longer accepts others; one
/// that declares none, or says what others must be, keeps what it says. Where several
/// schemas together declare the keys, the schema that combines them is closed. A `oneOf` may accept
/// a value it rejected before, when one of two matching branches no longer matches. The comparison
/// therefore keeps the lifted schema beside this one.
///
/// For arguments, a schema that only requires an object accepts no keys at all.
pub(crate) fn close(lifted: &Value, domain: ValueDomain) -> Value {
    let Value::Object(root) = lifted else {
        return lifted.clone();
    };
    let no_definitions = Object::new();
    let definitions = root
        .get("$defs")
        .and_then(Value::as_object)
        .unwrap_or(&no_definitions);
    let closer = Closer {
        definitions,
        negated: negated(lifted, definitions),
    };
    let mut closed = closer.close(lifted, true);
    if domain == ValueDomain::Objects
        && let Value::Object(closed) = &mut closed
        && closed.len() == 1
        && closed.get("type").is_some_and(|word| word == "object")
    {
        closed.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    if let Value::Object(closed) = &mut closed
        && !definitions.is_empty()
    {
        let definitions = definitions.iter().map(|(name, schema)| {
            let schema = if closer.negated.contains(name.as_str()) {
                schema.clone()
            } else {
                closer.close(schema, false)
            };
            (name.clone(), schema)
        });
        closed.insert("$defs".to_owned(), Value::Object(definitions.collect()));
    }
    closed
}

struct Closer<'s> {
    definitions: &'s Object,
    /// Definitions used under `not`, `if` or `contains`; narrowing them could widen the whole schema.
    negated: BTreeSet<&'s str>,
}

impl Closer<'_> {
    fn close(&self, schema: &Value, whole: bool) -> Value {
        let Value::Object(members) = schema else {
            return schema.clone();
        };
        let mut closed = Object::with_capacity(members.len() + 1);
        for (keyword, value) in members {
            let value = match (keyword.as_str(), value) {
                ("allOf" | "anyOf" | "oneOf", Value::Array(branches)) => Value::Array(
                    branches
                        .iter()
                        .map(|branch| self.close(branch, false))
                        .collect(),
                ),
                ("then" | "else", branch) => self.close(branch, false),
                ("dependentSchemas", Value::Object(map)) => self.close_map(map, false),
                ("properties" | "patternProperties", Value::Object(map)) => {
                    self.close_map(map, true)
                }
                ("prefixItems", Value::Array(items)) => {
                    Value::Array(items.iter().map(|item| self.close(item, true)).collect())
                }
                ("items" | "additionalProperties" | "unevaluatedProperties", value) => {
                    self.close(value, true)
                }
                _ => value.clone(),
            };
            closed.insert(keyword.clone(), value);
        }
        if whole && self.declares(members, &mut Vec::new()) == Declaration::Open {
            let composed = IN_PLACE
                .iter()
                .any(|keyword| members.contains_key(*keyword));
            let keyword = if composed {
                "unevaluatedProperties"
            } else {
                "additionalProperties"
            };
            closed.insert(keyword.to_owned(), Value::Bool(false));
        }
        Value::Object(closed)
    }

    fn close_map(&self, map: &Object, whole: bool) -> Value {
        let closed = map.iter();
        Value::Object(
            closed
                .map(|(name, schema)| (name.clone(), self.close(schema, whole)))
                .collect(),
        )
    }

    /// What a schema, and the schemas that apply to the same value, say about keys.
    fn declares<'v>(&'v self, members: &'v Object, followed: &mut Vec<&'v str>) -> Declaration {
        if ["additionalProperties", "unevaluatedProperties"]
            .iter()
            .any(|keyword| members.contains_key(*keyword))
        {
            return Declaration::Settled;
        }
        let mut declaration =
            if members.contains_key("properties") || members.contains_key("patternProperties") {
                Declaration::Open
            } else {
                Declaration::None
            };
        for keyword in IN_PLACE {
            let Some(value) = members.get(*keyword) else {
                continue;
            };
            let parts: Vec<&Value> = match value {
                Value::Array(branches) => branches.iter().collect(),
                Value::Object(map) if *keyword == "dependentSchemas" => map.values().collect(),
                Value::String(reference) => {
                    let name = reference.trim_start_matches("#/$defs/");
                    if followed.contains(&name) || followed.len() > MAX_FOLLOWED {
                        continue;
                    }
                    followed.push(name);
                    self.definitions.get(name).into_iter().collect()
                }
                other => vec![other],
            };
            for part in parts.into_iter().filter_map(Value::as_object) {
                declaration = declaration.max(self.declares(part, followed));
            }
        }
        declaration
    }
}

/// What is said about the keys of an object, from nothing to everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Declaration {
    /// No key is declared.
    None,
    /// Keys are declared, and nothing is said about others.
    Open,
    /// Something says what other keys may hold.
    Settled,
}

/// The definitions that are reachable from `not`, `if` or `contains`.
fn negated<'s>(root: &'s Value, definitions: &'s Object) -> BTreeSet<&'s str> {
    let mut found = BTreeSet::new();
    let mut open: Vec<(&Value, bool)> = vec![(root, false)];
    while let Some((schema, inside)) = open.pop() {
        let Value::Object(members) = schema else {
            continue;
        };
        if inside && let Some(Value::String(reference)) = members.get("$ref") {
            let name = reference.trim_start_matches("#/$defs/");
            if found.insert(name)
                && let Some(target) = definitions.get(name)
            {
                open.push((target, true));
            }
        }
        for (pointer, child) in subschemas(members, &Pointer::root()) {
            let keyword = pointer.segments().next().unwrap_or_default();
            let negates = matches!(keyword.as_str(), "not" | "if" | "contains");
            open.push((child, inside || negates));
        }
    }
    found
}
