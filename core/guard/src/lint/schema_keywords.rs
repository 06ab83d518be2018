//! Keys in a schema that resemble a keyword but are not one: JSON Schema ignores them.

use serde_json::Value;
use toolwarden_model::did_you_mean;
use toolwarden_model::json::Pointer;
use toolwarden_model::keywords::subschemas;

use super::{LintReport, LintRule};
use crate::policy::Policy;

/// Every validation or annotation keyword of any draft.
const KEYWORDS: &[&str] = &[
    "$anchor",
    "$comment",
    "$defs",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$recursiveAnchor",
    "$recursiveRef",
    "$ref",
    "$schema",
    "$vocabulary",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "definitions",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "deprecated",
    "description",
    "discriminator",
    "else",
    "enum",
    "example",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "externalDocs",
    "format",
    "id",
    "if",
    "items",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "nullable",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "readOnly",
    "required",
    "then",
    "title",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
    "writeOnly",
    "xml",
];

/// The maximum number of schemas of one policy that are examined.
const MAX_SCHEMAS: usize = 100_000;

pub(super) fn check(policy: &Policy, report: &mut LintReport) {
    let mut left = MAX_SCHEMAS;
    for tool in &policy.tools {
        // A definition in another file is not part of this policy.
        if tool.definition.is_some() {
            continue;
        }
        for (key, schema) in [
            ("input_schema", &tool.input_schema),
            ("output_schema", &tool.output_schema),
        ] {
            let mut open = vec![(tool.pointer.child(key), schema)];
            while let Some((place, schema)) = open.pop() {
                left = left.saturating_sub(1);
                if left == 0 {
                    return;
                }
                words(&place, schema, report);
                if let Value::Object(members) = schema {
                    open.extend(subschemas(members, &place));
                }
            }
        }
    }
}

fn words(place: &Pointer, schema: &Value, report: &mut LintReport) {
    for word in schema
        .as_object()
        .into_iter()
        .flat_map(serde_json::Map::keys)
    {
        if KEYWORDS.contains(&word.as_str()) {
            continue;
        }
        let near = did_you_mean(word, KEYWORDS.iter().copied());
        if !near.is_empty() {
            let message = format!("`{word}` is not a JSON Schema keyword and checks nothing{near}");
            report.add(LintRule::SchemaWord, place.child(word), message);
        }
    }
}
