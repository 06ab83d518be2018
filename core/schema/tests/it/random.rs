//! Generated pairs against a pool of values: a proof must hold for every value of the pool, a
//! witness is checked again, and the answers must fit together.

use serde_json::{Value, json};
use toolwarden_schema::SchemaVerdict;

use crate::{strictly, verdict_letter};

/// A small generator with a seed, so that a failure can be repeated.
struct Dice(u64, Recursion, Focus);

/// What schemas are mostly about.
#[derive(Clone, Copy, PartialEq)]
enum Focus {
    Anything,
    /// How many and which items and members there are.
    Containers,
}

/// Whether schemas refer to themselves.
#[derive(Clone, Copy, PartialEq)]
enum Recursion {
    Without,
    With,
}

impl Dice {
    fn below(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).unwrap()
    }

    fn pick<'a>(&mut self, options: &[&'a str]) -> &'a str {
        options[self.below(options.len())]
    }

    fn schema(&mut self, depth: usize) -> Value {
        if depth == 0 {
            return self.leaf();
        }
        if self.2 == Focus::Containers {
            return match self.below(8) {
                0 => json!({"anyOf": [self.schema(depth - 1), self.schema(depth - 1)]}),
                1 => json!({"allOf": [self.schema(depth - 1), self.schema(depth - 1)]}),
                2 => json!({"not": self.schema(depth - 1)}),
                3..=5 => self.array(depth - 1),
                _ => self.object(depth - 1),
            };
        }
        match self.below(16) {
            0 => json!({"anyOf": [self.schema(depth - 1), self.schema(depth - 1)]}),
            1 => json!({"oneOf": [self.schema(depth - 1), self.schema(depth - 1)]}),
            2 => json!({"allOf": [self.schema(depth - 1), self.schema(depth - 1)]}),
            3 => json!({"not": self.schema(depth - 1)}),
            4 => {
                json!({"if": self.schema(depth - 1), "then": self.schema(depth - 1), "else": self.schema(depth - 1)})
            }
            5 | 6 => self.array(depth - 1),
            7..=11 => self.object(depth - 1),
            _ => self.leaf(),
        }
    }

    /// A schema for a part of the value, where a reference to the whole is well founded.
    fn part(&mut self, depth: usize) -> Value {
        if self.1 == Recursion::With && self.below(3) == 0 {
            return json!({"$ref": "#/$defs/T"});
        }
        self.schema(depth)
    }

    fn document(&mut self, depth: usize) -> Value {
        let schema = self.schema(depth);
        self.rooted(schema)
    }

    fn rooted(&self, schema: Value) -> Value {
        match self.1 {
            Recursion::Without => schema,
            Recursion::With => json!({"$ref": "#/$defs/T", "$defs": {"T": schema}}),
        }
    }

    fn leaf(&mut self) -> Value {
        let small = self.below(3);
        match self.below(16) {
            0 => json!({"type": "string"}),
            1 => json!({"type": "integer"}),
            2 => json!({"type": "number", "minimum": small}),
            3 => json!({"type": "integer", "maximum": small}),
            4 => json!({"exclusiveMinimum": small}),
            5 => json!({"multipleOf": small + 1}),
            6 => json!({"enum": ["a", 1, null]}),
            7 => json!({"const": small}),
            8 => json!({"type": "string", "maxLength": small}),
            9 => json!({"minLength": small}),
            10 => json!({"pattern": self.pick(&["^a", "b$", "^[ab]*$", "a|b"])}),
            11 => json!({"type": ["string", "null"]}),
            12 => json!({"type": "boolean"}),
            13 => Value::Bool(self.below(2) == 0),
            14 => json!({"enum": ["a", "b", "ab"]}),
            _ => json!({}),
        }
    }

    fn array(&mut self, depth: usize) -> Value {
        let mut schema = json!({});
        for _ in 0..=self.below(2) {
            let small = self.below(3);
            let (keyword, value) = match self.below(9) {
                0 => ("items", self.part(depth)),
                1 => ("prefixItems", json!([self.part(depth)])),
                2 => ("minItems", json!(small)),
                3 => ("maxItems", json!(small)),
                4 => ("uniqueItems", json!(true)),
                5 => ("contains", self.part(depth)),
                6 => ("minContains", json!(small)),
                7 => ("maxContains", json!(small)),
                _ => ("type", json!("array")),
            };
            schema[keyword] = value;
        }
        schema
    }

    fn object(&mut self, depth: usize) -> Value {
        let mut schema = json!({"type": "object"});
        for _ in 0..=self.below(3) {
            let small = self.below(3);
            let (keyword, value) = match self.below(12) {
                0..=3 => (
                    "properties",
                    json!({"a": self.part(depth), "b": self.part(depth)}),
                ),
                4 => ("required", json!([self.pick(&["a", "b", "c"])])),
                5 => ("additionalProperties", self.part(depth)),
                6 => ("additionalProperties", json!(false)),
                7 => ("patternProperties", json!({"^a": self.part(depth)})),
                8 => ("minProperties", json!(small)),
                9 => ("maxProperties", json!(small)),
                10 => (
                    "propertyNames",
                    match small {
                        0 => json!({"pattern": "^a"}),
                        _ => json!({ "maxLength": small }),
                    },
                ),
                _ => ("dependentRequired", json!({"a": ["b"]})),
            };
            schema[keyword] = value;
        }
        schema
    }
}

/// Small values of every kind, and objects and arrays of them.
fn pool() -> Vec<Value> {
    let plain = vec![
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(1),
        json!(2),
        json!(3),
        json!(-1),
        json!(0.5),
        json!(1.5),
        json!(""),
        json!("a"),
        json!("b"),
        json!("ab"),
        json!("ba"),
        json!("bbb"),
        json!({}),
        json!([]),
    ];
    let mut pool = plain.clone();
    for first in &plain {
        pool.push(json!([first]));
        pool.push(json!({"a": first}));
        pool.push(json!({"c": first}));
        for second in &plain {
            pool.push(json!([first, second]));
            pool.push(json!({"a": first, "b": second}));
            pool.push(json!({"aa": first, "b": second}));
        }
        pool.push(json!({"a": {"a": first}, "b": [first]}));
        pool.push(json!([first, first, first]));
    }
    pool
}

fn edited(dice: &mut Dice, document: &Value) -> Value {
    let schema = document.pointer("/$defs/T").unwrap_or(document);
    let schema = match dice.below(4) {
        0 => dice.schema(2),
        1 => json!({"allOf": [schema, dice.leaf()]}),
        2 => json!({"anyOf": [schema, dice.leaf()]}),
        _ => {
            let mut schema = schema.clone();
            if let Some(members) = schema.as_object_mut()
                && !members.is_empty()
            {
                let at = dice.below(members.len());
                let key = members.keys().nth(at).unwrap().clone();
                members.remove(&key);
            }
            schema
        }
    };
    dice.rooted(schema)
}

#[test]
fn proofs_hold_for_every_value_of_the_pool() {
    hold_for_the_pool(
        &mut Dice(0x2026_1116, Recursion::Without, Focus::Anything),
        6_000,
    );
}

#[test]
fn proofs_about_recursive_schemas_hold_too() {
    hold_for_the_pool(
        &mut Dice(0x2026_1117, Recursion::With, Focus::Anything),
        6_000,
    );
}

#[test]
fn proofs_about_items_and_members_hold_too() {
    hold_for_the_pool(
        &mut Dice(0x2026_1118, Recursion::Without, Focus::Containers),
        6_000,
    );
}

fn hold_for_the_pool(dice: &mut Dice, rounds: u32) {
    let pool = pool();
    let (mut decided, mut unknown) = (0_u32, Vec::new());
    for round in 0..rounds {
        let old = dice.document(2);
        let new = edited(dice, &old);
        let verdict = strictly(&old, &new);
        let validator = |schema: &Value| jsonschema::options().offline().build(schema).unwrap();
        let (accepts_old, accepts_new) = (validator(&old), validator(&new));
        let mut lost = pool
            .iter()
            .filter(|v| accepts_old.is_valid(v) && !accepts_new.is_valid(v));
        let mut gained = pool
            .iter()
            .filter(|v| !accepts_old.is_valid(v) && accepts_new.is_valid(v));
        let context = || format!("round {round}: {old} -> {new}: {verdict:?}");
        match &verdict {
            SchemaVerdict::Equivalent(_) => {
                assert_eq!(lost.next(), None, "{}", context());
                assert_eq!(gained.next(), None, "{}", context());
            }
            SchemaVerdict::Compatible { .. } => assert_eq!(lost.next(), None, "{}", context()),
            SchemaVerdict::Breaking(witness) => {
                assert!(accepts_old.is_valid(&witness.value), "{}", context());
                assert!(!accepts_new.is_valid(&witness.value), "{}", context());
            }
            SchemaVerdict::Unknown(_) => unknown.push(context()),
        }
        decided += u32::from(verdict_letter(&verdict) != "?");
    }
    assert!(
        unknown.len() < 12,
        "{} of {decided} undecided:\n{}",
        unknown.len(),
        unknown.join("\n")
    );
}

#[test]
fn inclusions_chain() {
    let mut dice = Dice(0x5eed, Recursion::With, Focus::Anything);
    for round in 0..1_500 {
        let first = dice.document(2);
        let second = edited(&mut dice, &first);
        let third = edited(&mut dice, &second);
        let context = || format!("round {round}: {first} -> {second} -> {third}");
        let both = [strictly(&first, &second), strictly(&second, &third)];
        let whole = strictly(&first, &third);
        if both.iter().all(|verdict| verdict_letter(verdict) == "C") {
            assert_ne!(verdict_letter(&whole), "B", "{}", context());
        }
        if let SchemaVerdict::Breaking(witness) = &whole {
            let within = crate::accepts(&second, &witness.value).unwrap();
            let culprit = if within { &both[1] } else { &both[0] };
            assert_ne!(verdict_letter(culprit), "C", "{}: {witness:?}", context());
        }
        let back = strictly(&second, &first);
        let same = matches!(both[0], SchemaVerdict::Equivalent(_));
        if same {
            assert!(
                matches!(back, SchemaVerdict::Equivalent(_)),
                "{}",
                context()
            );
        }
    }
}

/// Any JSON at all as a schema: answered or refused, never a panic.
#[test]
fn whatever_is_given_is_answered() {
    const WORDS: &[&str] = &[
        "type",
        "enum",
        "const",
        "properties",
        "required",
        "items",
        "prefixItems",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "$ref",
        "$defs",
        "$id",
        "$anchor",
        "pattern",
        "minimum",
        "maxLength",
        "additionalProperties",
        "contains",
        "patternProperties",
        "propertyNames",
        "dependentSchemas",
        "if",
        "then",
        "unevaluatedItems",
        "uniqueItems",
        "multipleOf",
        "$dynamicRef",
        "dependencies",
        "additionalItems",
        "exclusiveMinimum",
        "minContains",
        "a",
        "#",
        "#/$defs/a",
        "string",
        "object",
        "array",
        "^a(?!b)",
        "[",
        "http://json-schema.org/draft-04/schema#",
        "$schema",
    ];
    fn anything(dice: &mut Dice, depth: usize) -> Value {
        match dice.below(if depth == 0 { 5 } else { 9 }) {
            0 => Value::Bool(dice.below(2) == 0),
            1 => json!(dice.below(5)),
            2 => [json!(-1.5), json!(0), json!(1e300), json!(null)][dice.below(4)].clone(),
            3 | 4 => json!(dice.pick(WORDS)),
            5 => (0..dice.below(3))
                .map(|_| anything(dice, depth - 1))
                .collect(),
            _ => {
                let members = 1 + dice.below(3);
                (0..members)
                    .map(|_| (dice.pick(WORDS).to_owned(), anything(dice, depth - 1)))
                    .collect()
            }
        }
    }
    let mut dice = Dice(0xf0f0, Recursion::Without, Focus::Anything);
    let mut answers = std::collections::BTreeMap::new();
    for _ in 0..30_000 {
        let (old, new) = (anything(&mut dice, 4), anything(&mut dice, 4));
        *answers
            .entry(verdict_letter(&strictly(&old, &new)))
            .or_insert(0) += 1;
    }
    assert_eq!(answers.len(), 3, "{answers:?}");
}

#[test]
fn the_same_question_gets_the_same_answer() {
    let mut dice = Dice(7, Recursion::With, Focus::Anything);
    for _ in 0..300 {
        let old = dice.document(3);
        let new = edited(&mut dice, &old);
        assert_eq!(strictly(&old, &new), strictly(&old, &new));
    }
}
