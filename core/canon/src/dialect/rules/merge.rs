use serde_json::Value;
use toolwarden_model::json::Object;

/// Keywords that look at each other, so that joining them from two schemas says something else.
const ENTANGLED: &[&[&str]] = &[
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

/// One schema that says what both say, if joining their keywords does.
pub(super) fn merge(mut into: Object, other: &Object) -> Option<Object> {
    if ENTANGLED
        .iter()
        .any(|group| is_entangled(group, &into, other))
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
            // What stands outside informs about this use, so it has precedence.
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
fn is_entangled(group: &[&str], a: &Object, b: &Object) -> bool {
    let has = |schema: &Object| group.iter().any(|keyword| schema.contains_key(*keyword));
    let has_other = |schema: &Object| {
        group
            .iter()
            .any(|it| *it != "properties" && schema.contains_key(*it))
    };
    has(a) && has(b) && (has_other(a) || has_other(b))
}
