use crate::SharedText;
use crate::json::{JsonError, Parsed, Value, parse};

/// The published JSON that describes a tool, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition(SharedText);

impl Definition {
    /// Parses a definition and keeps its text.
    ///
    /// # Errors
    /// Says where and why the text is not JSON.
    pub fn parse(text: &str) -> Result<(Self, Parsed), JsonError> {
        let parsed = parse(text)?;
        Ok((Self(text.into()), parsed))
    }

    /// Reads a definition and shares its text.
    ///
    /// # Errors
    /// Says where and why the text is not JSON.
    pub fn parse_shared(text: SharedText) -> Result<(Self, Parsed), JsonError> {
        let parsed = parse(&text)?;
        Ok((Self(text), parsed))
    }

    /// The text as received.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The text, shared with this definition.
    #[must_use]
    pub fn shared(&self) -> SharedText {
        self.0.clone()
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
