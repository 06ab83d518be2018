//! Validates arguments and results against a schema that was compiled once.

mod declared_keys;
mod strict;
mod validation_cost;

use std::fmt;

use jsonschema::PatternOptions;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;
use toolwarden_model::json::{MAX_DEPTH, Pointer};

use crate::decision::ValueFault;
use declared_keys::DeclaredKeys;
use validation_cost::{UnresolvableReferences, ValidationCost};

pub(crate) use declared_keys::case_variants_of;
pub(crate) use strict::{check_tool_name, deny_faults, is_well_formed};

/// The maximum number of faults that are reported for one value.
const MAX_FAULTS: usize = 32;

/// The maximum memory of one compiled pattern, so that nested repeats cannot exhaust it.
const PATTERN_BYTES: usize = 16 << 20;

/// The maximum length of a reported message; messages quote values.
const MAX_MESSAGE: usize = 300;

/// The maximum number of numbers beyond a double in one value: comparing them is arithmetic on long
/// integers.
const MAX_LONG_NUMBERS: usize = 64;

/// The validation that values must pass.
pub(crate) enum SchemaCheck {
    /// No validation.
    Nothing,
    /// Validation against a schema.
    Schema {
        validator: jsonschema::Validator,
        /// The work estimate, if the work could grow faster than the value.
        effort: Option<Box<ValidationCost>>,
        /// The keys it declares.
        keys: Option<Box<DeclaredKeys>>,
    },
    /// A document that cannot be used as a schema: every value is rejected.
    Broken(BrokenSchema),
}

/// Why a document cannot be used as a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BrokenSchema {
    /// Whether the document is not a schema at all, or a schema with a reference that cannot be resolved.
    pub(crate) kind: BrokenSchemaKind,
    /// Where in the document.
    pub(crate) pointer: Pointer,
    /// The validator's message.
    pub(crate) message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BrokenSchemaKind {
    Invalid,
    Unusable,
}

impl fmt::Debug for SchemaCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("Nothing"),
            Self::Schema { .. } => f.write_str("Schema"),
            Self::Broken(broken) => write!(f, "Broken({})", broken.message),
        }
    }
}

impl fmt::Display for BrokenSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            BrokenSchemaKind::Invalid => "invalid connector schema definition",
            BrokenSchemaKind::Unusable => "schema validation error",
        };
        write!(f, "{kind}: {}", self.message)
    }
}

impl SchemaCheck {
    /// Compiles a schema in the draft it names, and in 2020-12 if it names no known draft. Nothing is
    /// fetched, `format` is an annotation only, and patterns match in linear time.
    pub(crate) fn new(schema: &Value) -> Self {
        if schema.as_object().is_some_and(serde_json::Map::is_empty) || schema == &Value::Bool(true)
        {
            return Self::Nothing;
        }
        let broken = |kind, error: &jsonschema::ValidationError<'_>| {
            let is_pattern =
                matches!(error.kind(), ValidationErrorKind::Format { format } if format == "regex");
            let message = if is_pattern {
                format!(
                    "{} cannot be matched in linear time within {} MiB; \
                     look-around, back-references and very large repeats cannot",
                    error.instance(),
                    PATTERN_BYTES >> 20
                )
            } else if let ValidationErrorKind::Referencing(cause) = error.kind() {
                // The validator's message mentions one of its own settings.
                let cause = cause.to_string();
                let what = cause.split(" and retrieving it failed").next();
                format!("{}; nothing is fetched", what.unwrap_or_default())
            } else {
                error.to_string()
            };
            Self::Broken(BrokenSchema {
                kind,
                pointer: Pointer::from(error.instance_path().as_str()),
                message: shortened(message),
            })
        };
        let draft = match jsonschema::Draft::default().detect(schema) {
            jsonschema::Draft::Unknown => jsonschema::Draft::default(),
            known => known,
        };
        if let Err(error) = jsonschema::meta::options().validate(schema) {
            return broken(BrokenSchemaKind::Invalid, &error);
        }
        let built = jsonschema::options()
            .with_draft(draft)
            .offline()
            .should_validate_formats(false)
            .with_pattern_options(PatternOptions::regex().size_limit(PATTERN_BYTES))
            .build(schema);
        let validator = match built {
            Ok(validator) => validator,
            Err(error) => return broken(BrokenSchemaKind::Unusable, &error),
        };
        let unusable = |message: &str| {
            Self::Broken(BrokenSchema {
                kind: BrokenSchemaKind::Unusable,
                pointer: Pointer::root(),
                message: message.to_owned(),
            })
        };
        match ValidationCost::of(schema) {
            Err(UnresolvableReferences) => {
                unusable("its references cannot be followed ahead of a value")
            }
            Ok(Some(effort)) if !effort.is_affordable() => {
                unusable("its parts refer to each other too often to be followed")
            }
            Ok(effort) => Self::Schema {
                validator,
                effort: effort.map(Box::new),
                keys: DeclaredKeys::of(schema).map(Box::new),
            },
        }
    }

    /// The faults of a value, those nearest to its root first.
    pub(crate) fn faults(&self, value: &Value) -> Vec<ValueFault> {
        if !is_shallow(value, MAX_DEPTH) {
            return vec![ValueFault::for_whole_value(format!(
                "nesting deeper than {MAX_DEPTH} levels"
            ))];
        }
        let Self::Schema {
            validator, effort, ..
        } = self
        else {
            return Vec::new();
        };
        if long_numbers(value) > MAX_LONG_NUMBERS {
            let message = "too many numbers beyond the range of a double";
            return vec![ValueFault::for_whole_value(message.to_owned())];
        }
        if effort.as_ref().is_some_and(|it| !it.allows(value)) {
            let message = "nested too deeply for a schema that branches at every level";
            return vec![ValueFault::for_whole_value(message.to_owned())];
        }
        if validator.is_valid(value) {
            return Vec::new();
        }
        if effort.as_ref().is_some_and(|it| !it.can_explain(value)) {
            let message = "the value does not satisfy the schema, and is too large to say where";
            return vec![ValueFault::for_whole_value(message.to_owned())];
        }
        let errors = validator.iter_errors(value).take(MAX_FAULTS);
        let mut faults: Vec<ValueFault> = errors
            .map(|error| ValueFault {
                pointer: Pointer::from(error.instance_path().as_str()),
                message: shortened(error.to_string()),
                masked: shortened(error.masked().to_string()),
            })
            .collect();
        faults.sort_by_key(|fault| fault.pointer.segments().count());
        if faults.is_empty() {
            // The validator rejects the value without a reason: it stays rejected.
            let message = "the value does not satisfy the schema".to_owned();
            faults.push(ValueFault::for_whole_value(message));
        }
        faults
    }
}

fn shortened(mut text: String) -> String {
    if let Some((cut, _)) = text.char_indices().nth(MAX_MESSAGE) {
        text.truncate(cut);
        text.push('…');
    }
    text
}

/// How many numbers a double cannot represent exactly, or have very many digits.
fn long_numbers(value: &Value) -> usize {
    match value {
        Value::Number(number) => {
            let text = number.as_str();
            let finite = || text.parse::<f64>().is_ok_and(f64::is_finite);
            usize::from(text.len() > 24 || (text.contains(['e', 'E']) && !finite()))
        }
        Value::Array(items) => items.iter().map(long_numbers).sum(),
        Value::Object(members) => members.values().map(long_numbers).sum(),
        Value::Null | Value::Bool(_) | Value::String(_) => 0,
    }
}

/// Whether a value nests no deeper than this number of levels.
pub(crate) fn is_shallow(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels > 0 && items.iter().all(|item| is_shallow(item, levels - 1)),
        Value::Object(members) => {
            levels > 0 && members.values().all(|item| is_shallow(item, levels - 1))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolwarden_testkit::schemas;

    #[test]
    fn every_published_schema_can_be_used() {
        let Some(schemas) = schemas() else {
            return;
        };
        assert!(schemas.len() > 1_000);
        let mut looks_around = 0;
        for (origin, schema) in &schemas {
            let options = || jsonschema::options().offline();
            let linear = PatternOptions::regex().size_limit(PATTERN_BYTES);
            let linear = options().with_pattern_options(linear).build(schema).is_ok();
            let usable = !matches!(SchemaCheck::new(schema), SchemaCheck::Broken(_));
            assert_eq!(usable, linear, "{origin}: {schema}");
            looks_around += usize::from(!linear && options().build(schema).is_ok());
        }
        // Patterns with look-around, such as one library's for e-mail addresses, are rejected.
        assert!(looks_around * 200 < schemas.len(), "{looks_around}");
    }
}
