use crate::dialect::facts::{Facts, Formats, Taken, TypeLists};

/// What the outcome of a family decides.
pub(super) enum Decides {
    /// These keywords.
    Keywords(&'static [&'static str]),
    /// Keywords that nobody defines.
    Undefined,
    /// Something else in a schema or a name.
    Fact(fn(&mut Facts, Taken)),
}

use Decides::{Fact, Keywords, Undefined};

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

/// One level less than the schema has that a probe sends.
const DEPTH: usize = 12;

/// Every family, and what it decides. A keyword stands for its mirror image and for what means
/// nothing without it.
pub(super) const FAMILIES: &[(&str, Decides)] = &[
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
        Fact(|it, taken| it.look_around = taken),
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
        Fact(|it, taken| it.parameter_marks.dot = taken),
    ),
    (
        "parameter-space",
        Fact(|it, taken| it.parameter_marks.space = taken),
    ),
    (
        "parameter-dollar",
        Fact(|it, taken| it.parameter_marks.dollar = taken),
    ),
    (
        "parameter-unicode",
        Fact(|it, taken| it.parameter_marks.beyond_ascii = taken),
    ),
    (
        "parameter-long",
        Fact(|it, taken| it.parameter_marks.long = taken),
    ),
    ("tool-dot", Fact(|it, taken| it.tool_marks.dot = taken)),
    (
        "tool-hyphen",
        Fact(|it, taken| it.tool_marks.hyphen = taken),
    ),
    (
        "tool-digit",
        Fact(|it, taken| it.tool_marks.digit_first = taken),
    ),
    (
        "tool-unicode",
        Fact(|it, taken| it.tool_marks.beyond_ascii = taken),
    ),
    ("tool-long", Fact(|it, taken| it.tool_marks.long = taken)),
];

fn depth(facts: &mut Facts, taken: Taken) {
    if let Some(level) = taken.objection() {
        facts.limits.depth = Some(DEPTH);
        facts.limits.beyond_depth = level;
    }
}

/// Where one format is taken and one that nobody defines is not, those of JSON Schema are.
fn other_formats(facts: &mut Facts, taken: Taken) {
    facts.formats = Formats {
        known: FORMATS,
        others: taken,
    };
}

fn type_list(facts: &mut Facts, taken: Taken) {
    if let TypeLists::Of { scalars, .. } = &mut facts.type_lists {
        *scalars = taken;
    }
}

fn type_list_of_containers(facts: &mut Facts, taken: Taken) {
    if let TypeLists::Of { containers, .. } = &mut facts.type_lists {
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
