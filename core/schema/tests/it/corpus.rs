//! Published schemas rewritten without a change of meaning: every rewrite must be recognized.

use serde_json::{Map, Value, json};
use toolwarden_schema::SchemaVerdict;

use crate::{accepts, strictly};

/// A way to write a schema differently, where it applies.
type Rewrite = fn(&Value) -> Option<Value>;

const REWRITES: &[(&str, Rewrite)] = &[
    ("nothing", |schema| Some(schema.clone())),
    ("key order", |schema| Some(reversed(schema))),
    ("descriptions", |schema| {
        Some(each_schema(schema, &|members| {
            members.insert("description".to_owned(), json!("another"));
            members.remove("title");
        }))
    }),
    ("wrapped in allOf", |schema| {
        let mut inner = schema.as_object()?.clone();
        let mut outer = Map::new();
        for key in ["$schema", "$defs", "definitions", "$id", "id"] {
            if let Some(value) = inner.remove(key) {
                outer.insert(key.to_owned(), value);
            }
        }
        // A reference to a place inside would lead elsewhere.
        (!schema.to_string().contains("\"#/properties") && !schema.to_string().contains("\"#\""))
            .then(|| {
                outer.insert("allOf".to_owned(), json!([inner]));
                Value::Object(outer)
            })
    }),
    ("enum as anyOf", |schema| {
        rewritten(schema, &|members| {
            if let Some(Value::Array(values)) = members.get("enum").cloned()
                && !members.contains_key("anyOf")
            {
                members.remove("enum");
                let branches: Vec<Value> =
                    values.iter().map(|value| json!({"const": value})).collect();
                members.insert("anyOf".to_owned(), json!(branches));
            }
        })
    }),
    ("list of types as anyOf", |schema| {
        rewritten(schema, &|members| {
            if let Some(Value::Array(types)) = members.get("type").cloned()
                && !members.contains_key("anyOf")
            {
                members.remove("type");
                let branches: Vec<Value> = types.iter().map(|word| json!({"type": word})).collect();
                members.insert("anyOf".to_owned(), json!(branches));
            }
        })
    }),
    ("exclusive bound of integers", |schema| {
        rewritten(schema, &|members| {
            if members.get("type") == Some(&json!("integer"))
                && let Some(minimum) = members.get("minimum").and_then(Value::as_i64)
                && minimum > i64::MIN
                && !members.contains_key("exclusiveMinimum")
            {
                members.remove("minimum");
                members.insert("exclusiveMinimum".to_owned(), json!(minimum - 1));
            }
        })
    }),
    ("twice negated", |schema| {
        rewritten(schema, &|members| {
            if members.get("type") == Some(&json!("string")) && !members.contains_key("not") {
                members.insert("not".to_owned(), json!({"not": {"type": "string"}}));
            }
        })
    }),
    ("definitions extracted", |schema| {
        let properties = schema.get("properties")?.as_object()?;
        let (name, first) = properties.iter().next()?;
        if first.to_string().contains("\"$ref\"") || schema.get("$defs").is_some() {
            return None;
        }
        let mut written = schema.clone();
        written["properties"][name] = json!({"$ref": "#/$defs/extracted"});
        written["$defs"] = json!({"extracted": first});
        Some(written)
    }),
];

#[test]
fn rewrites_are_equivalent() {
    let Some(schemas) = toolwarden_testkit::schemas() else {
        return;
    };
    let (mut compared, mut unreadable, mut unknown) = (0_u32, 0_u32, Vec::new());
    for (origin, schema) in &schemas {
        if accepts(schema, &json!({})).is_none() {
            // Not a schema for the validator either, as `"type": "dict"`.
            unreadable += 1;
            continue;
        }
        for (name, rewrite) in REWRITES {
            let Some(written) = rewrite(schema) else {
                continue;
            };
            compared += 1;
            for (old, new) in [(schema, &written), (&written, schema)] {
                match strictly(old, new) {
                    SchemaVerdict::Equivalent(_) => {}
                    SchemaVerdict::Unknown(why) => {
                        unknown.push(format!("{name}: {origin}: {why:?}"))
                    }
                    wrong => panic!("{name}: {origin}: {wrong:?}\n{old}\n{new}"),
                }
            }
        }
    }
    let share = unknown.len() * 1_000 / (compared as usize * 2);
    assert!(
        share < 5,
        "{} of {compared} undecided:\n{}",
        unknown.len(),
        unknown.join("\n")
    );
    assert!(compared > 50_000, "{compared} comparisons");
    assert!(
        unreadable < 3_000,
        "{unreadable} of {} unreadable",
        schemas.len()
    );
}

#[test]
fn what_was_lost_between_neighbours_is_lost_for_the_validator() {
    let Some(schemas) = toolwarden_testkit::schemas() else {
        return;
    };
    let (mut breaking, mut unknown, mut compared) = (0_u32, 0_u32, 0_u32);
    for pair in schemas.windows(2).step_by(3) {
        let (old, new) = (&pair[0].1, &pair[1].1);
        if accepts(old, &json!({})).is_none() || accepts(new, &json!({})).is_none() {
            continue;
        }
        compared += 1;
        let verdict = strictly(old, new);
        match &verdict {
            SchemaVerdict::Breaking(witness) => {
                breaking += 1;
                assert_eq!(accepts(old, &witness.value), Some(true), "{}", pair[0].0);
                assert_eq!(accepts(new, &witness.value), Some(false), "{}", pair[0].0);
            }
            SchemaVerdict::Unknown(_) => unknown += 1,
            SchemaVerdict::Equivalent(_) | SchemaVerdict::Compatible { .. } => {
                // What the old schema's other neighbour accepts is a pool of real values.
                for sample in [json!({}), json!({"a": 1})] {
                    if accepts(old, &sample) == Some(true) {
                        assert_eq!(accepts(new, &sample), Some(true), "{}", pair[0].0);
                    }
                }
            }
        }
    }
    assert!(breaking > compared / 2, "{breaking} of {compared}");
    assert!(
        unknown * 200 < compared,
        "{unknown} of {compared} undecided"
    );
}

fn rewritten(schema: &Value, change: &dyn Fn(&mut Map<String, Value>)) -> Option<Value> {
    let written = each_schema(schema, change);
    (written != *schema).then_some(written)
}

/// A copy with a change made to every schema inside, by the position of keywords.
fn each_schema(schema: &Value, change: &dyn Fn(&mut Map<String, Value>)) -> Value {
    let Value::Object(members) = schema else {
        return schema.clone();
    };
    let mut written = Map::new();
    for (keyword, value) in members {
        let value = match (keyword.as_str(), value) {
            ("properties" | "patternProperties" | "$defs" | "definitions", Value::Object(map)) => {
                let map = map.iter();
                map.map(|(name, schema)| (name.clone(), each_schema(schema, change)))
                    .collect()
            }
            ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items", Value::Array(items)) => {
                items.iter().map(|item| each_schema(item, change)).collect()
            }
            ("items" | "additionalProperties" | "not" | "contains" | "propertyNames", value) => {
                each_schema(value, change)
            }
            _ => value.clone(),
        };
        written.insert(keyword.clone(), value);
    }
    change(&mut written);
    Value::Object(written)
}

fn reversed(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.iter().rev();
            members
                .map(|(key, value)| (key.clone(), reversed(value)))
                .collect()
        }
        Value::Array(items) => items.iter().map(reversed).collect(),
        other => other.clone(),
    }
}
