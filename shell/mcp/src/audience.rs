//! Who hears what a server sends besides answers.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::value::RawValue;

use crate::codes::METHOD_NOT_FOUND;
use crate::correlate::Outcome;
use crate::flood::{FloodGate, Flooded};
use crate::limits::Limits;
use crate::message::{Message, RpcError};
use crate::serve::answer;

/// What a server sends besides answers.
#[derive(Debug, Clone)]
pub enum FromServer {
    /// A message that wants no answer.
    Notification {
        /// The method.
        method: String,
        /// The parameters, byte for byte.
        params: Option<Box<RawValue>>,
    },
    /// A request that wants one, `ping` included.
    Request {
        /// The id, as JSON text.
        id: Box<RawValue>,
        /// The method.
        method: String,
        /// The parameters, byte for byte.
        params: Option<Box<RawValue>>,
    },
}

/// Hears what a server sends; must not block.
pub trait Audience: Send + Sync + fmt::Debug {
    /// Takes one message, in the order of arrival.
    fn hear(&self, message: FromServer);

    /// The server answers the request as a stream of events (HTTP only).
    fn streamed(&self) {}

    /// The server ended that stream before its answer, which it holds until the stream is resumed.
    fn interrupted(&self) {}
}

/// A message of a server, sorted.
#[derive(Debug)]
pub(crate) enum Received {
    Answer { id: Box<RawValue>, outcome: Outcome },
    Other(FromServer),
}

impl From<Message> for Received {
    fn from(message: Message) -> Self {
        match message {
            Message::Response { id, outcome } => Self::Answer { id, outcome },
            Message::Request { id, method, params } => {
                Self::Other(FromServer::Request { id, method, params })
            }
            Message::Notification { method, params } => {
                Self::Other(FromServer::Notification { method, params })
            }
        }
    }
}

/// What a transport turns to with messages that answer nothing.
#[derive(Debug, Default)]
pub(crate) struct Ear {
    audience: Option<Arc<dyn Audience>>,
    is_open: AtomicBool,
    /// How much may come; none is any amount.
    gate: Option<FloodGate>,
    is_flooded: AtomicBool,
}

impl Ear {
    /// An ear for somebody else; without one, requests are answered here.
    pub(crate) fn of(audience: Arc<dyn Audience>) -> Self {
        Self {
            audience: Some(audience),
            is_open: AtomicBool::new(false),
            gate: None,
            is_flooded: AtomicBool::new(false),
        }
    }

    /// The ear for as many messages as the limits allow.
    pub(crate) fn bounded(mut self, limits: &Limits) -> Self {
        self.gate = Some(FloodGate::new(limits));
        self
    }

    /// Whether the server sent more than it may.
    pub(crate) fn is_flooded(&self) -> bool {
        self.is_flooded.load(Ordering::Acquire)
    }

    /// Counts a message.
    pub(crate) fn admit(&self, message: &FromServer) -> Result<(), Flooded> {
        let admitted = self.gate.as_ref().map_or(Ok(()), |it| it.admit(message));
        if admitted.is_err() {
            self.is_flooded.store(true, Ordering::Release);
        }
        admitted
    }

    /// From now on the audience can answer.
    pub(crate) fn open(&self) {
        self.is_open.store(true, Ordering::Release);
    }

    /// Passes a message on, or returns the answer to send.
    pub(crate) fn hear(&self, message: FromServer) -> Result<Option<String>, Flooded> {
        self.admit(&message)?;
        Ok(match (&self.audience, &message) {
            (None, FromServer::Request { id, method, .. }) => Some(own_answer(id, method)),
            (None, FromServer::Notification { .. }) => None,
            // Before the connection is open nobody can answer, and a server may wait for this.
            (Some(_), FromServer::Request { id, method, .. })
                if method == "ping" && !self.is_open.load(Ordering::Acquire) =>
            {
                Some(own_answer(id, method))
            }
            (Some(audience), _) => {
                audience.hear(message);
                None
            }
        })
    }
}

/// The answer of a client that offers nothing: `ping` works, all else is refused.
fn own_answer(id: &RawValue, method: &str) -> String {
    if method == "ping" {
        return answer::empty_result(id);
    }
    let refusal = RpcError::new(
        METHOD_NOT_FOUND,
        format!("method `{method}` is not offered by this client"),
    );
    answer::outcome(id, Err(&refusal))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Debug, Default)]
    struct Heard(Mutex<Vec<String>>);

    impl Audience for Heard {
        fn hear(&self, message: FromServer) {
            let (FromServer::Request { method, .. } | FromServer::Notification { method, .. }) =
                message;
            self.0.lock().unwrap().push(method);
        }
    }

    fn request(id: &str, method: &str) -> FromServer {
        FromServer::Request {
            id: RawValue::from_string(id.to_owned()).unwrap(),
            method: method.to_owned(),
            params: None,
        }
    }

    #[test]
    fn without_an_audience_requests_are_answered() {
        let ear = Ear::default();
        assert_eq!(
            ear.hear(request("1", "ping")).unwrap().unwrap(),
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#
        );
        assert_eq!(
            ear.hear(request(r#""a\u0041""#, "roots/list"))
                .unwrap()
                .unwrap(),
            r#"{"jsonrpc":"2.0","id":"a\u0041","error":{"code":-32601,"message":"method `roots/list` is not offered by this client"}}"#
        );
    }

    #[test]
    fn an_audience_hears_all_but_a_ping_before_the_opening() {
        let heard = Arc::new(Heard::default());
        let audience: Arc<dyn Audience> = Arc::<Heard>::clone(&heard);
        let ear = Ear::of(audience);
        assert!(ear.hear(request("1", "ping")).unwrap().is_some());
        assert!(ear.hear(request("2", "roots/list")).unwrap().is_none());
        ear.open();
        assert!(ear.hear(request("3", "ping")).unwrap().is_none());
        assert_eq!(*heard.0.lock().unwrap(), ["roots/list", "ping"]);
    }
}
