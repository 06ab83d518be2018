use std::fmt;

use serde_json::Value;
use toolwarden_model::json::Pointer;

use crate::comparison_policy::FormatMode;
use crate::prepare::{Draft, validator_draft};

/// The most rejections of one value that are examined.
const MAX_ERRORS: usize = 32;

/// A schema as the validator reads it, in its own draft.
pub(crate) struct CompiledSchema(jsonschema::Validator);

impl fmt::Debug for CompiledSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Schema")
    }
}

/// Why the validator rejects a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The keyword that rejects it.
    pub keyword: String,
    /// The place of that keyword in the schema.
    pub schema_pointer: Pointer,
    /// The part of the value that is rejected.
    pub value_pointer: Pointer,
    /// The validator's message; it may quote the value.
    pub message: String,
}

/// Validates values against a schema, as received and in its own draft. Formats are annotations.
#[derive(Debug)]
pub struct Validator(CompiledSchema);

/// A document that is not a valid schema, with the validator's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct InvalidSchema {
    /// What is wrong with it.
    pub message: String,
}

impl Validator {
    /// Reads a schema. Nothing it refers to is fetched.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn new(schema: &Value) -> Result<Self, InvalidSchema> {
        let read = CompiledSchema::new(schema, Draft::of(schema), FormatMode::Annotate);
        read.map(Self).map_err(|message| InvalidSchema { message })
    }

    /// The first reason to reject a value.
    #[must_use]
    pub fn rejection(&self, value: &Value) -> Option<Rejection> {
        self.0.rejection(value)
    }
}

impl From<jsonschema::ValidationError<'_>> for Rejection {
    fn from(error: jsonschema::ValidationError<'_>) -> Self {
        Self {
            keyword: error.kind().keyword().to_owned(),
            schema_pointer: Pointer::from(error.schema_path().as_str()),
            value_pointer: Pointer::from(error.instance_path().as_str()),
            message: error.to_string(),
        }
    }
}

impl CompiledSchema {
    pub(crate) fn new(schema: &Value, draft: Draft, formats: FormatMode) -> Result<Self, String> {
        jsonschema::options()
            .with_draft(validator_draft(draft))
            .offline()
            .should_validate_formats(formats == FormatMode::Assert)
            .build(schema)
            .map(Self)
            .map_err(|error| error.to_string())
    }

    pub(crate) fn accepts(&self, value: &Value) -> bool {
        self.0.is_valid(value)
    }

    /// The first reason to reject a value.
    pub(crate) fn rejection(&self, value: &Value) -> Option<Rejection> {
        self.0.validate(value).err().map(Rejection::from)
    }

    /// The reason to reject a value whose place is nearest to the given one.
    pub(crate) fn rejection_near(&self, value: &Value, near: &Pointer) -> Option<Rejection> {
        let shared = |rejection: &Rejection| {
            let there = rejection.schema_pointer.as_str().bytes();
            there
                .zip(near.as_str().bytes())
                .take_while(|(a, b)| a == b)
                .count()
        };
        let errors = self.0.iter_errors(value).take(MAX_ERRORS);
        let mut best: Option<Rejection> = None;
        for rejection in errors.map(Rejection::from) {
            if best
                .as_ref()
                .is_none_or(|known| shared(&rejection) > shared(known))
            {
                best = Some(rejection);
            }
        }
        best
    }
}
