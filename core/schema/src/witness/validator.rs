use std::fmt;

use jsonschema::Validator;
use serde_json::Value;
use toolwarden_model::json::Pointer;

use crate::policy::Formats;
use crate::prepare::Draft;

/// The most reasons to reject one value that are looked at.
const MAX_ERRORS: usize = 32;

/// A schema as the validator reads it, in its own draft.
pub(crate) struct Schema(Validator);

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Schema")
    }
}

/// Why the validator rejects a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rejection {
    pub(crate) keyword: String,
    pub(crate) schema_pointer: Pointer,
    pub(crate) value_pointer: Pointer,
    pub(crate) message: String,
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

impl Schema {
    pub(crate) fn new(schema: &Value, draft: Draft, formats: Formats) -> Result<Self, String> {
        jsonschema::options()
            .with_draft(draft.for_validator())
            .offline()
            .should_validate_formats(formats == Formats::Assert)
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
