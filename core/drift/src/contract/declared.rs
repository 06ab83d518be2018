//! What a schema says about the members of an object, as far as that is plain.

use serde_json::Value;
use toolwarden_model::json::Pointer;

/// How a schema has a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Declared {
    /// It must be there.
    Required,
    /// It may be there.
    Optional,
    /// The schema names members, and not this one.
    Extra,
    /// The schema leaves it open, or says it in a way that is not followed here.
    #[default]
    Open,
}

const MAX_REFERENCES: usize = 16;

/// A place in a schema, or nowhere.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'s> {
    root: &'s Value,
    here: Option<&'s Value>,
}

impl<'s> Place<'s> {
    pub(super) const fn root(schema: &'s Value) -> Self {
        Self {
            root: schema,
            here: Some(schema),
        }
    }

    /// What the schema says of a member, and the place of its own schema.
    pub(super) fn member(self, name: &str) -> (Declared, Self) {
        let Some(schema) = self.resolved() else {
            return (Declared::Open, self.nowhere());
        };
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return (Declared::Open, self.nowhere());
        };
        if let Some(member) = properties.get(name) {
            let required = schema.get("required").and_then(Value::as_array);
            let required = required.is_some_and(|names| names.iter().any(|it| it == name));
            let declared = if required {
                Declared::Required
            } else {
                Declared::Optional
            };
            return (declared, self.at(member));
        }
        // Another keyword may name it, and then it is not known whether this one is meant.
        let elsewhere = [
            "$ref",
            "patternProperties",
            "allOf",
            "anyOf",
            "oneOf",
            "if",
            "dependentSchemas",
            "dependencies",
            "$dynamicRef",
        ];
        let open = elsewhere
            .iter()
            .any(|keyword| schema.get(*keyword).is_some());
        let further = schema.get("additionalProperties");
        let closed = matches!(further, None | Some(Value::Bool(false)));
        if open || !closed {
            return (Declared::Open, self.nowhere());
        }
        (Declared::Extra, self.nowhere())
    }

    /// The place of the schema of an array's items.
    pub(super) fn items(self) -> Self {
        let items = self.resolved().and_then(|schema| schema.get("items"));
        match items {
            Some(items @ Value::Object(_)) => self.at(items),
            _ => self.nowhere(),
        }
    }

    const fn at(self, here: &'s Value) -> Self {
        Self {
            root: self.root,
            here: Some(here),
        }
    }

    const fn nowhere(self) -> Self {
        Self {
            root: self.root,
            here: None,
        }
    }

    /// The schema here, with references within the document followed while they stand alone.
    fn resolved(self) -> Option<&'s Value> {
        let mut schema = self.here?;
        for _ in 0..MAX_REFERENCES {
            let Some(reference) = schema.get("$ref").and_then(Value::as_str) else {
                return Some(schema);
            };
            if schema.get("properties").is_some() {
                return Some(schema);
            }
            let pointer = reference.strip_prefix('#')?;
            let pointer = toolwarden_model::json::percent_decoded(pointer)?;
            schema = Pointer::from(pointer.as_str()).find(self.root)?;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_are_told_apart_by_what_the_schema_says() {
        let schema = json!({
            "properties": {"a": {"$ref": "#/$defs/x"}, "b": {"items": {"properties": {"c": {}}}}, "o": {}},
            "required": ["a"],
            "$defs": {"x": {"properties": {"n": {}}, "required": ["n"], "additionalProperties": true},
                "loop": {"$ref": "#/$defs/loop"}},
        });
        let root = Place::root(&schema);
        let (declared, a) = root.member("a");
        assert_eq!(declared, Declared::Required);
        assert_eq!(a.member("n").0, Declared::Required);
        assert_eq!(
            a.member("z").0,
            Declared::Open,
            "members beyond are allowed"
        );
        let (declared, b) = root.member("b");
        assert_eq!(declared, Declared::Optional);
        assert_eq!(b.items().member("c").0, Declared::Optional);
        assert_eq!(b.items().member("d").0, Declared::Extra);
        assert_eq!(root.member("o").1.member("x").0, Declared::Open);
        assert_eq!(root.member("q").0, Declared::Extra);
        let looping = json!({"$ref": "#/$defs/l", "$defs": {"l": {"$ref": "#/$defs/l"}}});
        assert_eq!(Place::root(&looping).member("a").0, Declared::Open);
        let combined = json!({"properties": {}, "anyOf": [{}]});
        assert_eq!(Place::root(&combined).member("a").0, Declared::Open);
    }
}
