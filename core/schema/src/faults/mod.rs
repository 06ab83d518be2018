//! Mistakes in one schema: against its metaschema, in its references, patterns and `required` lists.
//!
//! A comparison stops at the first keyword it cannot read. This module finds every mistake and reports
//! its place and a fix.

mod keyword;
mod recursion;
mod reference;
mod referenced;
mod required;

use serde_json::Value;
use toolwarden_model::json::{Object, Pointer, depth_within, type_name};
use toolwarden_model::keywords::{SubschemaForm, subschema_form};

use crate::prepare::{Draft, Resources};

pub use referenced::schemas_outside_keywords;

/// The most mistakes listed for one schema.
const MAX_FAULTS: usize = 200;

/// A mistake in a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaFault {
    /// What kind of mistake.
    pub rule: SchemaFaultRule,
    /// Where in the schema.
    pub pointer: Pointer,
    /// What is wrong, in words.
    pub message: String,
    /// What to write instead.
    pub fix: String,
}

/// The kind of a mistake in a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SchemaFaultRule {
    /// A keyword has a value that its metaschema does not allow.
    Keyword,
    /// A schema is neither an object nor a boolean.
    NotASchema,
    /// A reference has no target.
    Reference,
    /// A pattern is not a regular expression of ECMA-262.
    Pattern,
    /// `required` names a property that nothing declares.
    Required,
    /// Every value of the schema must contain another value of it, so no finite value satisfies it.
    Endless,
    /// No draft defines the keyword, and it resembles one that a draft defines.
    UnknownKeyword,
}

impl SchemaFaultRule {
    /// The id used in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Keyword => "invalid-keyword",
            Self::NotASchema => "not-a-schema",
            Self::Reference => "dangling-reference",
            Self::Pattern => "invalid-pattern",
            Self::Required => "undeclared-required",
            Self::Endless => "endless-schema",
            Self::UnknownKeyword => "unknown-keyword",
        }
    }

    /// Whether readers refuse the schema, or no call can ever be valid. Other mistakes are allowed but
    /// rarely intended.
    #[must_use]
    pub const fn is_error(self) -> bool {
        !matches!(self, Self::UnknownKeyword)
    }
}

/// Every mistake in a schema, in document order.
///
/// A document that names no draft is read as draft 2020-12, as MCP and providers do.
#[must_use]
pub fn find_faults(schema: &Value) -> Vec<SchemaFault> {
    if !depth_within(schema) {
        let message = "the schema is nested too deeply to be read".to_owned();
        return vec![fault(
            SchemaFaultRule::NotASchema,
            Pointer::root(),
            message,
            "nest less deeply",
        )];
    }
    let draft = match schema.get("$schema") {
        Some(_) => Draft::of(schema),
        None => Draft::Draft2020,
    };
    let resources = Resources::of(schema, draft);
    let mut walk = Walk {
        draft,
        resources,
        faults: Vec::new(),
    };
    // References lead to schemas that no keyword holds, too: `#/components/schemas/X`.
    let outside = referenced::outside_keywords(schema, &walk.resources);
    let roots = std::iter::once((Pointer::root(), schema)).chain(outside);
    let roots: Vec<(Pointer, &Value)> = roots.collect();
    for (at, schema) in &roots {
        walk.schema(schema, at.clone());
    }
    required::check(&roots, &walk.resources, &mut walk.faults);
    for (at, schema) in &roots {
        keyword::check_metaschema(at, schema, draft, &mut walk.faults);
    }
    recursion::check(schema, &walk.resources, &mut walk.faults);
    walk.faults.truncate(MAX_FAULTS);
    walk.faults
}

struct Walk<'s> {
    draft: Draft,
    resources: Resources<'s>,
    faults: Vec<SchemaFault>,
}

impl Walk<'_> {
    fn schema(&mut self, schema: &Value, at: Pointer) {
        let members = match schema {
            Value::Bool(_) => return,
            Value::Object(members) => members,
            other => {
                self.faults.push(not_a_schema(other, at));
                return;
            }
        };
        for (keyword, value) in members {
            if self.faults.len() > MAX_FAULTS {
                return;
            }
            self.keyword(keyword, value, members, &at);
        }
    }

    fn keyword(&mut self, keyword: &str, value: &Value, members: &Object, at: &Pointer) {
        let place = at.child(keyword);
        // Up to draft 7 a reference replaces everything beside it.
        let ignored = self.draft <= Draft::Draft7
            && keyword != "$ref"
            && members.contains_key("$ref")
            && !matches!(keyword, "$defs" | "definitions");
        if ignored {
            return;
        }
        let found = keyword::check_keyword(keyword, value, self.draft, at);
        let wrong = found.is_some();
        self.faults.extend(found);
        if let Some(reference) = value.as_str().filter(|_| is_reference(keyword)) {
            let found = reference::check_reference(reference, keyword, at, &self.resources);
            self.faults.extend(found);
        }
        if wrong {
            return;
        }
        match (subschema_form(keyword), value) {
            (Some(SubschemaForm::Map), Value::Object(map)) => {
                for (name, schema) in map {
                    if keyword == "patternProperties" {
                        let found = keyword::pattern(name, place.child(name));
                        self.faults.extend(found);
                    }
                    // A dependency may be a list of names.
                    if !(keyword == "dependencies" && schema.is_array()) {
                        self.schema(schema, place.child(name));
                    }
                }
            }
            (Some(SubschemaForm::List | SubschemaForm::OneOrList), Value::Array(items)) => {
                for (index, schema) in items.iter().enumerate() {
                    self.schema(schema, place.index(index));
                }
            }
            (Some(SubschemaForm::One | SubschemaForm::OneOrList), schema) => {
                self.schema(schema, place)
            }
            _ => {}
        }
    }
}

fn is_reference(keyword: &str) -> bool {
    matches!(keyword, "$ref" | "$dynamicRef" | "$recursiveRef")
}

fn fault(
    rule: SchemaFaultRule,
    pointer: Pointer,
    message: impl Into<String>,
    fix: impl Into<String>,
) -> SchemaFault {
    SchemaFault {
        rule,
        pointer,
        message: message.into(),
        fix: fix.into(),
    }
}

fn not_a_schema(found: &Value, at: Pointer) -> SchemaFault {
    let message = format!(
        "a schema must be an object or a boolean, not {}",
        type_name(found)
    );
    let fix = match found.as_str().map(keyword::type_for) {
        Some(Some(word)) => format!("write {{\"type\": \"{word}\"}}"),
        _ => "write an object such as {\"type\": \"string\"}".to_owned(),
    };
    fault(SchemaFaultRule::NotASchema, at, message, fix)
}
