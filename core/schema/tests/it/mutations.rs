//! Published schemas changed in a known direction: the verdict must be the known one.

use serde_json::{Value, json};

use crate::{accepts, for_arguments, strictly, verdict_letter};

/// A change with its verdict for open and for declared callers, where it applies.
struct Mutation {
    name: &'static str,
    open: &'static str,
    declared: &'static str,
    apply: fn(&Value) -> Option<Value>,
}

const MUTATIONS: &[Mutation] = &[
    Mutation {
        name: "new required property",
        open: "B",
        declared: "B",
        apply: |schema| {
            let mut new = with_property(schema, "zz_new", json!({"type": "string"}));
            let mut required = schema
                .get("required")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default();
            required.push(json!("zz_new"));
            new["required"] = json!(required);
            Some(new)
        },
    },
    Mutation {
        name: "new optional property in an open object",
        open: "B",
        declared: "C",
        apply: |schema| {
            schema
                .get("additionalProperties")
                .is_none()
                .then(|| with_property(schema, "zz_new", json!({"type": "string"})))
        },
    },
    Mutation {
        name: "new optional property in a closed object",
        open: "C",
        declared: "C",
        apply: |schema| {
            (schema.get("additionalProperties") == Some(&json!(false)))
                .then(|| with_property(schema, "zz_new", json!({"type": "string"})))
        },
    },
    Mutation {
        name: "requirement dropped",
        open: "C",
        declared: "C",
        apply: |schema| {
            let mut required = schema.get("required")?.as_array()?.clone();
            required.pop()?;
            let mut new = schema.clone();
            new["required"] = json!(required);
            Some(new)
        },
    },
    Mutation {
        name: "optional property made required",
        open: "B",
        declared: "B",
        apply: |schema| {
            let required = schema
                .get("required")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default();
            let optional = schema
                .get("properties")?
                .as_object()?
                .keys()
                .find(|name| !required.contains(&json!(name)))?;
            let mut new = schema.clone();
            new["required"] = required.into_iter().chain([json!(optional)]).collect();
            Some(new)
        },
    },
    Mutation {
        name: "closed",
        open: "B",
        declared: "C",
        apply: |schema| {
            if schema.get("additionalProperties").is_some() {
                return None;
            }
            let mut new = schema.clone();
            new["additionalProperties"] = json!(false);
            Some(new)
        },
    },
    Mutation {
        name: "opened",
        open: "C",
        declared: "C",
        apply: |schema| {
            if schema.get("additionalProperties") != Some(&json!(false)) {
                return None;
            }
            let mut new = schema.clone();
            new["additionalProperties"] = json!(true);
            Some(new)
        },
    },
    Mutation {
        name: "property removed from a closed object",
        open: "B",
        declared: "B",
        apply: |schema| {
            if schema.get("additionalProperties") != Some(&json!(false))
                || schema.get("required").is_some()
            {
                return None;
            }
            let mut new = schema.clone();
            let properties = new.get_mut("properties")?.as_object_mut()?;
            let last = properties.keys().next_back()?.clone();
            properties.remove(&last);
            Some(new)
        },
    },
    Mutation {
        name: "enum value removed",
        open: "B",
        declared: "B",
        apply: |schema| {
            first_property(
                schema,
                |property| {
                    property
                        .get("enum")
                        .and_then(Value::as_array)
                        .is_some_and(|v| v.len() > 1 && distinct(v))
                },
                |property| {
                    property["enum"].as_array_mut().unwrap().pop();
                },
            )
        },
    },
    Mutation {
        name: "enum value added",
        open: "C",
        declared: "C",
        apply: |schema| {
            first_property(
                schema,
                |property| property.get("enum").is_some(),
                |property| {
                    property["enum"]
                        .as_array_mut()
                        .unwrap()
                        .push(json!("zz_new"));
                },
            )
        },
    },
    Mutation {
        name: "string shortened",
        open: "B",
        declared: "B",
        apply: |schema| {
            first_property(
                schema,
                |property| *property == plain(property, "string"),
                |property| property["maxLength"] = json!(3),
            )
        },
    },
    Mutation {
        name: "pattern added",
        open: "B",
        declared: "B",
        apply: |schema| {
            first_property(
                schema,
                |property| *property == plain(property, "string"),
                |property| property["pattern"] = json!("^[a-z]{2,4}$"),
            )
        },
    },
    Mutation {
        name: "integer to number",
        open: "C",
        declared: "C",
        apply: |schema| {
            first_property(
                schema,
                |property| *property == plain(property, "integer"),
                |property| property["type"] = json!("number"),
            )
        },
    },
    Mutation {
        name: "number to integer",
        open: "B",
        declared: "B",
        apply: |schema| {
            first_property(
                schema,
                |property| *property == plain(property, "number"),
                |property| property["type"] = json!("integer"),
            )
        },
    },
    Mutation {
        name: "null let in",
        open: "C",
        declared: "C",
        apply: |schema| {
            first_property(
                schema,
                |property| *property == plain(property, "string"),
                |property| property["type"] = json!(["string", "null"]),
            )
        },
    },
    Mutation {
        name: "array bounded",
        open: "B",
        declared: "B",
        apply: |schema| {
            first_property(
                schema,
                |property| {
                    *property
                        == json!({"type": "array", "items": {"type": "string"}, "description": property["description"]})
                },
                |property| property["maxItems"] = json!(2),
            )
        },
    },
    Mutation {
        name: "description",
        open: "C",
        declared: "C",
        apply: |schema| {
            let mut new = schema.clone();
            new["description"] = json!("another");
            Some(new)
        },
    },
];

#[test]
fn directed_changes_get_their_verdict() {
    let Some(schemas) = toolwarden_testkit::schemas() else {
        return;
    };
    let (mut compared, mut unknown) = (0_usize, Vec::new());
    let mut applied = vec![0_usize; MUTATIONS.len()];
    for (origin, schema) in &schemas {
        if !is_plain_object(schema) {
            continue;
        }
        for (count, mutation) in applied.iter_mut().zip(MUTATIONS) {
            let Some(new) = (mutation.apply)(schema) else {
                continue;
            };
            *count += 1;
            compared += 1;
            let verdicts = [
                (strictly(schema, &new), mutation.open),
                (for_arguments(schema, &new), mutation.declared),
            ];
            for (verdict, expected) in verdicts {
                match verdict_letter(&verdict) {
                    "?" => unknown.push(format!("{}: {origin}: {verdict:?}", mutation.name)),
                    answer => assert_eq!(
                        answer, expected,
                        "{}: {origin}: {verdict:?}\n{schema}\n{new}",
                        mutation.name
                    ),
                }
            }
        }
    }
    for (count, mutation) in applied.iter().zip(MUTATIONS) {
        assert!(*count > 30, "{}: applied {count} times", mutation.name);
    }
    assert!(
        unknown.len() * 200 < compared,
        "{} of {compared} undecided:\n{}",
        unknown.len(),
        unknown.join("\n")
    );
}

/// An object schema without anything that could make a change meaningless.
fn is_plain_object(schema: &Value) -> bool {
    const KNOWN: &[&str] = &[
        "$schema",
        "type",
        "properties",
        "required",
        "additionalProperties",
        "title",
        "description",
    ];
    let Some(members) = schema.as_object() else {
        return false;
    };
    members.keys().all(|key| KNOWN.contains(&key.as_str()))
        && members.get("type") == Some(&json!("object"))
        && members
            .get("additionalProperties")
            .is_none_or(Value::is_boolean)
        && accepts(schema, &json!({})).is_some()
        && !schema.to_string().contains("\"$ref\"")
        && satisfiable(schema)
}

/// The whole and each property can be given a value: none is impossible by itself.
fn satisfiable(schema: &Value) -> bool {
    let has_values = |schema: &Value| verdict_letter(&strictly(schema, &json!(false))) == "B";
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut properties = properties.into_iter().flatten();
    has_values(schema) && properties.all(|(_, property)| has_values(property))
}

fn with_property(schema: &Value, name: &str, property: Value) -> Value {
    let mut new = schema.clone();
    if new.get("properties").is_none() {
        new["properties"] = json!({});
    }
    new["properties"][name] = property;
    new
}

fn first_property(
    schema: &Value,
    wanted: fn(&Value) -> bool,
    change: fn(&mut Value),
) -> Option<Value> {
    let properties = schema.get("properties")?.as_object()?;
    let (name, _) = properties.iter().find(|(_, property)| wanted(property))?;
    let mut new = schema.clone();
    change(&mut new["properties"][name]);
    Some(new)
}

/// A property of a type with nothing else but its description.
fn plain(property: &Value, word: &str) -> Value {
    match property.get("description") {
        Some(description) => json!({"type": word, "description": description}),
        None => json!({"type": word}),
    }
}

fn distinct(values: &[Value]) -> bool {
    values
        .iter()
        .enumerate()
        .all(|(index, value)| !values[..index].contains(value))
        && values.iter().all(Value::is_string)
}
