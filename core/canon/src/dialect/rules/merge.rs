use serde_json::Value;
use toolwarden_model::json::Object;

/// One schema that says what both say, if joining their keywords does.
pub(super) fn merge(mut into: Object, other: &Object) -> Option<Object> {
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
    // A closed object closes over its own properties only, so joining properties would open it.
    let closed = |schema: &Object| {
        schema
            .get("additionalProperties")
            .is_some_and(|value| *value != Value::Bool(true))
    };
    let both_have_properties = into.contains_key("properties") && other.contains_key("properties");
    (!(both_have_properties && closed(&into))).then_some(into)
}
