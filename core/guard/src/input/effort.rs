//! How much work a validator could have with a value, told before it starts.
//!
//! A validator follows every reference anew. A few definitions that refer to each other twice make it
//! look at one value a billion times; a schema that refers to itself from two branches of a union
//! doubles its work with every level of the value; and every branch that fails keeps a copy of what it
//! failed on.

use std::collections::HashMap;

use serde_json::Value;
use toolwarden_model::json::Object;
use toolwarden_model::keywords::children;

/// How often each part of a value may be looked at, and how often a small value may on top.
const LOOKS_PER_PART: f64 = 200.0;
const LOOKS_AT_LEAST: f64 = 10_000.0;

/// The most bytes of a value that may be looked at, counted again for each look, for faults to be told
/// one by one.
const MOST_TOLD: f64 = 16e6;

/// The longest chain of schemas that is followed; beyond it the work counts as too much.
const MAX_CHAIN: usize = 512;

/// A schema whose work can grow faster than its value.
#[derive(Debug)]
pub(crate) struct Effort {
    /// With every reference pointing into `$defs`.
    schema: Value,
    /// Whether even deciding can take long, not only telling why.
    deciding: bool,
}

/// What a validator does with a value.
#[derive(Clone, Copy, Debug)]
struct Work {
    /// How often it looks at some part of the value.
    looks: f64,
    /// How many bytes it looks at, each as often as it is looked at.
    bytes: f64,
}

/// A schema whose references cannot be followed, so that nobody can tell how much work it makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unfollowable;

impl Effort {
    /// What has to be watched of a schema; nothing where its work is linear in the value.
    pub(crate) fn of(schema: &Value) -> Result<Option<Self>, Unfollowable> {
        let refers = contains(schema, &["$ref", "$dynamicRef", "$recursiveRef"]);
        let deciding = refers || contains(schema, &["unevaluatedProperties", "unevaluatedItems"]);
        if !deciding && !contains(schema, &["anyOf", "oneOf"]) {
            return Ok(None);
        }
        let schema = if refers {
            toolwarden_schema::with_plain_references(schema).ok_or(Unfollowable)?
        } else {
            schema.clone()
        };
        Ok(Some(Self { schema, deciding }))
    }

    /// Whether looking at any value once is within bounds already. Where not, no value can be judged.
    pub(crate) fn is_bearable(&self) -> bool {
        let mut open = vec![&self.schema];
        while let Some(schema) = open.pop() {
            // A value without parts: only what looks at the value itself counts.
            let mut looks = Looks::new(self, &Value::Null);
            if looks.of(schema, &Value::Null, 0).looks > looks.most {
                return false;
            }
            if let Value::Object(members) = schema {
                open.extend(children(members));
            }
        }
        true
    }

    /// Whether a value can be judged within bounds.
    pub(crate) fn allows(&self, value: &Value) -> bool {
        !self.deciding || {
            let mut looks = Looks::new(self, value);
            looks.of(&self.schema, value, 0).looks <= looks.most
        }
    }

    /// Whether everything that is wrong with a value can be told within bounds.
    pub(crate) fn can_be_told(&self, value: &Value) -> bool {
        Looks::new(self, value).of(&self.schema, value, 0).bytes <= MOST_TOLD
    }
}

fn contains(schema: &Value, keywords: &[&str]) -> bool {
    let mut open = vec![schema];
    while let Some(schema) = open.pop() {
        if let Value::Object(members) = schema {
            if keywords
                .iter()
                .any(|keyword| members.contains_key(*keyword))
            {
                return true;
            }
            open.extend(children(members));
        }
    }
    false
}

/// Counts looks; each pair of schema and value once, however often the validator comes by.
struct Looks<'e> {
    effort: &'e Effort,
    /// The most looks that are bearable; nothing is counted beyond.
    most: f64,
    known: HashMap<(*const Value, *const Value), Work>,
    sizes: HashMap<*const Value, f64>,
}

impl Work {
    const NONE: Self = Self {
        looks: 0.0,
        bytes: 0.0,
    };
    const TOO_MUCH: Self = Self {
        looks: f64::INFINITY,
        bytes: f64::INFINITY,
    };

    fn plus(self, other: Self) -> Self {
        Self {
            looks: self.looks + other.looks,
            bytes: self.bytes + other.bytes,
        }
    }
}

impl<'e> Looks<'e> {
    fn new(effort: &'e Effort, value: &Value) -> Self {
        let mut looks = Self {
            effort,
            most: 0.0,
            known: HashMap::new(),
            sizes: HashMap::new(),
        };
        let parts = looks.measure(value).0;
        looks.most = LOOKS_AT_LEAST + LOOKS_PER_PART * parts;
        looks
    }

    /// The parts and the bytes of a value, noted for every part that has parts.
    fn measure(&mut self, value: &Value) -> (f64, f64) {
        let inner: Vec<&Value> = match value {
            Value::Array(items) => items.iter().collect(),
            Value::Object(members) => members.values().collect(),
            leaf => return (1.0, leaf_bytes(leaf)),
        };
        let (mut parts, mut bytes) = (1.0, 2.0);
        for part in inner {
            let (more_parts, more_bytes) = self.measure(part);
            parts += more_parts;
            bytes += more_bytes + 8.0;
        }
        self.sizes.insert(std::ptr::from_ref(value), bytes);
        (parts, bytes)
    }

    fn bytes(&self, value: &Value) -> f64 {
        let known = self.sizes.get(&std::ptr::from_ref(value));
        known.copied().unwrap_or_else(|| leaf_bytes(value))
    }

    fn of(&mut self, schema: &'e Value, value: &Value, chain: usize) -> Work {
        let bytes = self.bytes(value);
        let Value::Object(members) = schema else {
            return Work { looks: 1.0, bytes };
        };
        // Values without parts make the same work, but for their length.
        let is_leaf = !value.is_array() && !value.is_object();
        let place = if is_leaf {
            std::ptr::null()
        } else {
            std::ptr::from_ref(value)
        };
        let pair = (std::ptr::from_ref(schema), place);
        if let Some(known) = self.known.get(&pair) {
            let bytes = if is_leaf {
                known.looks * bytes
            } else {
                known.bytes
            };
            return Work { bytes, ..*known };
        }
        if chain > MAX_CHAIN {
            return Work::TOO_MUCH;
        }
        // Whoever leads back to itself without a step inside is stopped by the validator.
        self.known.insert(pair, Work { looks: 1.0, bytes });
        let mut work = Work { looks: 1.0, bytes };
        for (keyword, inner) in members {
            work = work.plus(self.keyword(keyword, inner, members, value, chain + 1));
            if work.looks > self.most {
                work = Work::TOO_MUCH;
                break;
            }
        }
        // What is left unevaluated is found by evaluating the rest again.
        if members.keys().any(|key| key.starts_with("unevaluated")) {
            work = work.plus(work);
        }
        self.known.insert(pair, work);
        work
    }

    /// The work of several, given up as soon as it is too much.
    fn sum<'v>(
        &mut self,
        pairs: impl Iterator<Item = (&'e Value, &'v Value)>,
        chain: usize,
    ) -> Work {
        let mut sum = Work::NONE;
        for (schema, value) in pairs {
            sum = sum.plus(self.of(schema, value, chain));
            if sum.looks > self.most {
                return Work::TOO_MUCH;
            }
        }
        sum
    }

    fn keyword(
        &mut self,
        keyword: &str,
        inner: &'e Value,
        members: &'e Object,
        value: &Value,
        chain: usize,
    ) -> Work {
        match (keyword, inner, value) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference), _) => {
                let target = reference.strip_prefix('#');
                let target = target.and_then(|pointer| self.effort.schema.pointer(pointer));
                // Nowhere is where nobody knows.
                target.map_or(Work::TOO_MUCH, |target| self.of(target, value, chain))
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(branches), _) => {
                self.sum(branches.iter().map(|it| (it, value)), chain)
            }
            ("not" | "if" | "then" | "else", schema, _) => self.of(schema, value, chain),
            ("dependentSchemas" | "dependencies", Value::Object(map), Value::Object(_)) => {
                self.sum(map.values().map(|it| (it, value)), chain)
            }
            ("properties", Value::Object(map), Value::Object(parts)) => {
                let declared = parts
                    .iter()
                    .filter_map(|(key, part)| Some((map.get(key)?, part)));
                self.sum(declared, chain)
            }
            ("patternProperties", Value::Object(map), Value::Object(parts)) => {
                let pairs = map
                    .values()
                    .flat_map(|it| parts.values().map(move |part| (it, part)));
                self.sum(pairs, chain)
            }
            ("additionalProperties" | "unevaluatedProperties", schema, Value::Object(parts)) => {
                let declared = members.get("properties").and_then(Value::as_object);
                let others = parts
                    .iter()
                    .filter(|(key, _)| declared.is_none_or(|it| !it.contains_key(*key)));
                self.sum(others.map(|(_, part)| (schema, part)), chain)
            }
            ("items" | "prefixItems", Value::Array(schemas), Value::Array(parts)) => {
                self.sum(schemas.iter().zip(parts), chain)
            }
            (
                "items" | "additionalItems" | "unevaluatedItems" | "contains",
                schema,
                Value::Array(parts),
            ) => self.sum(parts.iter().map(|part| (schema, part)), chain),
            _ => Work::NONE,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn leaf_bytes(value: &Value) -> f64 {
    match value {
        Value::String(text) => text.len() as f64,
        _ => 8.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn effort(schema: &Value) -> Effort {
        Effort::of(schema).unwrap().unwrap()
    }

    fn nested(levels: usize, last: Value) -> Value {
        (0..levels).fold(last, |value, _| json!({"c": value}))
    }

    /// Two branches that both go on.
    fn two(reference: &str) -> Value {
        let branch =
            |name: &str| json!({"properties": {"c": {"$ref": reference}}, "required": [name]});
        json!({"anyOf": [branch("zz"), branch("yy")]})
    }

    fn with(base: Value, more: Value) -> Value {
        let (mut base, more) = (base, more);
        base.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        base
    }

    #[test]
    fn branches_that_both_go_on_bound_the_depth_however_they_are_named() {
        let draft7 = "http://json-schema.org/draft-07/schema#";
        let id = "http://x/d/root";
        for schema in [
            json!({"$ref": "#/$defs/n", "$defs": {"n": two("#/$defs/n")}}),
            two("#"),
            with(
                json!({"$schema": draft7, "$id": "http://x/d/root#"}),
                two(id),
            ),
            json!({"$id": id, "$ref": "b", "$defs": {"n": with(json!({"$id": "http://x/d/b"}), two("b"))}}),
            json!({"$id": id, "$ref": "b", "$defs": {"n": with(json!({"$id": "b"}), two("http://x/d/b"))}}),
            json!({"$id": id, "$ref": "#n", "$defs": {"n": with(json!({"$anchor": "n"}), two("http://x/d/root#n"))}}),
            json!({"$id": id, "$ref": "emb", "$defs": {"e": {"$id": "emb", "$ref": "#/$defs/q", "$defs": {"q": two("#/$defs/q")}}}}),
        ] {
            match Effort::of(&schema) {
                Err(Unfollowable) => {}
                Ok(effort) => {
                    let effort = effort.unwrap();
                    assert!(effort.allows(&nested(6, json!(1))), "{schema}");
                    assert!(!effort.allows(&nested(26, json!(1))), "{schema}");
                }
            }
        }
    }

    #[test]
    fn plain_recursion_and_large_values_are_free() {
        let list = effort(&json!({"properties": {"c": {"$ref": "#"}}}));
        assert!(list.allows(&nested(60, json!(1))));
        let rows = effort(
            &json!({"items": {"$ref": "#/$defs/row"}, "$defs": {"row": {"additionalProperties": {"type": "string"}}}}),
        );
        let row: Object = (0..20).map(|at| (at.to_string(), json!("x"))).collect();
        assert!(rows.allows(&json!(vec![row; 5_000])));
        let union: Vec<Value> = (0..10)
            .map(|at| json!({"$ref": format!("#/$defs/{at}")}))
            .collect();
        let definitions: Object = (0..10)
            .map(|at| (at.to_string(), json!({"properties": {"k": {"const": at}}})))
            .collect();
        let blocks = effort(&json!({"items": {"anyOf": union}, "$defs": definitions}));
        assert!(blocks.allows(&json!(vec![json!({"k": 9, "text": "y"}); 3_000])));
        assert!(
            Effort::of(&json!({"properties": {"a": {"type": "string"}}}))
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn what_takes_long_to_tell_is_not_told() {
        let schema = effort(&json!({"$ref": "#/$defs/n", "$defs": {"n": two("#/$defs/n")}}));
        assert!(schema.can_be_told(&nested(8, json!("y"))));
        let wide = json!({"x": vec!["y"; 5_000]});
        assert!(schema.allows(&nested(9, wide.clone())));
        assert!(!schema.can_be_told(&nested(9, wide)));
    }

    #[test]
    fn what_is_evaluated_again_and_again_is_unbearable() {
        let mut schema = json!({"properties": {"a": true}});
        for _ in 0..20 {
            schema = json!({"anyOf": [schema], "unevaluatedProperties": false});
        }
        assert!(!effort(&schema).is_bearable());
        let mut definitions = Object::new();
        for at in 0..30 {
            let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
            definitions.insert(format!("d{at}"), json!({"allOf": [next, next]}));
        }
        definitions.insert("d30".to_owned(), json!({"type": "object"}));
        assert!(!effort(&json!({"$ref": "#/$defs/d0", "$defs": definitions})).is_bearable());
    }
}
