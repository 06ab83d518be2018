use serde_json::Value;
use toolwarden_model::json::{Object, Pointer};
use toolwarden_model::keywords::{SubschemaForm, subschema_form, subschemas};

/// A copy of a schema with a change made to every schema in it, outermost last.
pub(crate) fn map_schemas(schema: &Value, change: &dyn Fn(&mut Object)) -> Value {
    rebuild(schema, &|keyword| keyword, change)
}

/// As [`map_schemas`], with keywords renamed on the way down.
pub(crate) fn rebuild(
    schema: &Value,
    rename: &dyn for<'k> Fn(&'k str) -> &'k str,
    change: &dyn Fn(&mut Object),
) -> Value {
    let Value::Object(members) = schema else {
        return schema.clone();
    };
    let each = |value: &Value| rebuild(value, rename, change);
    let mut rebuilt = Object::with_capacity(members.len());
    for (written, value) in members {
        let keyword = rename(written);
        // Either the old or the new name identifies the position.
        let position = subschema_form(keyword).or_else(|| subschema_form(written));
        let value = match (position, value) {
            (Some(SubschemaForm::Map), Value::Object(map)) => Value::Object(
                map.iter()
                    .map(|(name, value)| (name.clone(), each(value)))
                    .collect(),
            ),
            (Some(SubschemaForm::List | SubschemaForm::OneOrList), Value::Array(items)) => {
                items.iter().map(each).collect()
            }
            (Some(SubschemaForm::One | SubschemaForm::OneOrList), Value::Object(_)) => each(value),
            _ => value.clone(),
        };
        rebuilt.insert(keyword.to_owned(), value);
    }
    change(&mut rebuilt);
    Value::Object(rebuilt)
}

/// Whether any `type` in the schema or its subschemas satisfies the test. A `type` that is not a
/// string counts as satisfying it.
pub(crate) fn any_type(schema: &Value, test: &dyn Fn(&str) -> bool) -> bool {
    let Value::Object(members) = schema else {
        return false;
    };
    members
        .iter()
        .any(|(keyword, value)| match (subschema_form(keyword), value) {
            (None, Value::String(word)) if keyword == "type" => test(word),
            (None, _) => keyword == "type",
            (Some(SubschemaForm::Map), Value::Object(map)) => {
                map.values().any(|value| any_type(value, test))
            }
            (Some(SubschemaForm::List | SubschemaForm::OneOrList), Value::Array(items)) => {
                items.iter().any(|value| any_type(value, test))
            }
            (Some(_), value) => any_type(value, test),
        })
}

/// Makes a schema also accept null.
pub(crate) fn allow_null(schema: &mut Object) {
    let null = || Value::from("null");
    let enumerates = schema.contains_key("enum") || schema.contains_key("const");
    let combines = ["anyOf", "oneOf", "allOf", "not", "$ref"]
        .iter()
        .any(|key| schema.contains_key(*key));
    match schema.get_mut("type") {
        Some(Value::String(word)) if !enumerates && !combines => {
            let word = Value::from(word.as_str());
            schema.insert("type".to_owned(), Value::Array(vec![word, null()]));
        }
        Some(Value::Array(words)) if !enumerates && !combines => {
            if !words.contains(&null()) {
                words.push(null());
            }
        }
        // A schema without constraints already accepts null.
        None if !enumerates && !combines => {}
        _ => {
            let mut informing = Object::new();
            for key in ["title", "description", "default", "examples"] {
                informing.extend(
                    schema
                        .shift_remove(key)
                        .map(|value| (key.to_owned(), value)),
                );
            }
            let own = Value::Object(std::mem::take(schema));
            let null: Object = [("type".to_owned(), null())].into_iter().collect();
            informing.insert(
                "anyOf".to_owned(),
                Value::Array(vec![own, Value::Object(null)]),
            );
            *schema = informing;
        }
    }
}

/// Renames the types of one schema; a type that maps to `None` is removed.
pub(crate) fn rename_types(schema: &mut Object, rename: impl Fn(&str) -> Option<&str>) {
    let renamed = match schema.get("type") {
        Some(Value::String(word)) => rename(word).map(Value::from),
        Some(Value::Array(words)) => Some(
            words
                .iter()
                .filter_map(|word| match word {
                    Value::String(word) => rename(word).map(Value::from),
                    Value::Null
                    | Value::Bool(_)
                    | Value::Number(_)
                    | Value::Array(_)
                    | Value::Object(_) => Some(word.clone()),
                })
                .collect(),
        ),
        _ => return,
    };
    match renamed {
        Some(value) => {
            schema.insert("type".to_owned(), value);
        }
        None => {
            schema.shift_remove("type");
        }
    }
}

/// The places of all schemas inside a schema and its own, each before those inside it.
pub(super) fn places(root: &Value) -> Vec<Pointer> {
    let mut found = Vec::new();
    let mut open = vec![(Pointer::root(), root)];
    while let Some((at, schema)) = open.pop() {
        if let Value::Object(members) = schema {
            open.extend(subschemas(members, &at));
            found.push(at);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn property_named_properties_is_a_property() {
        let schema = json!({"properties": {"properties": {"type": "dict"}, "items": {"type": "dict", "items": [{"type": "dict"}]}},
            "enum": [{"type": "dict"}], "default": {"type": "dict"}, "type": "dict"});
        let renamed = map_schemas(&schema, &|schema| rename_types(schema, |_| Some("object")));
        assert_eq!(
            renamed,
            json!({"properties": {"properties": {"type": "object"}, "items": {"type": "object", "items": [{"type": "object"}]}},
                "enum": [{"type": "dict"}], "default": {"type": "dict"}, "type": "object"})
        );
    }
}
