//! Where the schemas are inside a schema: by the position of a keyword, never by the name of a key.

use crate::json::{Object, Pointer, Value};

/// How a keyword holds schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// One schema.
    One,
    /// A list of schemas.
    List,
    /// A map from names to schemas.
    Map,
    /// One schema or a list of them, as `items` was before draft 2020-12.
    OneOrList,
}

/// How the keyword holds schemas, if it holds any.
#[must_use]
pub fn position(keyword: &str) -> Option<Position> {
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
        | "contentSchema" => Some(Position::One),
        "items" => Some(Position::OneOrList),
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Some(Position::List),
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
        | "dependencies" => Some(Position::Map),
        _ => None,
    }
}

/// The schemas directly inside a schema, where their places do not matter.
pub fn children(schema: &Object) -> impl Iterator<Item = &Value> {
    schema.iter().flat_map(|(keyword, value)| {
        let (map, list, one) = match (position(keyword), value) {
            (Some(Position::Map), Value::Object(map)) => (Some(map), None, None),
            (Some(Position::List | Position::OneOrList), Value::Array(items)) => {
                (None, Some(items), None)
            }
            (Some(Position::One | Position::OneOrList), Value::Object(_) | Value::Bool(_)) => {
                (None, None, Some(value))
            }
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
        let Some(position) = position(keyword) else {
            continue;
        };
        match (position, value) {
            (Position::Map, Value::Object(map)) => {
                // A dependency may be a list of names instead of a schema.
                let schemas = map.iter().filter(|(_, value)| !value.is_array());
                found.extend(schemas.map(|(name, value)| (at.child(keyword).child(name), value)));
            }
            (Position::List | Position::OneOrList, Value::Array(items)) => {
                let items = items.iter().enumerate();
                found.extend(items.map(|(index, value)| (at.child(keyword).index(index), value)));
            }
            // A boolean that says whether there may be more is a switch rather than a schema.
            (_, Value::Bool(_))
                if keyword.starts_with("additional") || keyword.starts_with("unevaluated") => {}
            (Position::One | Position::OneOrList, Value::Object(_) | Value::Bool(_)) => {
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
