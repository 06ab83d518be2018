use serde_json::Value;
use toolwarden_model::json::Pointer;
use toolwarden_model::keywords::subschemas;

use super::keywords::{Kind, kind};
pub(crate) use toolwarden_model::Draft;

/// The draft as the validator names it.
pub(crate) const fn for_validator(draft: Draft) -> jsonschema::Draft {
    match draft {
        Draft::Four => jsonschema::Draft::Draft4,
        Draft::Six => jsonschema::Draft::Draft6,
        Draft::Seven => jsonschema::Draft::Draft7,
        Draft::Draft2019 => jsonschema::Draft::Draft201909,
        Draft::Draft2020 => jsonschema::Draft::Draft202012,
    }
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
