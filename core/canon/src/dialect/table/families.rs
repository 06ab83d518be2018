use crate::dialect::facts::{DialectFacts, FormatFacts, KeywordSupport, TypeListFacts};

/// Which facts the measurement of a family sets.
pub(super) enum FamilyEffect {
    /// These keywords.
    Keywords(&'static [&'static str]),
    /// Keywords that no specification defines.
    Undefined,
    /// Something else in a schema or a name.
    Fact(fn(&mut DialectFacts, KeywordSupport)),
}

use FamilyEffect::{Fact, Keywords, Undefined};

/// The formats of JSON Schema.
const FORMATS: &[&str] = &[
    "date-time",
    "date",
    "time",
    "duration",
    "email",
    "idn-email",
    "hostname",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "iri",
    "iri-reference",
    "uuid",
    "uri-template",
    "json-pointer",
    "relative-json-pointer",
    "regex",
];

/// One level less than the schema that a probe sends.
const DEPTH: usize = 12;

/// Every family, and what it decides. A keyword stands for its mirror image and for what means
/// nothing without it.
pub(super) const FAMILIES: &[(&str, FamilyEffect)] = &[
    ("$ref", Fact(|it, taken| it.references.allowed = taken)),
    ("definitions", Keywords(&["definitions"])),
    (
        "recursion",
        Fact(|it, taken| it.references.recursive = taken),
    ),
    ("depth", Fact(depth)),
    ("anyOf", Keywords(&["anyOf"])),
    (
        "type-beside-anyOf",
        Fact(|it, taken| it.type_beside_union = taken),
    ),
    ("anyOf-at-root", Fact(|it, taken| it.union_at_root = taken)),
    ("oneOf", Keywords(&["oneOf"])),
    ("allOf", Keywords(&["allOf"])),
    ("not", Keywords(&["not"])),
    ("if", Keywords(&["if", "then", "else"])),
    ("type-list", Fact(type_list)),
    ("type-list-of-containers", Fact(type_list_of_containers)),
    ("nullable", Keywords(&["nullable"])),
    ("untyped", Fact(|it, taken| it.untyped = taken)),
    (
        "boolean-schema",
        Fact(|it, taken| it.boolean_schemas = taken),
    ),
    ("const", Keywords(&["const"])),
    ("enum", Keywords(&["enum"])),
    (
        "enum-of-numbers",
        Fact(|it, taken| it.enums.numbers = taken),
    ),
    ("enum-of-types", Fact(|it, taken| it.enums.mixed = taken)),
    ("format", Keywords(&["format"])),
    ("format-of-openapi", Fact(other_formats)),
    ("pattern", Keywords(&["pattern"])),
    (
        "pattern-look-around",
        Fact(|it, taken| it.lookaround = taken),
    ),
    ("minLength", Keywords(&["minLength"])),
    ("maxLength", Keywords(&["maxLength"])),
    ("minimum", Keywords(&["minimum"])),
    ("maximum", Keywords(&["maximum"])),
    (
        "exclusiveMinimum",
        Keywords(&["exclusiveMinimum", "exclusiveMaximum"]),
    ),
    ("multipleOf", Keywords(&["multipleOf"])),
    ("additionalProperties", Keywords(&["additionalProperties"])),
    ("map", Fact(|it, taken| it.maps = taken)),
    ("patternProperties", Keywords(&["patternProperties"])),
    ("propertyNames", Keywords(&["propertyNames"])),
    (
        "minProperties",
        Keywords(&["minProperties", "maxProperties"]),
    ),
    ("dependentRequired", Keywords(&["dependentRequired"])),
    (
        "unevaluatedProperties",
        Keywords(&["unevaluatedProperties"]),
    ),
    ("empty-object", Fact(|it, taken| it.empty_objects = taken)),
    ("no-properties", Fact(|it, taken| it.empty_root = taken)),
    ("no-schema", Fact(|it, taken| it.untyped_root = taken)),
    ("minItems", Keywords(&["minItems"])),
    ("maxItems", Keywords(&["maxItems"])),
    ("uniqueItems", Keywords(&["uniqueItems"])),
    (
        "contains",
        Keywords(&["contains", "minContains", "maxContains"]),
    ),
    ("no-items", Fact(|it, taken| it.bare_arrays = taken)),
    ("prefixItems", Keywords(&["prefixItems"])),
    ("items-list", Fact(|it, taken| it.tuples = taken)),
    ("$schema", Keywords(&["$schema"])),
    ("default", Keywords(&["default"])),
    ("title", Keywords(&["title"])),
    ("examples", Keywords(&["examples"])),
    ("$comment", Keywords(&["$comment"])),
    ("deprecated", Keywords(&["deprecated"])),
    ("unknown-keyword", Undefined),
    (
        "parameter-dot",
        Fact(|it, taken| it.parameter_name_support.dot = taken),
    ),
    (
        "parameter-space",
        Fact(|it, taken| it.parameter_name_support.space = taken),
    ),
    (
        "parameter-dollar",
        Fact(|it, taken| it.parameter_name_support.dollar = taken),
    ),
    (
        "parameter-unicode",
        Fact(|it, taken| it.parameter_name_support.non_ascii = taken),
    ),
    (
        "parameter-long",
        Fact(|it, taken| it.parameter_name_support.long = taken),
    ),
    (
        "tool-dot",
        Fact(|it, taken| it.tool_name_support.dot = taken),
    ),
    (
        "tool-hyphen",
        Fact(|it, taken| it.tool_name_support.hyphen = taken),
    ),
    (
        "tool-digit",
        Fact(|it, taken| it.tool_name_support.digit_first = taken),
    ),
    (
        "tool-unicode",
        Fact(|it, taken| it.tool_name_support.non_ascii = taken),
    ),
    (
        "tool-long",
        Fact(|it, taken| it.tool_name_support.long = taken),
    ),
];

fn depth(facts: &mut DialectFacts, taken: KeywordSupport) {
    if let Some(level) = taken.finding_level() {
        facts.limits.depth = Some(DEPTH);
        facts.limits.beyond_depth = level;
    }
}

/// A provider that takes one defined format, but not an undefined one, takes the formats of JSON
/// Schema.
fn other_formats(facts: &mut DialectFacts, taken: KeywordSupport) {
    facts.formats = FormatFacts {
        known: FORMATS,
        others: taken,
    };
}

fn type_list(facts: &mut DialectFacts, taken: KeywordSupport) {
    if let TypeListFacts::Of { scalars, .. } = &mut facts.type_lists {
        *scalars = taken;
    }
}

fn type_list_of_containers(facts: &mut DialectFacts, taken: KeywordSupport) {
    if let TypeListFacts::Of { containers, .. } = &mut facts.type_lists {
        *containers = taken;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_family_has_one_row() {
        let ids: BTreeSet<&str> = FAMILIES.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids.len(), FAMILIES.len());
    }
}
