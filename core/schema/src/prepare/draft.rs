use serde_json::Value;
use toolwarden_model::json::Pointer;
use toolwarden_model::keywords::subschemas;

/// The edition of JSON Schema a document is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Draft {
    Four,
    Six,
    Seven,
    Draft2019,
    Draft2020,
}

impl Draft {
    /// The draft a document declares, or the newest one that can read it.
    pub(crate) fn of(schema: &Value) -> Self {
        let declared = schema.get("$schema").and_then(Value::as_str);
        match declared {
            Some(uri) if uri.contains("draft-03") || uri.contains("draft-04") => Self::Four,
            Some(uri) if uri.contains("draft-06") => Self::Six,
            Some(uri) if uri.contains("draft-07") => Self::Seven,
            Some(uri) if uri.contains("2019-09") => Self::Draft2019,
            Some(_) => Self::Draft2020,
            None => undeclared(schema),
        }
    }

    /// The draft as the validator names it.
    pub(crate) fn for_validator(self) -> jsonschema::Draft {
        match self {
            Self::Four => jsonschema::Draft::Draft4,
            Self::Six => jsonschema::Draft::Draft6,
            Self::Seven => jsonschema::Draft::Draft7,
            Self::Draft2019 => jsonschema::Draft::Draft201909,
            Self::Draft2020 => jsonschema::Draft::Draft202012,
        }
    }
}

/// A document that names no draft is read as the newest, unless it uses a form only an older one
/// has: boolean exclusive bounds (draft 4) or a list under `items` (up to 2019-09).
fn undeclared(schema: &Value) -> Draft {
    let mut draft = Draft::Draft2020;
    let mut open = vec![schema];
    while let Some(schema) = open.pop() {
        let Value::Object(members) = schema else {
            continue;
        };
        if ["exclusiveMinimum", "exclusiveMaximum"]
            .iter()
            .any(|key| members.get(*key).is_some_and(Value::is_boolean))
        {
            return Draft::Four;
        }
        if members.get("items").is_some_and(Value::is_array) {
            draft = Draft::Seven;
        }
        let children = subschemas(members, &Pointer::root());
        open.extend(children.into_iter().map(|(_, child)| child));
    }
    draft
}
