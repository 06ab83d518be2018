//! Finds the schemas inside a schema: by keyword position, never by the name of a key.

use crate::json::{Object, Pointer, Value};

/// How a keyword contains schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubschemaForm {
    /// One schema.
    One,
    /// A list of schemas.
    List,
    /// A map from names to schemas.
    Map,
    /// One schema or a list of them, as `items` was before draft 2020-12.
    OneOrList,
}

/// How the keyword contains schemas, if it does.
#[must_use]
pub fn subschema_form(keyword: &str) -> Option<SubschemaForm> {
    match keyword {
        "additionalProperties"
        | "unevaluatedProperties"
        | "propertyNames"
        | "additionalItems"
        | "unevaluatedItems"
        | "contains"
        | "not"
        | "if"
        | "then"
        | "else"
        | "contentSchema" => Some(SubschemaForm::One),
        "items" => Some(SubschemaForm::OneOrList),
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Some(SubschemaForm::List),
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
        | "dependencies" => Some(SubschemaForm::Map),
        _ => None,
    }
}

/// The schemas directly inside a schema, without their pointers.
pub fn children(schema: &Object) -> impl Iterator<Item = &Value> {
    schema.iter().flat_map(|(keyword, value)| {
        let (map, list, one) = match (subschema_form(keyword), value) {
            (Some(SubschemaForm::Map), Value::Object(map)) => (Some(map), None, None),
            (Some(SubschemaForm::List | SubschemaForm::OneOrList), Value::Array(items)) => {
                (None, Some(items), None)
            }
            (
                Some(SubschemaForm::One | SubschemaForm::OneOrList),
                Value::Object(_) | Value::Bool(_),
            ) => (None, None, Some(value)),
            _ => (None, None, None),
        };
        let map = map.into_iter().flat_map(Object::values);
        let list = list.into_iter().flatten();
        map.chain(list).chain(one)
    })
}

/// The schemas directly inside a schema, with the pointers that lead to them.
#[must_use]
pub fn subschemas<'s>(schema: &'s Object, at: &Pointer) -> Vec<(Pointer, &'s Value)> {
    let mut found = Vec::new();
    for (keyword, value) in schema {
        let Some(position) = subschema_form(keyword) else {
            continue;
        };
        match (position, value) {
            (SubschemaForm::Map, Value::Object(map)) => {
                // A dependency may be a list of names instead of a schema.
                let schemas = map.iter().filter(|(_, value)| !value.is_array());
                found.extend(schemas.map(|(name, value)| (at.child(keyword).child(name), value)));
            }
            (SubschemaForm::List | SubschemaForm::OneOrList, Value::Array(items)) => {
                let items = items.iter().enumerate();
                found.extend(items.map(|(index, value)| (at.child(keyword).index(index), value)));
            }
            // A boolean that allows or forbids further members is a switch, not a schema.
            (_, Value::Bool(_))
                if keyword.starts_with("additional") || keyword.starts_with("unevaluated") => {}
            (SubschemaForm::One | SubschemaForm::OneOrList, Value::Object(_) | Value::Bool(_)) => {
                found.push((at.child(keyword), value));
            }
            _ => {}
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
        let schema = json!({"properties": {"properties": {"type": "object"}, "items": {"items": [{}]}},
            "enum": [{"items": {}}], "default": {"items": {}}});
        let places: Vec<String> = subschemas(schema.as_object().unwrap(), &Pointer::root())
            .into_iter()
            .map(|(pointer, _)| pointer.to_string())
            .collect();
        assert_eq!(places, ["/properties/properties", "/properties/items"]);
    }
}
