use std::sync::Arc;

use crate::json::{JsonError, Parsed, Value, parse};

/// The JSON somebody published to describe a tool, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition(Arc<str>);

impl Definition {
    /// Reads a definition and keeps its text.
    ///
    /// # Errors
    /// Says where and why the text is not JSON.
    pub fn parse(text: &str) -> Result<(Self, Parsed), JsonError> {
        let parsed = parse(text)?;
        Ok((Self(text.into()), parsed))
    }

    /// The text as received.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The text, shared with this definition.
    #[must_use]
    pub fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }

    /// The text as a value.
    #[must_use]
    pub fn value(&self) -> Value {
        // INVARIANT: the text was parsed, or written by the serializer, when this was built.
        parse(&self.0).map_or(Value::Null, |parsed| parsed.value)
    }
}

impl From<&Value> for Definition {
    fn from(value: &Value) -> Self {
        Self(value.to_string().into())
    }
}
