//! One request to a server, from the caller down to the transport.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::Notify;

use crate::message_handler::MessageHandler;
use crate::protocol::Era;
use crate::serve::encode;

/// One request to a server. Every layer passes on the same value, and adds what it decides: the connection its era,
/// the channel an id.
#[derive(Clone, Copy)]
pub struct McpRequest<'a> {
    /// The method.
    pub method: &'a str,
    /// The text of the parameters, sent unchanged. In the stateless era it already carries the
    /// client's envelope: see [`crate::protocol::with_client_meta`].
    pub params: Option<&'a RawValue>,
    /// HTTP headers beyond those that the era requires; other transports ignore them.
    pub headers: &'a [(String, String)],
    /// How long the server may send nothing about the request before it times out; `None` means the limit of the
    /// connection.
    pub timeout: Option<Duration>,
    /// Receives the messages that the server sends on the stream of this request (HTTP only).
    pub handler: Option<&'a dyn MessageHandler>,
    /// Called with the JSON-RPC id just before the request is sent, and again if it is sent a second time.
    pub on_sent: Option<&'a (dyn Fn(i64) + Sync)>,
    /// Decides the HTTP headers. The connection sets it.
    pub(crate) era: Era,
    /// The JSON-RPC id. The channel sets it.
    pub(crate) id: i64,
    /// Notified when the server shows that it is working on the request. The channel sets it.
    pub(crate) activity: Option<&'a Arc<Notify>>,
}

impl<'a> McpRequest<'a> {
    /// A request with only a method and parameters.
    #[must_use]
    pub const fn new(method: &'a str, params: Option<&'a RawValue>) -> Self {
        Self {
            method,
            params,
            headers: &[],
            timeout: None,
            handler: None,
            on_sent: None,
            era: Era::Handshake,
            id: 0,
            activity: None,
        }
    }

    /// The whole message.
    pub(crate) fn body(&self) -> String {
        encode::request(&self.id.to_string(), self.method, self.params)
    }

    /// The signal for the server's activity.
    pub(crate) fn activity(&self) -> Arc<Notify> {
        self.activity.cloned().unwrap_or_default()
    }
}

impl fmt::Debug for McpRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Parameters and headers may contain secrets.
        f.debug_struct("McpRequest")
            .field("method", &self.method)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
