use std::fmt;

use serde_json::Value;

/// A call that an agent made.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedCall {
    /// The tool, if the record names it.
    pub tool: Option<String>,
    /// The arguments.
    pub arguments: Value,
}

/// The error for a record that is not a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidCall;

impl fmt::Display for InvalidCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no arguments: expected `{\"tool\": …, \"arguments\": {…}}`, an MCP `tools/call` request or a provider's tool call")
    }
}

impl std::error::Error for InvalidCall {}

impl RecordedCall {
    /// Reads a call from the formats that logs use: Toolwarden's own, an MCP request, or a provider's
    /// tool call.
    ///
    /// # Errors
    /// Fails if the record has no arguments.
    pub fn read(record: &Value) -> Result<Self, InvalidCall> {
        let holders = ["params", "function", "functionCall", "toolUse"];
        let inner = holders.iter().find_map(|key| record.get(key));
        let call = inner.filter(|inner| inner.is_object()).unwrap_or(record);
        let named = ["tool", "name", "tool_name"];
        let name = named.iter().find_map(|key| call.get(key)?.as_str());
        let held = ["arguments", "args", "input"];
        let arguments = held.iter().find_map(|key| call.get(key));
        let arguments = match arguments {
            // OpenAI writes the arguments as JSON in a string.
            Some(Value::String(text)) => serde_json::from_str(text).map_err(|_| InvalidCall)?,
            Some(arguments @ Value::Object(_)) => arguments.clone(),
            _ => return Err(InvalidCall),
        };
        Ok(Self {
            tool: name.map(ToOwned::to_owned),
            arguments,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_shape_is_read() {
        let expected = RecordedCall {
            tool: Some("f".to_owned()),
            arguments: json!({"a": 1}),
        };
        for record in [
            json!({"tool": "f", "arguments": {"a": 1}}),
            json!({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "f", "arguments": {"a": 1}}}),
            json!({"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}}),
            json!({"type": "tool_use", "name": "f", "input": {"a": 1}}),
            json!({"functionCall": {"name": "f", "args": {"a": 1}}}),
        ] {
            assert_eq!(RecordedCall::read(&record), Ok(expected.clone()));
        }
        assert_eq!(RecordedCall::read(&json!({"a": 1})), Err(InvalidCall));
        assert_eq!(RecordedCall::read(&json!([])), Err(InvalidCall));
    }
}
