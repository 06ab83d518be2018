use serde_json::Value;
use toolwarden_model::json::Pointer;
use toolwarden_model::keywords::subschemas;

use super::keywords::{KeywordKind, keyword_kind};
pub(crate) use toolwarden_model::Draft;

/// The draft as the validator names it.
pub(crate) const fn validator_draft(draft: Draft) -> jsonschema::Draft {
    match draft {
        Draft::Draft4 => jsonschema::Draft::Draft4,
        Draft::Draft6 => jsonschema::Draft::Draft6,
        Draft::Draft7 => jsonschema::Draft::Draft7,
        Draft::Draft2019 => jsonschema::Draft::Draft201909,
        Draft::Draft2020 => jsonschema::Draft::Draft202012,
    }
}

/// A keyword that the older draft of a document does not define or would ignore, if the document
/// does not name its draft.
pub(super) fn foreign_keyword(schema: &Value, draft: Draft) -> Option<(Pointer, String)> {
    if draft == Draft::Draft2020 || schema.get("$schema").is_some() {
        return None;
    }
    let informs = |keyword: &str, draft: Draft| {
        matches!(keyword_kind(keyword, draft), KeywordKind::Annotation)
    };
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
