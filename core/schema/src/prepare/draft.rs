use serde_json::Value;
use toolwarden_model::json::{Object, Pointer};
use toolwarden_model::keywords::{children, subschemas};

use super::keywords::{Kind, kind};

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
    each_schema(schema, &mut |members| {
        let boolean = |key: &str| members.get(key).is_some_and(Value::is_boolean);
        if boolean("exclusiveMinimum") || boolean("exclusiveMaximum") {
            draft = Draft::Four;
        } else if members.get("items").is_some_and(Value::is_array) {
            draft = draft.min(Draft::Seven);
        }
    });
    draft
}

/// A keyword of a document that names no draft, which the older draft it has to be read in does not
/// know, or would pass over.
pub(super) fn misplaced(schema: &Value, draft: Draft) -> Option<(Pointer, String)> {
    if draft == Draft::Draft2020 || schema.get("$schema").is_some() {
        return None;
    }
    let informs = |keyword: &str, draft: Draft| matches!(kind(keyword, draft), Kind::Annotation);
    let mut found = None;
    let mut open = vec![(Pointer::root(), schema)];
    while let Some((at, schema)) = open.pop() {
        let Value::Object(members) = schema else {
            continue;
        };
        let newer =
            |keyword: &&String| informs(keyword, draft) && !informs(keyword, Draft::Draft2020);
        let passed_over = |keyword: &&String| *keyword != "$ref" && !informs(keyword, draft);
        let mut keywords = members.keys();
        let keyword = match members.contains_key("$ref") {
            true => keywords.find(passed_over),
            false => keywords.find(newer),
        };
        if let (None, Some(keyword)) = (&found, keyword) {
            found = Some((at.child(keyword), keyword.clone()));
        }
        open.extend(subschemas(members, &at));
    }
    found
}

fn each_schema(schema: &Value, see: &mut dyn FnMut(&Object)) {
    let mut open = vec![schema];
    while let Some(schema) = open.pop() {
        if let Value::Object(members) = schema {
            see(members);
            open.extend(children(members));
        }
    }
}
