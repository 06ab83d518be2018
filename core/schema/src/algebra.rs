use std::collections::BTreeMap;

use jsonschema::canonical::{self, Containment};
use serde_json::Value;
use toolwarden_model::json::Object;
use toolwarden_model::keywords::children;

use crate::comparison_policy::{FormatMode, SearchBudget};

/// The most schemas a document may hold for the algebra to be asked.
const MAX_SCHEMAS: f64 = 4_000.0;
/// The most schemas, branches, pattern cost and dependent schemas that are certainly quick.
const QUICK_SCHEMAS: f64 = 200.0;
const QUICK_BRANCHES: f64 = 64.0;
const QUICK_PATTERNS: usize = 200;
const QUICK_DEPENDENT_SCHEMAS: usize = 4;
/// A repetition or a character class may need hundreds of states.
const REPEAT_COST: usize = 40;

/// A second opinion on inclusion, from an independent implementation.
pub(crate) trait Algebra {
    /// Whether the new lifted schema accepts every value of the old one; `None` where it cannot
    /// decide.
    fn includes(&self, old: &Value, new: &Value) -> Option<bool>;

    /// A schema of the values that the old schema accepts and the new one does not.
    fn difference(&self, old: &Value, new: &Value) -> Option<Value>;
}

/// The set algebra of the `jsonschema` crate. It has no budget of its own, so it is not given
/// schemas that would multiply out to more branches than allowed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JsonSchemaAlgebra {
    pub(crate) budget: SearchBudget,
    pub(crate) formats: FormatMode,
}

impl JsonSchemaAlgebra {
    fn pair(
        self,
        old: &Value,
        new: &Value,
    ) -> Option<(canonical::CanonicalSchema, canonical::CanonicalSchema)> {
        let limit = f64::from(self.budget.branches.get());
        let small = |schema: &Value| {
            let estimate = Estimate::of(schema);
            estimate.schemas <= MAX_SCHEMAS && estimate.holding.max(estimate.failing) <= limit
        };
        if !small(old) || !small(new) {
            return None;
        }
        // A running query of the algebra cannot be cancelled.
        if self.budget.time.is_set() && !(is_quick(old) && is_quick(new)) {
            return None;
        }
        let canonicalize = |schema: &Value| {
            canonical::options()
                .offline()
                .with_draft(jsonschema::Draft::Draft202012)
                .should_validate_formats(self.formats == FormatMode::Assert)
                .canonicalize(schema)
                .ok()
        };
        Some((canonicalize(old)?, canonicalize(new)?))
    }
}

impl Algebra for JsonSchemaAlgebra {
    fn includes(&self, old: &Value, new: &Value) -> Option<bool> {
        let (old, new) = self.pair(old, new)?;
        match new.covers(&old).ok()? {
            Containment::Yes => Some(true),
            Containment::No => Some(false),
            Containment::Unknown => None,
        }
    }

    fn difference(&self, old: &Value, new: &Value) -> Option<Value> {
        let (old, new) = self.pair(old, new)?;
        Some(old.subtract(&new).ok()?.to_json_schema())
    }
}

/// Whether the algebra is certain to answer within a fraction of a second.
fn is_quick(schema: &Value) -> bool {
    let estimate = Estimate::of(schema);
    if estimate.schemas > QUICK_SCHEMAS || estimate.holding.max(estimate.failing) > QUICK_BRANCHES {
        return false;
    }
    let (mut texts, mut demands) = (0, 0);
    let mut open = vec![schema];
    while let Some(schema) = open.pop() {
        let Value::Object(members) = schema else {
            continue;
        };
        let map = |keyword: &str| members.get(keyword).and_then(Value::as_object);
        let patterns = map("patternProperties").into_iter().flat_map(Object::keys);
        let own = members.get("pattern").and_then(Value::as_str);
        texts += patterns
            .map(String::as_str)
            .chain(own)
            .map(pattern_cost)
            .sum::<usize>();
        // Each one is another reason for the value to hold or not.
        demands += map("dependentSchemas").map_or(0, Object::len);
        if texts > QUICK_PATTERNS || demands > QUICK_DEPENDENT_SCHEMAS {
            return false;
        }
        open.extend(children(members));
    }
    true
}

/// What an automaton for a pattern costs, roughly in characters without repetitions.
fn pattern_cost(pattern: &str) -> usize {
    let repeats = pattern.matches(['{', '\\']).count();
    pattern.len() + repeats * REPEAT_COST
}

/// How many branches a schema and its negation multiply out to, and how many schemas it expands to.
#[derive(Clone, Copy, Debug)]
struct Estimate {
    schemas: f64,
    holding: f64,
    failing: f64,
}

impl Estimate {
    /// The estimate of a schema with at most one constraint.
    const PLAIN: Self = Self {
        schemas: 1.0,
        holding: 1.0,
        failing: 1.0,
    };

    fn of(schema: &Value) -> Self {
        let definitions = schema.get("$defs").and_then(Value::as_object);
        let mut estimator = Estimator {
            definitions,
            known: BTreeMap::new(),
        };
        estimator.schema(schema)
    }

    fn negated(self) -> Self {
        Self {
            holding: self.failing,
            failing: self.holding,
            ..self
        }
    }

    fn conjunction(parts: &[Self]) -> Self {
        Self {
            schemas: parts.iter().map(|part| part.schemas).sum(),
            holding: parts.iter().map(|part| part.holding).product(),
            failing: parts.iter().map(|part| part.failing).sum(),
        }
    }

    fn disjunction(parts: &[Self]) -> Self {
        Self {
            schemas: parts.iter().map(|part| part.schemas).sum(),
            holding: parts.iter().map(|part| part.holding).sum(),
            failing: parts.iter().map(|part| part.failing).product(),
        }
    }

    /// Schemas about different values do not multiply each other; the worst of them counts.
    fn independent(parts: &[Self]) -> Self {
        let worst = |of: fn(&Self) -> f64| parts.iter().map(of).fold(1.0, f64::max);
        Self {
            schemas: parts.iter().map(|part| part.schemas).sum(),
            holding: worst(|part| part.holding),
            failing: worst(|part| part.failing),
        }
    }
}

struct Estimator<'s> {
    definitions: Option<&'s Object>,
    known: BTreeMap<&'s str, Estimate>,
}

impl<'s> Estimator<'s> {
    fn schema(&mut self, schema: &'s Value) -> Estimate {
        let Value::Object(members) = schema else {
            return Estimate::PLAIN;
        };
        let mut parts = vec![Estimate::PLAIN];
        for (keyword, value) in members {
            parts.push(match (keyword.as_str(), value) {
                ("$ref", Value::String(reference)) => self.reference(reference),
                ("allOf", Value::Array(branches)) => Estimate::conjunction(&self.list(branches)),
                ("anyOf" | "oneOf", Value::Array(branches)) => {
                    Estimate::disjunction(&self.list(branches))
                }
                ("not", inner) => self.schema(inner).negated(),
                ("if", inner) => {
                    let inner = self.schema(inner);
                    Estimate::disjunction(&[inner, inner.negated()])
                }
                ("properties" | "patternProperties" | "dependentSchemas", Value::Object(map)) => {
                    let parts: Vec<_> = map.values().map(|value| self.schema(value)).collect();
                    Estimate::independent(&parts)
                }
                ("prefixItems", Value::Array(items)) => Estimate::independent(&self.list(items)),
                ("$defs", _) => continue,
                (_, Value::Object(_)) => Estimate::independent(&[self.schema(value)]),
                _ => continue,
            });
        }
        Estimate::conjunction(&parts)
    }

    fn list(&mut self, schemas: &'s [Value]) -> Vec<Estimate> {
        schemas.iter().map(|schema| self.schema(schema)).collect()
    }

    fn reference(&mut self, reference: &'s str) -> Estimate {
        let name = reference.trim_start_matches("#/$defs/");
        if let Some(known) = self.known.get(name) {
            return *known;
        }
        // A schema that refers to itself is counted once.
        self.known.insert(name, Estimate::PLAIN);
        let target = self
            .definitions
            .and_then(|definitions| definitions.get(name));
        let estimate = target.map_or(Estimate::PLAIN, |target| self.schema(target));
        self.known.insert(name, estimate);
        estimate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn canonical() -> JsonSchemaAlgebra {
        JsonSchemaAlgebra {
            budget: SearchBudget::default(),
            formats: FormatMode::Annotate,
        }
    }

    #[test]
    fn answers_what_it_can() {
        let (small, large) = (json!({"const": "a"}), json!({"type": "string"}));
        assert_eq!(canonical().includes(&small, &large), Some(true));
        assert_eq!(canonical().includes(&large, &small), Some(false));
        let difference = canonical().difference(&json!({"enum": [1, 2]}), &json!({"const": 1}));
        assert_eq!(
            difference.and_then(|it| it.get("const").cloned()),
            Some(json!(2))
        );
    }

    #[test]
    fn is_not_given_what_would_multiply_out() {
        let union = |index: usize| json!({"anyOf": [{"required": [format!("a{index}")]}, {"required": [format!("b{index}")]}, {"required": [format!("c{index}")]}]});
        let product = json!({"allOf": (0..14).map(union).collect::<Vec<_>>()});
        assert_eq!(
            canonical().includes(&product, &json!({"type": "object"})),
            None
        );
        assert_eq!(
            canonical().includes(&json!({"type": "object"}), &product),
            None
        );
        // References are unfolded before they are counted.
        let mut definitions = Object::new();
        for level in 0..30 {
            let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
            definitions.insert(format!("d{level}"), json!({"anyOf": [next, next]}));
        }
        definitions.insert("d30".to_owned(), json!({"type": "string"}));
        let bomb = json!({"$ref": "#/$defs/d0", "$defs": definitions});
        assert_eq!(
            canonical().includes(&bomb, &json!({"type": "string"})),
            None
        );
    }
}
