//! Holds arguments and results to a schema that was compiled once.

use std::fmt;

use jsonschema::PatternOptions;
use serde_json::Value;
use toolwarden_model::json::{MAX_DEPTH, Pointer};

use crate::decision::Fault;

/// The most faults of one value that are told.
const MAX_FAULTS: usize = 32;

/// The most memory one compiled pattern may take, so that nested repeats cannot exhaust it.
const PATTERN_BYTES: usize = 1 << 20;

/// What values have to satisfy.
pub(crate) enum Check {
    /// Nothing.
    Nothing,
    /// A schema.
    Schema(jsonschema::Validator),
    /// A document that is no usable schema: no value passes.
    Broken(BrokenSchema),
}

/// Why a document cannot be used as a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BrokenSchema {
    /// Whether the document is no schema at all, or one that leads nowhere.
    pub(crate) kind: BrokenKind,
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
            Self::Schema(_) => f.write_str("Schema"),
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
    /// Compiles a schema in the draft it names, 2020-12 where it names none. Nothing is fetched,
    /// formats inform, and patterns match in linear time.
    pub(crate) fn new(schema: &Value) -> Self {
        if schema.as_object().is_some_and(serde_json::Map::is_empty) || schema == &Value::Bool(true)
        {
            return Self::Nothing;
        }
        if let Err(error) = jsonschema::meta::validate(schema) {
            return Self::Broken(BrokenSchema {
                kind: BrokenKind::Invalid,
                message: error.to_string(),
            });
        }
        let built = jsonschema::options()
            .offline()
            .should_validate_formats(false)
            .with_pattern_options(PatternOptions::regex().size_limit(PATTERN_BYTES))
            .build(schema);
        match built {
            Ok(validator) => Self::Schema(validator),
            Err(error) => Self::Broken(BrokenSchema {
                kind: BrokenKind::Unusable,
                message: error.to_string(),
            }),
        }
    }

    /// What is wrong with a value, the fault nearest to its root first.
    pub(crate) fn faults(&self, value: &Value) -> Vec<Fault> {
        if !shallow(value, MAX_DEPTH) {
            let message = format!("nesting deeper than {MAX_DEPTH} levels");
            return vec![Fault {
                pointer: Pointer::root(),
                masked: message.clone(),
                message,
            }];
        }
        let Self::Schema(validator) = self else {
            return Vec::new();
        };
        if validator.is_valid(value) {
            return Vec::new();
        }
        let errors = validator.iter_errors(value).take(MAX_FAULTS);
        let mut faults: Vec<Fault> = errors
            .map(|error| Fault {
                pointer: Pointer::from(error.instance_path().as_str()),
                message: error.to_string(),
                masked: error.masked().to_string(),
            })
            .collect();
        faults.sort_by_key(|fault| fault.pointer.segments().count());
        if faults.is_empty() {
            // The validator rejects the value and does not say why: it stays rejected.
            let message = "the value does not satisfy the schema".to_owned();
            faults.push(Fault {
                pointer: Pointer::root(),
                masked: message.clone(),
                message,
            });
        }
        faults
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
