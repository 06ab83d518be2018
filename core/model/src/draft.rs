use crate::json::{Object, Value};
use crate::keywords::children;

/// The edition of JSON Schema a document is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Draft {
    /// Draft 4 and what came before it.
    Four,
    /// Draft 6.
    Six,
    /// Draft 7.
    Seven,
    /// Draft 2019-09.
    Draft2019,
    /// Draft 2020-12.
    Draft2020,
}

impl Draft {
    /// The draft a document declares, or the newest one that can read it.
    #[must_use]
    pub fn of(schema: &Value) -> Self {
        match schema.as_object().and_then(Self::declared) {
            Some(draft) => draft,
            None => undeclared(schema),
        }
    }

    /// The draft a document names in `$schema`; one that is not known counts as the newest.
    #[must_use]
    pub fn declared(schema: &Object) -> Option<Self> {
        let uri = schema.get("$schema")?.as_str()?;
        Some(match uri {
            uri if uri.contains("draft-03") || uri.contains("draft-04") => Self::Four,
            uri if uri.contains("draft-06") => Self::Six,
            uri if uri.contains("draft-07") => Self::Seven,
            uri if uri.contains("2019-09") => Self::Draft2019,
            _ => Self::Draft2020,
        })
    }

    /// The identifier of the draft's metaschema.
    #[must_use]
    pub const fn uri(self) -> &'static str {
        match self {
            Self::Four => "http://json-schema.org/draft-04/schema#",
            Self::Six => "http://json-schema.org/draft-06/schema#",
            Self::Seven => "http://json-schema.org/draft-07/schema#",
            Self::Draft2019 => "https://json-schema.org/draft/2019-09/schema",
            Self::Draft2020 => "https://json-schema.org/draft/2020-12/schema",
        }
    }

    /// The draft's name for people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Four => "4",
            Self::Six => "6",
            Self::Seven => "7",
            Self::Draft2019 => "2019-09",
            Self::Draft2020 => "2020-12",
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
        let boolean = |key: &str| members.get(key).is_some_and(Value::is_boolean);
        if boolean("exclusiveMinimum") || boolean("exclusiveMaximum") {
            draft = Draft::Four;
        } else if members.get("items").is_some_and(Value::is_array) {
            draft = draft.min(Draft::Seven);
        }
        open.extend(children(members));
    }
    draft
}
