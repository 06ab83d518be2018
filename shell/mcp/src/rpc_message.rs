//! JSON-RPC messages whose payloads stay text.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::batch::{self, BatchError};

/// One JSON-RPC message as received.
#[derive(Debug, Clone)]
pub enum RpcMessage {
    /// A request from the server to the client.
    Request {
        /// The id, as JSON text.
        id: Box<RawValue>,
        /// The method.
        method: String,
        /// The parameters, byte for byte.
        params: Option<Box<RawValue>>,
    },
    /// The response to a request of the client.
    Response {
        /// The id, as JSON text; `null` if the server could not read the request.
        id: Box<RawValue>,
        /// The result, byte for byte, or the error.
        outcome: Result<Box<RawValue>, RpcError>,
    },
    /// A message that expects no response.
    Notification {
        /// The method.
        method: String,
        /// The parameters, byte for byte.
        params: Option<Box<RawValue>>,
    },
}

/// A JSON-RPC error object.
#[derive(Debug, Clone, Deserialize)]
pub struct RpcError {
    /// The code.
    pub code: i64,
    /// The text.
    #[serde(default)]
    pub message: String,
    /// Additional data from the server, byte for byte.
    #[serde(default, deserialize_with = "present")]
    pub data: Option<Box<RawValue>>,
}

impl RpcError {
    /// An error without data.
    #[must_use]
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }
}

/// Why a text is not a JSON-RPC message.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidMessage {
    /// Not JSON, or a known member has the wrong type.
    #[error("it is not a JSON-RPC message: {0}")]
    Json(#[from] serde_json::Error),
    /// Neither a method nor a result nor an error.
    #[error("it has neither method nor result nor error")]
    Empty,
    /// Both a result and an error.
    #[error("it has both a result and an error")]
    Ambiguous,
    /// A batch with more messages than the limit.
    #[error("the batch has more than {most} messages; send fewer at a time")]
    TooMany {
        /// The limit.
        most: usize,
    },
}

/// The maximum number of messages in a server's batch.
const MAX_BATCH_MESSAGES: usize = 10_000;

impl RpcMessage {
    /// Reads one message, or all messages of a batch (which 2025-03-26 allows).
    pub fn parse_all(text: &[u8]) -> Result<Vec<Self>, InvalidMessage> {
        Self::parse_at_most(text, MAX_BATCH_MESSAGES)
    }

    /// Like [`Self::parse_all`], for batches of at most `most` messages.
    pub fn parse_at_most(text: &[u8], most: usize) -> Result<Vec<Self>, InvalidMessage> {
        if text.trim_ascii_start().first() != Some(&b'[') {
            return Ok(vec![Self::parse(text)?]);
        }
        let messages = batch::split(text, most).map_err(|error| match error {
            BatchError::Json(error) => InvalidMessage::Json(error),
            BatchError::TooMany => InvalidMessage::TooMany { most },
        })?;
        messages
            .into_iter()
            .map(|message| Self::parse(message.get().as_bytes()))
            .collect()
    }

    fn parse(text: &[u8]) -> Result<Self, InvalidMessage> {
        let wire: MessageFields = serde_json::from_slice(text)?;
        let MessageFields {
            id,
            method,
            params,
            result,
            error,
        } = wire;
        match (method, result, error) {
            (Some(method), None, None) => Ok(match id.filter(|id| id.get() != "null") {
                Some(id) => Self::Request { id, method, params },
                None => Self::Notification { method, params },
            }),
            (None, Some(result), None) => Ok(Self::Response {
                id: id.unwrap_or_else(null),
                outcome: Ok(result),
            }),
            (None, None, Some(error)) => Ok(Self::Response {
                id: id.unwrap_or_else(null),
                outcome: Err(error),
            }),
            // Servers that follow JSON-RPC 1.0 write both and set one to null.
            (None, Some(result), Some(error)) if result.get() == "null" => Ok(Self::Response {
                id: id.unwrap_or_else(null),
                outcome: Err(error),
            }),
            (None, None, None) => Err(InvalidMessage::Empty),
            (_, _, _) => Err(InvalidMessage::Ambiguous),
        }
    }
}

/// The members of a message that have a meaning; other members are ignored.
#[derive(Deserialize)]
struct MessageFields {
    #[serde(default, deserialize_with = "present")]
    id: Option<Box<RawValue>>,
    method: Option<String>,
    #[serde(default, deserialize_with = "present")]
    params: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "present")]
    result: Option<Box<RawValue>>,
    error: Option<RpcError>,
}

/// Reads a present member, including `null`, which `Option` alone would read as absent.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

fn null() -> Box<RawValue> {
    RawValue::NULL.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> RpcMessage {
        RpcMessage::parse_all(text.as_bytes()).unwrap().remove(0)
    }

    #[test]
    fn results_keep_their_text() {
        let result = r#"{ "b":1.0e0,"a" : [1.00, 12345678901234567890123],"x-Y":null}"#;
        let message = one(&format!(r#"{{"jsonrpc":"2.0","id":7,"result":{result}}}"#));
        let RpcMessage::Response {
            id,
            outcome: Ok(kept),
        } = message
        else {
            panic!("{message:?}");
        };
        assert_eq!((id.get(), kept.get()), ("7", result));
    }

    #[test]
    fn null_results_are_results() {
        assert!(matches!(
            one(r#"{"id":1,"result":null}"#),
            RpcMessage::Response { outcome: Ok(result), .. } if result.get() == "null"
        ));
    }

    #[test]
    fn json_rpc_1_responses_are_parsed() {
        assert!(matches!(
            one(r#"{"id":1,"result":{},"error":null}"#),
            RpcMessage::Response { outcome: Ok(_), .. }
        ));
        assert!(matches!(
            one(r#"{"id":1,"result":null,"error":{"code":-1}}"#),
            RpcMessage::Response {
                outcome: Err(_),
                ..
            }
        ));
        assert!(matches!(
            one(r#"{"id":null,"method":"notifications/message"}"#),
            RpcMessage::Notification { .. }
        ));
    }

    #[test]
    fn batches_are_read() {
        let batch = br#" [{"method":"a"},{"id":"x","method":"ping"}]"#;
        assert_eq!(RpcMessage::parse_all(batch).unwrap().len(), 2);
    }

    #[test]
    fn not_messages() {
        let text = |text: &str| {
            RpcMessage::parse_all(text.as_bytes())
                .unwrap_err()
                .to_string()
        };
        assert_eq!(text("{}"), "it has neither method nor result nor error");
        assert_eq!(
            text(r#"{"id":1,"result":1,"error":{"code":1}}"#),
            "it has both a result and an error"
        );
        assert_eq!(
            text("Server ready"),
            "it is not a JSON-RPC message: expected value at line 1 column 1"
        );
    }
}
