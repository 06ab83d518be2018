//! The role of a difference in a schema, and how messages describe it.

use std::collections::BTreeSet;

use serde_json::Value;
use toolwarden_model::json::{Pointer, to_canonical_string};
use toolwarden_model::keywords::{SubschemaForm, subschema_form};
use toolwarden_schema::FormatMode;

use super::SchemaDirection;
use crate::change::ChangeKind;
use crate::difference::Difference;
use crate::rename::Rename;

/// The maximum number of enumeration values in a message.
const MAX_LISTED: usize = 5;

/// The role of a location in a schema.
#[derive(Clone, Debug)]
pub(super) struct SchemaRole {
    /// The keyword it belongs to; empty for the schema as a whole.
    pub(super) keyword: String,
    pub(super) rule: &'static str,
    /// Whether the difference is a whole schema under the keyword, such as a property.
    pub(super) holds_schema: bool,
    /// What the schema around the keyword describes, for messages.
    subject: Option<String>,
    /// The property that differs, if the difference is a property.
    property: Option<String>,
}

/// Keywords that restrict a value by themselves.
const ASSERTIONS: &[&str] = &[
    "type",
    "enum",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minContains",
    "maxContains",
    "required",
    "minProperties",
    "maxProperties",
    "dependentRequired",
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
    "$schema",
    "$id",
    "id",
    "$anchor",
    "$dynamicAnchor",
    "$recursiveAnchor",
];

/// Keywords that contain schemas.
const APPLICATORS: &[&str] = &[
    "properties",
    "patternProperties",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentSchemas",
    "dependencies",
    "$defs",
    "definitions",
];

/// Keywords that only inform a reader.
const ANNOTATIONS: &[&str] = &[
    "title",
    "description",
    "default",
    "examples",
    "example",
    "$comment",
    "deprecated",
    "readOnly",
    "writeOnly",
    "format",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
];

impl SchemaRole {
    /// Follows a pointer through the keywords to the place that it names.
    pub(super) fn of(pointer: &Pointer) -> Self {
        let segments: Vec<String> = pointer.segments().collect();
        let mut rest = segments.iter().peekable();
        let mut role = Self {
            keyword: String::new(),
            rule: "schema",
            holds_schema: true,
            subject: None,
            property: None,
        };
        while let Some(keyword) = rest.next() {
            // The last property becomes the subject of the keywords inside it.
            if let Some(property) = role.property.take() {
                role.subject = Some(format!("`{property}`"));
            }
            role.keyword.clone_from(keyword);
            let known = [ASSERTIONS, APPLICATORS, ANNOTATIONS];
            let found = known.iter().flat_map(|list| list.iter());
            role.rule = found.copied().find(|it| it == keyword).unwrap_or("keyword");
            role.holds_schema = false;
            let is_index = |next: &&&String| next.bytes().all(|byte| byte.is_ascii_digit());
            match subschema_form(keyword) {
                None => return role,
                Some(SubschemaForm::Map | SubschemaForm::List) => {
                    let Some(inside) = rest.next() else {
                        return role;
                    };
                    if keyword == "properties" {
                        role.property = Some(inside.clone());
                    }
                }
                Some(SubschemaForm::OneOrList) => {
                    if rest.peek().filter(is_index).is_some() {
                        rest.next();
                    }
                }
                Some(SubschemaForm::One) => {}
            }
            role.holds_schema = true;
            let part = match keyword.as_str() {
                "items" | "prefixItems" | "additionalItems" | "contains" => "the items",
                "additionalProperties" | "patternProperties" => "the values",
                _ => continue,
            };
            if rest.peek().is_some() {
                let of = role.subject.take();
                role.subject =
                    Some(of.map_or_else(|| part.to_owned(), |of| format!("{part} of {of}")));
            }
        }
        role
    }

    /// Whether a difference here can change which values are accepted.
    pub(super) fn affects_values(&self, formats: FormatMode) -> bool {
        let keyword = self.keyword.as_str();
        self.holds_schema
            || ASSERTIONS.contains(&keyword)
            || APPLICATORS.contains(&keyword)
            || (formats == FormatMode::Assert && keyword == "format")
            || keyword.is_empty()
    }

    /// Whether the place is the map of definitions, or one whole definition.
    pub(super) fn is_definition(&self) -> bool {
        matches!(self.keyword.as_str(), "$defs" | "definitions")
    }

    pub(super) fn is_property(&self) -> bool {
        self.property.is_some()
    }

    /// Whether the keyword decides about undeclared keys.
    pub(super) fn is_closing(&self) -> bool {
        let keyword = self.keyword.as_str();
        matches!(keyword, "additionalProperties" | "unevaluatedProperties")
    }

    /// One sentence that describes the change.
    pub(super) fn message(
        &self,
        kind: ChangeKind,
        difference: &Difference<'_>,
        rename: Option<&Rename>,
        direction: SchemaDirection,
    ) -> String {
        if let Some(rename) = rename {
            return format!("`{}` was renamed to `{}`", rename.from, rename.to);
        }
        let word = match direction {
            SchemaDirection::Input => "argument",
            SchemaDirection::Output => "field",
        };
        let did = kind.as_str();
        if let Some(property) = &self.property {
            return match &self.subject {
                None => format!("{word} `{property}` was {did}"),
                Some(subject) => format!("`{property}` in {subject} was {did}"),
            };
        }
        let subject = self.subject.as_deref();
        let of = subject.map_or_else(String::new, |subject| format!(" of {subject}"));
        match (self.keyword.as_str(), difference.before, difference.after) {
            ("", ..) => format!("the schema was {did}"),
            ("required", before, after) => required(before, after, subject),
            ("enum", Some(Value::Array(before)), Some(Value::Array(after))) => {
                values(before, after, subject)
            }
            ("type", Some(before), Some(after)) => {
                format!("`type`{of} was changed from {before} to {after}")
            }
            ("additionalProperties", before, after) if is_switched(before, after) => {
                let verb = if after == Some(&Value::Bool(false)) {
                    "rejected"
                } else {
                    "accepted"
                };
                format!("keys{of} that are not declared are {verb} now")
            }
            (keyword, ..) if subject.is_none() => format!("`{keyword}` of the schema was {did}"),
            (keyword, ..) => format!("`{keyword}`{of} was {did}"),
        }
    }
}

/// Whether `additionalProperties` changed between true and false; absent means true.
fn is_switched(before: Option<&Value>, after: Option<&Value>) -> bool {
    let reads = |value: Option<&Value>| value.map_or(Some(true), Value::as_bool);
    matches!((reads(before), reads(after)), (Some(was), Some(is)) if was != is)
}

fn required(before: Option<&Value>, after: Option<&Value>, subject: Option<&str>) -> String {
    let names = |value: Option<&Value>| -> Vec<String> {
        let names = value.and_then(Value::as_array).into_iter().flatten();
        let names = names.filter_map(Value::as_str);
        names.map(|name| format!("`{name}`")).collect()
    };
    let (before, after) = (names(before), names(after));
    let within = subject.map_or_else(String::new, |subject| format!(" in {subject}"));
    match (missing(&after, &before), missing(&before, &after)) {
        (Some(more), None) => format!("required now{within}: {more}"),
        (None, Some(less)) => format!("no longer required{within}: {less}"),
        (Some(more), Some(less)) => format!("required now{within}: {more}; no longer: {less}"),
        (None, None) if before.len() == after.len() => {
            format!("required{within} in another order")
        }
        (None, None) => format!("the same names are required{within}"),
    }
}

fn values(before: &[Value], after: &[Value], subject: Option<&str>) -> String {
    let texts = |values: &[Value]| -> Vec<String> { values.iter().map(Value::to_string).collect() };
    let (before, after) = (texts(before), texts(after));
    let subject = subject.unwrap_or("the schema");
    match (missing(&after, &before), missing(&before, &after)) {
        (Some(more), None) => format!("values added to {subject}: {more}"),
        (None, Some(less)) => format!("values removed from {subject}: {less}"),
        (Some(more), Some(less)) => format!("values added to {subject}: {more}; removed: {less}"),
        (None, None) if before.len() == after.len() => {
            format!("values of {subject} in another order")
        }
        (None, None) => format!("the same values of {subject}, more or less often"),
    }
}

/// The values of the first list that the second lacks, formatted for a message.
fn missing(from: &[String], without: &[String]) -> Option<String> {
    let without: BTreeSet<&String> = without.iter().collect();
    let missing: Vec<&str> = from
        .iter()
        .filter(|it| !without.contains(it))
        .map(String::as_str)
        .collect();
    let more = missing.len().saturating_sub(MAX_LISTED);
    let mut text = missing
        .iter()
        .take(MAX_LISTED)
        .copied()
        .collect::<Vec<_>>()
        .join(", ");
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    (!missing.is_empty()).then_some(text)
}

/// Whether a difference adds the keyword that copies an argument into a header.
pub(super) fn adds_header(difference: &Difference<'_>) -> bool {
    fn inside(value: &Value) -> bool {
        match value {
            Value::Object(members) => members
                .iter()
                .any(|(key, member)| key == "x-mcp-header" || inside(member)),
            Value::Array(items) => items.iter().any(inside),
            _ => false,
        }
    }
    let named = difference.pointer.segments().any(|it| it == "x-mcp-header");
    let after = difference.after.is_some_and(|after| named || inside(after));
    let before = difference
        .before
        .is_some_and(|before| named || inside(before));
    after && (!before || named)
}

/// Whether two lists hold the same values.
pub(super) fn is_reordering(difference: &Difference<'_>) -> bool {
    let (Some(Value::Array(before)), Some(Value::Array(after))) =
        (difference.before, difference.after)
    else {
        return false;
    };
    let sorted = |values: &[Value]| {
        let mut texts: Vec<String> = values.iter().map(to_canonical_string).collect();
        texts.sort_unstable();
        texts
    };
    before.len() == after.len() && sorted(before) == sorted(after)
}
