//! Holds arguments and results to a schema that was compiled once.

mod declared_keys;
mod effort;
mod strict;

use std::fmt;

use jsonschema::PatternOptions;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;
use toolwarden_model::json::{MAX_DEPTH, Pointer};

use crate::decision::Fault;
use declared_keys::DeclaredKeys;
use effort::{Effort, Unfollowable};

pub(crate) use declared_keys::passing_for;
pub(crate) use strict::{is_well_formed, refused, well_formed};

/// The most faults of one value that are told.
const MAX_FAULTS: usize = 32;

/// The most memory one compiled pattern may take, so that nested repeats cannot exhaust it.
const PATTERN_BYTES: usize = 16 << 20;

/// The longest message that is told; messages quote values.
const MAX_MESSAGE: usize = 300;

/// The most numbers beyond the usual ones in one value: comparing such is arithmetic on long integers.
const MAX_LONG_NUMBERS: usize = 64;

/// What values have to satisfy.
pub(crate) enum Check {
    /// Nothing.
    Nothing,
    /// A schema.
    Schema {
        validator: jsonschema::Validator,
        /// What has to be watched, where the work could grow faster than the value.
        effort: Option<Box<Effort>>,
        /// The keys it declares.
        keys: Option<Box<DeclaredKeys>>,
    },
    /// A document that is no usable schema: no value passes.
    Broken(BrokenSchema),
}

/// Why a document cannot be used as a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BrokenSchema {
    /// Whether the document is no schema at all, or one that leads nowhere.
    pub(crate) kind: BrokenKind,
    /// Where in the document.
    pub(crate) pointer: Pointer,
    /// The validator's words.
    pub(crate) message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BrokenKind {
    Invalid,
    Unusable,
}

impl fmt::Debug for Check {
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
            BrokenKind::Invalid => "invalid connector schema definition",
            BrokenKind::Unusable => "schema validation error",
        };
        write!(f, "{kind}: {}", self.message)
    }
}

impl Check {
    /// Compiles a schema in the draft it names, 2020-12 where it names none that is known. Nothing is
    /// fetched, formats inform, and patterns match in linear time.
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
                // The validator's own words name a setting of its own.
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
            return broken(BrokenKind::Invalid, &error);
        }
        let built = jsonschema::options()
            .with_draft(draft)
            .offline()
            .should_validate_formats(false)
            .with_pattern_options(PatternOptions::regex().size_limit(PATTERN_BYTES))
            .build(schema);
        let validator = match built {
            Ok(validator) => validator,
            Err(error) => return broken(BrokenKind::Unusable, &error),
        };
        let unusable = |message: &str| {
            Self::Broken(BrokenSchema {
                kind: BrokenKind::Unusable,
                pointer: Pointer::root(),
                message: message.to_owned(),
            })
        };
        match Effort::of(schema) {
            Err(Unfollowable) => unusable("its references cannot be followed ahead of a value"),
            Ok(Some(effort)) if !effort.is_bearable() => {
                unusable("its parts refer to each other too often to be followed")
            }
            Ok(effort) => Self::Schema {
                validator,
                effort: effort.map(Box::new),
                keys: DeclaredKeys::of(schema).map(Box::new),
            },
        }
    }

    /// What is wrong with a value, the fault nearest to its root first.
    pub(crate) fn faults(&self, value: &Value) -> Vec<Fault> {
        if !shallow(value, MAX_DEPTH) {
            return vec![Fault::of_whole(format!(
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
            return vec![Fault::of_whole(message.to_owned())];
        }
        if effort.as_ref().is_some_and(|it| !it.allows(value)) {
            let message = "nested too deeply for a schema that branches at every level";
            return vec![Fault::of_whole(message.to_owned())];
        }
        if validator.is_valid(value) {
            return Vec::new();
        }
        if effort.as_ref().is_some_and(|it| !it.can_be_told(value)) {
            let message = "the value does not satisfy the schema, and is too large to say where";
            return vec![Fault::of_whole(message.to_owned())];
        }
        let errors = validator.iter_errors(value).take(MAX_FAULTS);
        let mut faults: Vec<Fault> = errors
            .map(|error| Fault {
                pointer: Pointer::from(error.instance_path().as_str()),
                message: shortened(error.to_string()),
                masked: shortened(error.masked().to_string()),
            })
            .collect();
        faults.sort_by_key(|fault| fault.pointer.segments().count());
        if faults.is_empty() {
            // The validator rejects the value and does not say why: it stays rejected.
            let message = "the value does not satisfy the schema".to_owned();
            faults.push(Fault::of_whole(message));
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

/// How many numbers no double stands for, or that are written at great length.
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

/// Whether a value nests no deeper than so many levels.
pub(crate) fn shallow(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels > 0 && items.iter().all(|item| shallow(item, levels - 1)),
        Value::Object(members) => {
            levels > 0 && members.values().all(|item| shallow(item, levels - 1))
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
            let usable = !matches!(Check::new(schema), Check::Broken(_));
            assert_eq!(usable, linear, "{origin}: {schema}");
            looks_around += usize::from(!linear && options().build(schema).is_ok());
        }
        // Patterns that look around, such as a library's for e-mail addresses, are refused.
        assert!(looks_around * 200 < schemas.len(), "{looks_around}");
    }
}
