use crate::json::{Object, Value};
use crate::keywords::children;

/// The JSON Schema draft that a document is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Draft {
    /// Draft 4 and earlier.
    Draft4,
    /// Draft 6.
    Draft6,
    /// Draft 7.
    Draft7,
    /// Draft 2019-09.
    Draft2019,
    /// Draft 2020-12.
    Draft2020,
}

impl Draft {
    /// The declared draft of a document, or the newest draft that can read it.
    #[must_use]
    pub fn of(schema: &Value) -> Self {
        match schema.as_object().and_then(Self::declared) {
            Some(draft) => draft,
            None => infer_draft(schema),
        }
    }

    /// The draft named in `$schema`; an unknown one counts as the newest.
    #[must_use]
    pub fn declared(schema: &Object) -> Option<Self> {
        let uri = schema.get("$schema")?.as_str()?;
        Some(match uri {
            uri if uri.contains("draft-03") || uri.contains("draft-04") => Self::Draft4,
            uri if uri.contains("draft-06") => Self::Draft6,
            uri if uri.contains("draft-07") => Self::Draft7,
            uri if uri.contains("2019-09") => Self::Draft2019,
            _ => Self::Draft2020,
        })
    }

    /// The identifier of the draft's metaschema.
    #[must_use]
    pub const fn uri(self) -> &'static str {
        match self {
            Self::Draft4 => "http://json-schema.org/draft-04/schema#",
            Self::Draft6 => "http://json-schema.org/draft-06/schema#",
            Self::Draft7 => "http://json-schema.org/draft-07/schema#",
            Self::Draft2019 => "https://json-schema.org/draft/2019-09/schema",
            Self::Draft2020 => "https://json-schema.org/draft/2020-12/schema",
        }
    }

    /// The draft's display name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Draft4 => "4",
            Self::Draft6 => "6",
            Self::Draft7 => "7",
            Self::Draft2019 => "2019-09",
            Self::Draft2020 => "2020-12",
        }
    }
}

/// A document that names no draft is read as the newest, unless it uses a form that only an older
/// draft has: boolean exclusive bounds (draft 4) or a list under `items` (up to 2019-09).
fn infer_draft(schema: &Value) -> Draft {
    let mut draft = Draft::Draft2020;
    let mut open = vec![schema];
    while let Some(schema) = open.pop() {
        let Value::Object(members) = schema else {
            continue;
        };
        let boolean = |key: &str| members.get(key).is_some_and(Value::is_boolean);
        if boolean("exclusiveMinimum") || boolean("exclusiveMaximum") {
            draft = Draft::Draft4;
        } else if members.get("items").is_some_and(Value::is_array) {
            draft = draft.min(Draft::Draft7);
        }
        open.extend(children(members));
    }
    draft
}
