//! What the place of a difference is in a schema, and how to speak of it.

use std::collections::BTreeSet;

use serde_json::Value;
use toolwarden_model::json::{Pointer, to_canonical_string};
use toolwarden_model::keywords::{Position, position};
use toolwarden_schema::Formats;

use super::Direction;
use crate::change::Kind;
use crate::difference::Difference;
use crate::rename::Rename;

/// The most values of an enumeration a message lists.
const MAX_LISTED: usize = 5;

/// What the place of a difference is in a schema.
#[derive(Clone, Debug)]
pub(super) struct Role {
    /// The keyword it belongs to; none for the schema as a whole.
    pub(super) keyword: String,
    pub(super) rule: &'static str,
    /// Whether the difference is a whole schema under the keyword, such as a property.
    pub(super) holds_schema: bool,
    /// What the schema around the keyword describes, in words.
    subject: Option<String>,
    /// The property the difference is, where it is one.
    property: Option<String>,
}

/// Keywords that decide about a value by themselves.
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

/// Keywords under which schemas stand.
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

/// Keywords that inform a reader.
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

impl Role {
    /// Walks a pointer by the positions of keywords to what it names.
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
            // What was a property so far is what the keywords inside it describe.
            if let Some(property) = role.property.take() {
                role.subject = Some(format!("`{property}`"));
            }
            role.keyword.clone_from(keyword);
            let known = [ASSERTIONS, APPLICATORS, ANNOTATIONS];
            let found = known.iter().flat_map(|list| list.iter());
            role.rule = found.copied().find(|it| it == keyword).unwrap_or("keyword");
            role.holds_schema = false;
            let is_index = |next: &&&String| next.bytes().all(|byte| byte.is_ascii_digit());
            match position(keyword) {
                None => return role,
                Some(Position::Map | Position::List) => {
                    let Some(inside) = rest.next() else {
                        return role;
                    };
                    if keyword == "properties" {
                        role.property = Some(inside.clone());
                    }
                }
                Some(Position::OneOrList) => {
                    if rest.peek().filter(is_index).is_some() {
                        rest.next();
                    }
                }
                Some(Position::One) => {}
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
    pub(super) fn decides(&self, formats: Formats) -> bool {
        let keyword = self.keyword.as_str();
        self.holds_schema
            || ASSERTIONS.contains(&keyword)
            || APPLICATORS.contains(&keyword)
            || (formats == Formats::Assert && keyword == "format")
            || keyword.is_empty()
    }

    /// Whether the place is where definitions stand, or one of them as a whole.
    pub(super) fn is_definition(&self) -> bool {
        matches!(self.keyword.as_str(), "$defs" | "definitions")
    }

    pub(super) fn is_property(&self) -> bool {
        self.property.is_some()
    }

    /// Whether the keyword says what becomes of keys nobody declared.
    pub(super) fn is_closing(&self) -> bool {
        let keyword = self.keyword.as_str();
        matches!(keyword, "additionalProperties" | "unevaluatedProperties")
    }

    /// What happened, in a sentence.
    pub(super) fn message(
        &self,
        kind: Kind,
        difference: &Difference<'_>,
        rename: Option<&Rename>,
        direction: Direction,
    ) -> String {
        if let Some(rename) = rename {
            return format!("`{}` was renamed to `{}`", rename.from, rename.to);
        }
        let word = match direction {
            Direction::Input => "argument",
            Direction::Output => "field",
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

/// Whether `additionalProperties` turned from yes to no, or back; to say nothing is to say yes.
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
        (None, None) => format!("required{within} in another order"),
    }
}

fn values(before: &[Value], after: &[Value], subject: Option<&str>) -> String {
    let texts = |values: &[Value]| -> Vec<String> { values.iter().map(Value::to_string).collect() };
    let (before, after) = (texts(before), texts(after));
    let subject = subject.unwrap_or("the schema");
    match (missing(&after, &before), missing(&before, &after)) {
        (Some(more), None) => format!("values added to {subject}: {more}"),
        (None, Some(less)) => format!("values gone from {subject}: {less}"),
        (Some(more), Some(less)) => format!("values added to {subject}: {more}; gone: {less}"),
        (None, None) => format!("values of {subject} in another order"),
    }
}

/// What is in the first list and not in the second, as a list to read.
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

/// Whether a difference brings in the keyword that copies an argument into a header.
pub(super) fn brings_header(difference: &Difference<'_>) -> bool {
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
