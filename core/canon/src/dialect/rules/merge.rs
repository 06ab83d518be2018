use serde_json::Value;
use toolwarden_model::json::Object;

/// Keywords that depend on each other, so that joining them from two schemas changes the meaning.
const INTERDEPENDENT: &[&[&str]] = &[
    &[
        "properties",
        "patternProperties",
        "additionalProperties",
        "unevaluatedProperties",
    ],
    &[
        "items",
        "prefixItems",
        "additionalItems",
        "unevaluatedItems",
    ],
    &["contains", "minContains", "maxContains"],
    &["if", "then", "else"],
];

/// One schema equivalent to both together, if joining their keywords gives one.
pub(super) fn merge(mut into: Object, other: &Object) -> Option<Object> {
    if INTERDEPENDENT
        .iter()
        .any(|group| is_interdependent(group, &into, other))
    {
        return None;
    }
    for (keyword, value) in other {
        let Some(own) = into.get_mut(keyword) else {
            into.insert(keyword.clone(), value.clone());
            continue;
        };
        match (keyword.as_str(), own, value) {
            (_, own, value) if own == value => {}
            // The outer annotation describes this use, so it takes precedence.
            ("title" | "description" | "default" | "examples", _, _) => {}
            ("properties" | "$defs" | "definitions", Value::Object(own), Value::Object(value)) => {
                for (name, schema) in value {
                    match own.get(name) {
                        Some(existing) if existing != schema => return None,
                        _ => own.insert(name.clone(), schema.clone()),
                    };
                }
            }
            ("required", Value::Array(own), Value::Array(value)) => {
                for name in value {
                    if !own.contains(name) {
                        own.push(name.clone());
                    }
                }
            }
            _ => return None,
        }
    }
    Some(into)
}

/// Whether both schemas have keywords of a group, and other ones than `properties` alone.
fn is_interdependent(group: &[&str], a: &Object, b: &Object) -> bool {
    let has = |schema: &Object| group.iter().any(|keyword| schema.contains_key(*keyword));
    let has_other = |schema: &Object| {
        group
            .iter()
            .any(|it| *it != "properties" && schema.contains_key(*it))
    };
    has(a) && has(b) && (has_other(a) || has_other(b))
}
