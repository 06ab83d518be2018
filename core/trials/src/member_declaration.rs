//! What a schema declares about the members of an object, in the simple cases.

use serde_json::Value;
use toolwarden_model::json::Pointer;

/// How a schema declares a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberDeclaration {
    /// It is required.
    Required,
    /// It is optional.
    Optional,
    /// The schema names members, but not this one.
    Extra,
    /// The schema leaves it open, or declares it in a way that is not followed here.
    #[default]
    Open,
}

const MAX_REFERENCES: usize = 16;

/// A place in a schema, or none.
#[derive(Clone, Copy, Debug)]
pub(super) struct SchemaCursor<'s> {
    root: &'s Value,
    here: Option<&'s Value>,
}

impl<'s> SchemaCursor<'s> {
    pub(super) const fn root(schema: &'s Value) -> Self {
        Self {
            root: schema,
            here: Some(schema),
        }
    }

    /// How the schema declares a member, and the place of the member's schema.
    pub(super) fn member(self, name: &str) -> (MemberDeclaration, Self) {
        let Some(schema) = self.resolved() else {
            return (MemberDeclaration::Open, self.nowhere());
        };
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return (MemberDeclaration::Open, self.nowhere());
        };
        if let Some(member) = properties.get(name) {
            let required = schema.get("required").and_then(Value::as_array);
            let required = required.is_some_and(|names| names.iter().any(|it| it == name));
            let declared = if required {
                MemberDeclaration::Required
            } else {
                MemberDeclaration::Optional
            };
            return (declared, self.at(member));
        }
        // Another keyword may name it, so it is unknown whether this member is declared.
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
            return (MemberDeclaration::Open, self.nowhere());
        }
        (MemberDeclaration::Extra, self.nowhere())
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

    /// The schema here. References within the document are followed, unless `properties` is next to
    /// them.
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
            let pointer = toolwarden_model::json::percent_decode(pointer)?;
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
        let root = SchemaCursor::root(&schema);
        let (declared, a) = root.member("a");
        assert_eq!(declared, MemberDeclaration::Required);
        assert_eq!(a.member("n").0, MemberDeclaration::Required);
        assert_eq!(
            a.member("z").0,
            MemberDeclaration::Open,
            "members beyond are allowed"
        );
        let (declared, b) = root.member("b");
        assert_eq!(declared, MemberDeclaration::Optional);
        assert_eq!(b.items().member("c").0, MemberDeclaration::Optional);
        assert_eq!(b.items().member("d").0, MemberDeclaration::Extra);
        assert_eq!(root.member("o").1.member("x").0, MemberDeclaration::Open);
        assert_eq!(root.member("q").0, MemberDeclaration::Extra);
        let looping = json!({"$ref": "#/$defs/l", "$defs": {"l": {"$ref": "#/$defs/l"}}});
        assert_eq!(
            SchemaCursor::root(&looping).member("a").0,
            MemberDeclaration::Open
        );
        let combined = json!({"properties": {}, "anyOf": [{}]});
        assert_eq!(
            SchemaCursor::root(&combined).member("a").0,
            MemberDeclaration::Open
        );
    }
}
