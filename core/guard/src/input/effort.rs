//! How much work a validator could have with a value, told before it starts.
//!
//! A validator follows every reference anew. A few definitions that refer to each other twice make it
//! look at one value a billion times, and a schema that refers to itself from two branches of a union
//! doubles its work, and the tree of errors it builds, with every level of the value.

use std::collections::HashMap;

use serde_json::Value;
use toolwarden_model::json::{Object, Pointer};
use toolwarden_model::keywords::children;

/// The most looks a schema may take at a value: some milliseconds of work.
const MAX_LOOKS: f64 = 100_000.0;

/// The longest chain of schemas that is followed; beyond it the work counts as too much.
const MAX_CHAIN: usize = 512;

/// A schema whose work grows faster than its value.
#[derive(Debug)]
pub(crate) struct Effort {
    schema: Value,
    /// Where `$anchor` and `$id` lead.
    named: HashMap<String, Pointer>,
}

impl Effort {
    /// What has to be watched of a schema; nothing where it has no references, for then the work is
    /// linear in the value.
    pub(crate) fn of(schema: &Value) -> Option<Self> {
        let mut named = HashMap::new();
        let mut refers = false;
        let mut open = vec![(Pointer::root(), schema)];
        while let Some((place, schema)) = open.pop() {
            let Value::Object(members) = schema else {
                continue;
            };
            refers |= REFERENCES.iter().any(|key| members.contains_key(*key));
            for key in ["$anchor", "$dynamicAnchor"] {
                if let Some(name) = members.get(key).and_then(Value::as_str) {
                    named.insert(format!("#{name}"), place.clone());
                }
            }
            for key in ["$id", "id"] {
                if let Some(name) = members.get(key).and_then(Value::as_str) {
                    named.insert(name.to_owned(), place.clone());
                }
            }
            open.extend(toolwarden_model::keywords::subschemas(members, &place));
        }
        refers.then(|| Self {
            schema: schema.clone(),
            named,
        })
    }

    /// Whether looking at any value once is within bounds already. Where not, no value can be judged.
    pub(crate) fn is_bearable(&self) -> bool {
        let mut looks = Looks::new(self);
        let mut open = vec![&self.schema];
        while let Some(schema) = open.pop() {
            // A value without parts: only what looks at the value itself counts.
            if looks.of(schema, &Value::Null, 0) > MAX_LOOKS {
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
        Looks::new(self).of(&self.schema, value, 0) <= MAX_LOOKS
    }
}

const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Counts looks; each pair of schema and value once, however often the validator comes by.
struct Looks<'e> {
    effort: &'e Effort,
    known: HashMap<(*const Value, *const Value), f64>,
}

impl<'e> Looks<'e> {
    fn new(effort: &'e Effort) -> Self {
        Self {
            effort,
            known: HashMap::new(),
        }
    }

    fn of(&mut self, schema: &'e Value, value: &Value, chain: usize) -> f64 {
        let Value::Object(members) = schema else {
            return 1.0;
        };
        let pair = (std::ptr::from_ref(schema), std::ptr::from_ref(value));
        if let Some(known) = self.known.get(&pair) {
            return *known;
        }
        if chain > MAX_CHAIN {
            return f64::INFINITY;
        }
        // Whoever leads back to itself without a step inside is stopped by the validator.
        self.known.insert(pair, 1.0);
        let mut looks = 1.0;
        for (keyword, inner) in members {
            looks += self.keyword(keyword, inner, members, value, chain + 1);
            if looks > MAX_LOOKS {
                looks = f64::INFINITY;
                break;
            }
        }
        // What is left unevaluated is found by evaluating the rest again.
        if members.keys().any(|key| key.starts_with("unevaluated")) {
            looks *= 2.0;
        }
        self.known.insert(pair, looks);
        looks
    }

    fn keyword(
        &mut self,
        keyword: &str,
        inner: &'e Value,
        members: &'e Object,
        value: &Value,
        chain: usize,
    ) -> f64 {
        match (keyword, inner, value) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference), _) => {
                let target = self.effort.target(reference);
                target.map_or(0.0, |target| self.of(target, value, chain))
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(branches), _) => {
                branches.iter().map(|it| self.of(it, value, chain)).sum()
            }
            ("not" | "if" | "then" | "else", schema, _) => self.of(schema, value, chain),
            ("dependentSchemas" | "dependencies", Value::Object(map), Value::Object(_)) => {
                map.values().map(|it| self.of(it, value, chain)).sum()
            }
            ("properties", Value::Object(map), Value::Object(parts)) => parts
                .iter()
                .filter_map(|(key, part)| Some(self.of(map.get(key)?, part, chain)))
                .sum(),
            ("patternProperties", Value::Object(map), Value::Object(parts)) => map
                .values()
                .map(|it| {
                    parts
                        .values()
                        .map(|part| self.of(it, part, chain))
                        .sum::<f64>()
                })
                .sum(),
            ("additionalProperties" | "unevaluatedProperties", schema, Value::Object(parts)) => {
                let declared = members.get("properties").and_then(Value::as_object);
                parts
                    .iter()
                    .filter(|(key, _)| declared.is_none_or(|it| !it.contains_key(*key)))
                    .map(|(_, part)| self.of(schema, part, chain))
                    .sum()
            }
            ("items" | "prefixItems", Value::Array(schemas), Value::Array(parts)) => schemas
                .iter()
                .zip(parts)
                .map(|(it, part)| self.of(it, part, chain))
                .sum(),
            (
                "items" | "additionalItems" | "unevaluatedItems" | "contains",
                schema,
                Value::Array(parts),
            ) => parts.iter().map(|part| self.of(schema, part, chain)).sum(),
            _ => 0.0,
        }
    }
}

impl Effort {
    fn target(&self, reference: &str) -> Option<&Value> {
        if let Some(place) = self.named.get(reference) {
            return place.find(&self.schema);
        }
        let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let root = if document.is_empty() {
            &self.schema
        } else {
            self.named.get(document)?.find(&self.schema)?
        };
        let pointer = toolwarden_model::json::percent_decoded(fragment)?;
        root.pointer(&pointer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn nested(levels: usize) -> Value {
        let mut value = json!({"type": "oops"});
        for _ in 0..levels {
            value = json!({"type": "row", "children": [value]});
        }
        value
    }

    #[test]
    fn unions_that_refer_to_themselves_bound_the_depth_of_values() {
        let schema = json!({
            "$ref": "#/$defs/node",
            "$defs": {"node": {"anyOf": [
                {"properties": {"type": {"const": "row"}, "children": {"items": {"$ref": "#/$defs/node"}}}},
                {"properties": {"type": {"const": "column"}, "children": {"items": {"$ref": "#/$defs/node"}}}},
            ]}},
        });
        let effort = Effort::of(&schema).unwrap();
        assert!(effort.is_bearable());
        assert!(effort.allows(&nested(10)));
        assert!(!effort.allows(&nested(30)));
    }

    #[test]
    fn plain_recursion_is_free() {
        let schema = json!({"properties": {"children": {"items": {"$ref": "#"}}}});
        assert!(Effort::of(&schema).unwrap().allows(&nested(60)));
        assert!(
            Effort::of(&json!({"anyOf": [{}, {}]})).is_none(),
            "no references, no effort"
        );
    }

    #[test]
    fn definitions_that_refer_twice_are_unbearable() {
        let mut definitions = Object::new();
        for at in 0..30 {
            let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
            definitions.insert(format!("d{at}"), json!({"allOf": [next, next]}));
        }
        definitions.insert("d30".to_owned(), json!({"type": "object"}));
        let schema = json!({"$ref": "#/$defs/d0", "$defs": definitions});
        assert!(!Effort::of(&schema).unwrap().is_bearable());
    }
}
