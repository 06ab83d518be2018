use serde_json::Value;
use toolwarden_model::json::{Object, Pointer};

use crate::dialect::facts::DialectFacts;
use crate::dialect::lint::{DialectFinding, DialectLevel};
use crate::schema::subschemas;

/// Reports what exceeds the size limits of the dialect.
pub(in crate::dialect) fn size_findings(
    schema: &Object,
    place: &Pointer,
    facts: &DialectFacts,
) -> Vec<DialectFinding> {
    let limits = facts.limits;
    let mut measured = SchemaSize::default();
    measure(schema, 1, &mut measured);
    let bytes = if limits.bytes.is_some() {
        Value::Object(schema.clone()).to_string().len()
    } else {
        0
    };
    let refused = DialectLevel::Rejected;
    let rows = [
        (
            limits.beyond_depth,
            "nesting",
            "levels",
            measured.depth,
            limits.depth,
        ),
        (
            refused,
            "properties",
            "properties",
            measured.properties,
            limits.properties,
        ),
        (
            refused,
            "enum values",
            "values",
            measured.enum_values,
            limits.enum_values,
        ),
        (
            refused,
            "union branches",
            "branches",
            measured.branches,
            limits.union_branches,
        ),
        (refused, "the schema", "bytes", bytes, limits.bytes),
    ];
    rows.into_iter()
        .filter_map(|(level, what, unit, found, limit)| {
            let limit = limit.filter(|limit| found > *limit)?;
            let verdict = match level {
                DialectLevel::Rejected => "accepted",
                DialectLevel::Ignored => "honoured",
            };
            let message = format!("{what}: {found} {unit}, at most {limit} are {verdict}");
            let pointer = place.clone();
            Some(DialectFinding {
                rule: "size",
                level,
                pointer,
                message: message.into(),
                fixable: false,
            })
        })
        .collect()
}

#[derive(Default)]
struct SchemaSize {
    depth: usize,
    properties: usize,
    enum_values: usize,
    branches: usize,
}

fn measure(schema: &Object, depth: usize, measured: &mut SchemaSize) {
    let length = |key: &str| {
        schema
            .get(key)
            .and_then(Value::as_array)
            .map_or(0, Vec::len)
    };
    measured.depth = measured.depth.max(depth);
    measured.properties += schema
        .get("properties")
        .and_then(Value::as_object)
        .map_or(0, Object::len);
    measured.enum_values += length("enum");
    measured.branches = measured.branches.max(length("anyOf"));
    for (at, child) in subschemas(schema, &Pointer::root()) {
        let nested = ["/properties/", "/items", "/additionalProperties"]
            .iter()
            .any(|key| at.as_str().starts_with(key));
        if let Value::Object(child) = child {
            measure(child, depth + usize::from(nested), measured);
        }
    }
}
