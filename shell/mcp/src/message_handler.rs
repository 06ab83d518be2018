//! Receivers for the notifications and requests that a server sends.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::value::RawValue;

use crate::connection_limits::ConnectionLimits;
use crate::error_codes::METHOD_NOT_FOUND;
use crate::message_rate::{MessageRateExceeded, MessageRateLimit};
use crate::pending_requests::RpcOutcome;
use crate::rpc_message::{RpcError, RpcMessage};
use crate::serve::encode;

/// A notification or request from a server.
#[derive(Debug, Clone)]
pub enum ServerMessage {
    /// A message that expects no response.
    Notification {
        /// The method.
        method: String,
        /// The parameters, byte for byte.
        params: Option<Box<RawValue>>,
    },
    /// A message that expects a response, `ping` included.
    Request {
        /// The id, as JSON text.
        id: Box<RawValue>,
        /// The method.
        method: String,
        /// The parameters, byte for byte.
        params: Option<Box<RawValue>>,
    },
}

impl ServerMessage {
    /// The bytes that count against the limit of its connection.
    fn size(&self) -> usize {
        let (Self::Notification { method, params } | Self::Request { method, params, .. }) = self;
        let id = match self {
            Self::Request { id, .. } => id.get().len(),
            Self::Notification { .. } => 0,
        };
        method.len() + id + params.as_ref().map_or(0, |it| it.get().len())
    }
}

/// Receives the notifications and requests of a server; must not block.
pub trait MessageHandler: Send + Sync + fmt::Debug {
    /// Receives one message, in order of arrival.
    fn handle(&self, message: ServerMessage);

    /// The server answers the request as a stream of events (HTTP only).
    fn on_stream_started(&self) {}

    /// The server closed that stream before it answered; it keeps the answer until the stream is
    /// resumed.
    fn on_stream_interrupted(&self) {}
}

/// A message from a server, classified.
#[derive(Debug)]
pub(crate) enum IncomingMessage {
    Response {
        id: Box<RawValue>,
        outcome: RpcOutcome,
    },
    Unsolicited(ServerMessage),
}

impl From<RpcMessage> for IncomingMessage {
    fn from(message: RpcMessage) -> Self {
        match message {
            RpcMessage::Response { id, outcome } => Self::Response { id, outcome },
            RpcMessage::Request { id, method, params } => {
                Self::Unsolicited(ServerMessage::Request { id, method, params })
            }
            RpcMessage::Notification { method, params } => {
                Self::Unsolicited(ServerMessage::Notification { method, params })
            }
        }
    }
}

/// Where a transport delivers messages that are not responses.
#[derive(Debug, Default)]
pub(crate) struct MessageDispatcher {
    handler: Option<Arc<dyn MessageHandler>>,
    is_open: AtomicBool,
    /// How much the server may send; `None` means no limit.
    rate_limit: Option<MessageRateLimit>,
    is_rate_exceeded: AtomicBool,
}

impl MessageDispatcher {
    /// Delivers messages to this audience. Without an audience, the client answers requests itself.
    pub(crate) fn with_handler(audience: Arc<dyn MessageHandler>) -> Self {
        Self {
            handler: Some(audience),
            is_open: AtomicBool::new(false),
            rate_limit: None,
            is_rate_exceeded: AtomicBool::new(false),
        }
    }

    /// Limits the number of messages.
    pub(crate) fn with_limits(mut self, limits: &ConnectionLimits) -> Self {
        self.rate_limit = Some(MessageRateLimit::new(limits));
        self
    }

    /// Whether the server exceeded its message limit.
    pub(crate) fn is_rate_exceeded(&self) -> bool {
        self.is_rate_exceeded.load(Ordering::Acquire)
    }

    /// Counts a message against the limit.
    pub(crate) fn admit(&self, message: &ServerMessage) -> Result<(), MessageRateExceeded> {
        let admitted = self
            .rate_limit
            .as_ref()
            .map_or(Ok(()), |it| it.admit(message.size()));
        if admitted.is_err() {
            self.is_rate_exceeded.store(true, Ordering::Release);
        }
        admitted
    }

    /// Marks the connection open: from now on the audience can answer.
    pub(crate) fn open(&self) {
        self.is_open.store(true, Ordering::Release);
    }

    /// Passes a message on, or returns the answer to send.
    pub(crate) fn dispatch(
        &self,
        message: ServerMessage,
    ) -> Result<Option<String>, MessageRateExceeded> {
        self.admit(&message)?;
        Ok(match (&self.handler, &message) {
            (None, ServerMessage::Request { id, method, .. }) => Some(default_response(id, method)),
            (None, ServerMessage::Notification { .. }) => None,
            // Before the connection is open the audience cannot answer, and the server may wait for
            // this answer.
            (Some(_), ServerMessage::Request { id, method, .. })
                if method == "ping" && !self.is_open.load(Ordering::Acquire) =>
            {
                Some(default_response(id, method))
            }
            (Some(audience), _) => {
                audience.handle(message);
                None
            }
        })
    }
}

/// The response of a client that offers nothing: it answers `ping` and refuses all other methods.
fn default_response(id: &RawValue, method: &str) -> String {
    if method == "ping" {
        return encode::empty_result(id);
    }
    let refusal = RpcError::new(
        METHOD_NOT_FOUND,
        format!("method `{method}` is not offered by this client"),
    );
    encode::response(id, Err(&refusal))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Debug, Default)]
    struct RecordingHandler(Mutex<Vec<String>>);

    impl MessageHandler for RecordingHandler {
        fn handle(&self, message: ServerMessage) {
            let (ServerMessage::Request { method, .. }
            | ServerMessage::Notification { method, .. }) = message;
            self.0.lock().unwrap().push(method);
        }
    }

    fn request(id: &str, method: &str) -> ServerMessage {
        ServerMessage::Request {
            id: RawValue::from_string(id.to_owned()).unwrap(),
            method: method.to_owned(),
            params: None,
        }
    }

    #[test]
    fn requests_without_a_handler_are_answered() {
        let ear = MessageDispatcher::default();
        assert_eq!(
            ear.dispatch(request("1", "ping")).unwrap().unwrap(),
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#
        );
        assert_eq!(
            ear.dispatch(request(r#""a\u0041""#, "roots/list"))
                .unwrap()
                .unwrap(),
            r#"{"jsonrpc":"2.0","id":"a\u0041","error":{"code":-32601,"message":"method `roots/list` is not offered by this client"}}"#
        );
    }

    #[test]
    fn all_parts_of_a_message_count_against_the_limit() {
        let params = RawValue::from_string("[1]".to_owned()).unwrap();
        let request = ServerMessage::Request {
            id: RawValue::from_string("12".to_owned()).unwrap(),
            method: "ping".to_owned(),
            params: Some(params.clone()),
        };
        assert_eq!(request.size(), 9);
        let notification = ServerMessage::Notification {
            method: "ping".to_owned(),
            params: Some(params),
        };
        assert_eq!(notification.size(), 7);
    }

    #[test]
    fn handler_gets_all_but_a_ping_before_opening() {
        let heard = Arc::new(RecordingHandler::default());
        let audience: Arc<dyn MessageHandler> = Arc::<RecordingHandler>::clone(&heard);
        let ear = MessageDispatcher::with_handler(audience);
        assert!(ear.dispatch(request("1", "ping")).unwrap().is_some());
        assert!(ear.dispatch(request("2", "roots/list")).unwrap().is_none());
        ear.open();
        assert!(ear.dispatch(request("3", "ping")).unwrap().is_none());
        assert_eq!(*heard.0.lock().unwrap(), ["roots/list", "ping"]);
    }
}
