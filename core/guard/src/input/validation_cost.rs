//! An estimate, made before validation starts, of the work a validator could have with a value.
//!
//! A validator follows every reference again. A few definitions that refer to each other twice make it visit
//! one value a billion times. A schema that refers to itself from two branches of a union doubles its work
//! with every level of the value. And every branch that fails keeps a copy of what it failed on.

use std::collections::HashMap;

use serde_json::Value;
use toolwarden_model::json::Object;
use toolwarden_model::keywords::children;

/// How many visits each part of a value may take, and the extra visits that every value gets.
const VISITS_PER_PART: f64 = 200.0;
const MIN_VISITS: f64 = 10_000.0;

/// The maximum number of bytes of a value that may be visited, counted once per visit, for faults to be
/// reported one by one.
const MAX_EXPLAINED_BYTES: f64 = 16e6;

/// The longest chain of schemas that is followed; a longer one counts as too much work.
const MAX_CHAIN: usize = 512;

/// A schema whose validation work can grow faster than the value.
#[derive(Debug)]
pub(crate) struct ValidationCost {
    /// The schema with every reference pointing into `$defs`.
    schema: Value,
    /// Whether the yes-or-no check can take long, and not only the list of faults.
    decision_is_costly: bool,
}

/// The work of a validator on a value.
#[derive(Clone, Copy, Debug)]
struct CostSum {
    /// How often it visits a part of the value.
    visits: f64,
    /// How many bytes it visits, counted once per visit.
    bytes: f64,
}

/// A schema whose references cannot be followed, so that its work cannot be estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnresolvableReferences;

impl ValidationCost {
    /// The limits that a schema needs; `None` if its work is linear in the value.
    pub(crate) fn of(schema: &Value) -> Result<Option<Self>, UnresolvableReferences> {
        let refers = contains(schema, &["$ref", "$dynamicRef", "$recursiveRef"]);
        let deciding = refers || contains(schema, &["unevaluatedProperties", "unevaluatedItems"]);
        if !deciding && !contains(schema, &["anyOf", "oneOf"]) {
            return Ok(None);
        }
        let schema = if refers {
            toolwarden_schema::with_local_references(schema).ok_or(UnresolvableReferences)?
        } else {
            schema.clone()
        };
        Ok(Some(Self {
            schema,
            decision_is_costly: deciding,
        }))
    }

    /// Whether a single visit of any value is within the limits. If not, no value can be validated.
    pub(crate) fn is_affordable(&self) -> bool {
        let mut open = vec![&self.schema];
        while let Some(schema) = open.pop() {
            // A value without parts: only keywords that apply to the value itself count.
            let mut looks = VisitCounter::new(self, &Value::Null);
            if looks.of(schema, &Value::Null, 0).visits > looks.max_visits {
                return false;
            }
            if let Value::Object(members) = schema {
                open.extend(children(members));
            }
        }
        true
    }

    /// Whether a value can be validated within the limits.
    pub(crate) fn allows(&self, value: &Value) -> bool {
        !self.decision_is_costly || {
            let mut looks = VisitCounter::new(self, value);
            looks.of(&self.schema, value, 0).visits <= looks.max_visits
        }
    }

    /// Whether all faults of a value can be reported within the limits.
    pub(crate) fn can_explain(&self, value: &Value) -> bool {
        VisitCounter::new(self, value)
            .of(&self.schema, value, 0)
            .bytes
            <= MAX_EXPLAINED_BYTES
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

/// Counts visits; each pair of schema and value once, even if the validator visits it more often.
struct VisitCounter<'e> {
    effort: &'e ValidationCost,
    /// The maximum number of visits; counting stops there.
    max_visits: f64,
    known: HashMap<(*const Value, *const Value), CostSum>,
    sizes: HashMap<*const Value, f64>,
}

impl CostSum {
    const NONE: Self = Self {
        visits: 0.0,
        bytes: 0.0,
    };
    const TOO_MUCH: Self = Self {
        visits: f64::INFINITY,
        bytes: f64::INFINITY,
    };

    fn plus(self, other: Self) -> Self {
        Self {
            visits: self.visits + other.visits,
            bytes: self.bytes + other.bytes,
        }
    }
}

impl<'e> VisitCounter<'e> {
    fn new(effort: &'e ValidationCost, value: &Value) -> Self {
        let mut looks = Self {
            effort,
            max_visits: 0.0,
            known: HashMap::new(),
            sizes: HashMap::new(),
        };
        let parts = looks.measure(value).0;
        looks.max_visits = MIN_VISITS + VISITS_PER_PART * parts;
        looks
    }

    /// The number of parts and bytes of a value, stored for every part that has parts itself.
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

    fn of(&mut self, schema: &'e Value, value: &Value, chain: usize) -> CostSum {
        let bytes = self.bytes(value);
        let Value::Object(members) = schema else {
            return CostSum { visits: 1.0, bytes };
        };
        // Values without parts cause the same work, except for their length.
        let is_leaf = !value.is_array() && !value.is_object();
        let place = if is_leaf {
            std::ptr::null()
        } else {
            std::ptr::from_ref(value)
        };
        let pair = (std::ptr::from_ref(schema), place);
        if let Some(known) = self.known.get(&pair) {
            let bytes = if is_leaf {
                known.visits * bytes
            } else {
                known.bytes
            };
            return CostSum { bytes, ..*known };
        }
        if chain > MAX_CHAIN {
            return CostSum::TOO_MUCH;
        }
        // The validator itself stops a schema that refers back to itself for the same value.
        self.known.insert(pair, CostSum { visits: 1.0, bytes });
        let mut work = CostSum { visits: 1.0, bytes };
        for (keyword, inner) in members {
            work = work.plus(self.keyword(keyword, inner, members, value, chain + 1));
            if work.visits > self.max_visits {
                work = CostSum::TOO_MUCH;
                break;
            }
        }
        // A validator finds unevaluated parts by evaluating the other keywords again.
        if members.keys().any(|key| key.starts_with("unevaluated")) {
            work = work.plus(work);
        }
        self.known.insert(pair, work);
        work
    }

    /// The work of several pairs; it stops as soon as the work is too much.
    fn sum<'v>(
        &mut self,
        pairs: impl Iterator<Item = (&'e Value, &'v Value)>,
        chain: usize,
    ) -> CostSum {
        let mut sum = CostSum::NONE;
        for (schema, value) in pairs {
            sum = sum.plus(self.of(schema, value, chain));
            if sum.visits > self.max_visits {
                return CostSum::TOO_MUCH;
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
    ) -> CostSum {
        match (keyword, inner, value) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference), _) => {
                let target = reference.strip_prefix('#');
                let target = target.and_then(|pointer| self.effort.schema.pointer(pointer));
                // The work of an unresolved reference is unknown.
                target.map_or(CostSum::TOO_MUCH, |target| self.of(target, value, chain))
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
            _ => CostSum::NONE,
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

    fn effort(schema: &Value) -> ValidationCost {
        ValidationCost::of(schema).unwrap().unwrap()
    }

    fn nested(levels: usize, last: Value) -> Value {
        (0..levels).fold(last, |value, _| json!({"c": value}))
    }

    /// Two branches that both recurse.
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
            match ValidationCost::of(&schema) {
                Err(UnresolvableReferences) => {}
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
            ValidationCost::of(&json!({"properties": {"a": {"type": "string"}}}))
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn what_takes_long_to_tell_is_not_told() {
        let schema = effort(&json!({"$ref": "#/$defs/n", "$defs": {"n": two("#/$defs/n")}}));
        assert!(schema.can_explain(&nested(8, json!("y"))));
        let wide = json!({"x": vec!["y"; 5_000]});
        assert!(schema.allows(&nested(9, wide.clone())));
        assert!(!schema.can_explain(&nested(9, wide)));
    }

    #[test]
    fn what_is_evaluated_again_and_again_is_unbearable() {
        let mut schema = json!({"properties": {"a": true}});
        for _ in 0..20 {
            schema = json!({"anyOf": [schema], "unevaluatedProperties": false});
        }
        assert!(!effort(&schema).is_affordable());
        let mut definitions = Object::new();
        for at in 0..30 {
            let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
            definitions.insert(format!("d{at}"), json!({"allOf": [next, next]}));
        }
        definitions.insert("d30".to_owned(), json!({"type": "object"}));
        assert!(!effort(&json!({"$ref": "#/$defs/d0", "$defs": definitions})).is_affordable());
    }
}
