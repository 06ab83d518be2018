use std::fmt;

use jsonschema::Validator;
use serde_json::Value;
use toolwarden_model::json::Pointer;

use crate::policy::Formats;
use crate::prepare::Draft;

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
        let error = self.0.validate(value).err()?;
        Some(Rejection {
            keyword: error.kind().keyword().to_owned(),
            schema_pointer: Pointer::from(error.schema_path().as_str()),
            value_pointer: Pointer::from(error.instance_path().as_str()),
            message: error.to_string(),
        })
    }
}
