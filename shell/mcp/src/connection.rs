//! One connection to a server, used on behalf of agents.

use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::time::timeout;

use crate::client_info::ClientInfo;
use crate::connection_limits::ConnectionLimits;
use crate::endpoint::Endpoint;
use crate::error::{McpError, ServerDiagnostics};
use crate::mcp_request::McpRequest;
use crate::message_handler::{MessageDispatcher, MessageHandler};
use crate::negotiation;
use crate::protocol::{Era, EraPreference};
use crate::rpc_channel::RpcChannel;
use crate::rpc_message::RpcError;
use crate::server_description::ServerDescription;

/// A connection to a server. Requests may run concurrently; a clone is the same connection.
///
/// Dropping the last clone kills a started program and its process group at once; [`ServerConnection::close`]
/// lets the program exit cleanly. A process that leaves the process group of its server (`setsid`)
/// ends with that server if this process adopts such processes ([`crate::adopted_processes`]).
#[derive(Debug, Clone)]
pub struct ServerConnection {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    channel: RpcChannel,
    server: ServerDescription,
    dispatcher: Arc<MessageDispatcher>,
}

impl ServerConnection {
    /// Starts the program or connects to the address, and negotiates a version. The audience
    /// receives the messages that belong to no request: on standard streams and on the older HTTP
    /// transport all messages, on streamable HTTP those on the stream of [`ServerConnection::listen`]. It
    /// answers all requests, `ping` included, except a `ping` that arrives before the connection is
    /// open.
    ///
    /// Needs a tokio runtime with time and I/O enabled.
    ///
    /// # Errors
    /// The server cannot be reached or understood.
    pub async fn open(
        endpoint: &Endpoint,
        limits: &ConnectionLimits,
        client_info: &ClientInfo,
        audience: Arc<dyn MessageHandler>,
    ) -> Result<Self, McpError> {
        let newest = EraPreference::Newest;
        Self::open_in_era(endpoint, limits, client_info, audience, newest).await
    }

    /// Like [`ServerConnection::open`], in the preferred era.
    ///
    /// # Errors
    /// Like [`ServerConnection::open`].
    pub async fn open_in_era(
        endpoint: &Endpoint,
        limits: &ConnectionLimits,
        client_info: &ClientInfo,
        audience: Arc<dyn MessageHandler>,
        preference: EraPreference,
    ) -> Result<Self, McpError> {
        Self::open_with(
            endpoint,
            limits,
            client_info,
            MessageDispatcher::with_handler(audience),
            preference,
        )
        .await
    }

    pub(crate) async fn open_with(
        endpoint: &Endpoint,
        limits: &ConnectionLimits,
        client_info: &ClientInfo,
        ear: MessageDispatcher,
        preference: EraPreference,
    ) -> Result<Self, McpError> {
        let ear = Arc::new(ear.with_limits(limits));
        // The negotiation is the largest future here; boxing it keeps the callers' futures small.
        let connect_request = Box::pin(negotiation::open(
            endpoint,
            limits,
            client_info,
            &ear,
            preference,
        ));
        let (wire, connect_request) = match timeout(limits.total, connect_request).await {
            Ok(outcome) => outcome?,
            Err(_elapsed) => {
                return Err(McpError::Timeout {
                    method: "connect".to_owned(),
                    after: limits.total,
                    evidence: Box::<ServerDiagnostics>::default(),
                });
            }
        };
        ear.open();
        let inner = Inner {
            channel: wire,
            server: connect_request.into(),
            dispatcher: ear,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// What the server said about itself when the connection was opened.
    #[must_use]
    pub fn server(&self) -> &ServerDescription {
        &self.inner.server
    }

    /// Whether messages from the server cannot be attributed to a request (stdio, the older HTTP
    /// transport).
    #[must_use]
    pub fn has_shared_stream(&self) -> bool {
        self.inner.channel.transport.has_shared_stream()
    }

    /// Whether the server has answered a request with a stream of events (streamable HTTP).
    #[must_use]
    pub fn is_streaming(&self) -> bool {
        self.inner.channel.transport.is_streaming()
    }

    /// Sends a request and waits for its result or the server's error, both byte for byte.
    ///
    /// Dropping the future cancels the request at the server: by `notifications/cancelled`, and
    /// over HTTP by closing the stream. A timeout does the same.
    ///
    /// # Errors
    /// The request got no answer.
    pub async fn ask(
        &self,
        mut request: McpRequest<'_>,
    ) -> Result<Result<Box<RawValue>, RpcError>, McpError> {
        request.era = self.era();
        self.inner.channel.request(request).await
    }

    /// Restarts the timeout of the request with this id. For transports where only the caller knows
    /// which request a server message belongs to.
    pub fn extend_timeout(&self, id: i64) {
        self.inner.channel.transport.report_activity(id);
    }

    /// Sends a notification.
    ///
    /// # Errors
    /// It could not be sent, or the server refused it.
    pub async fn notify(&self, method: &str, params: Option<&RawValue>) -> Result<(), McpError> {
        self.inner.channel.notify(self.era(), method, params).await
    }

    /// Answers a request from the server.
    ///
    /// # Errors
    /// Like [`ServerConnection::notify`].
    pub async fn answer(
        &self,
        id: &RawValue,
        outcome: Result<&RawValue, &RpcError>,
    ) -> Result<(), McpError> {
        self.inner.channel.respond(id, outcome).await
    }

    /// Opens the stream on which an HTTP server of the handshake era sends its own messages. A
    /// second call does nothing. The stream is reopened while the connection lives, unless the
    /// server offers none. Its failure does not end the connection.
    pub fn listen(&self) {
        if self.era() == Era::Handshake {
            self.inner.channel.transport.listen();
        }
    }

    /// Whether the connection is unusable: the program or the stream has ended, or the session has
    /// expired.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.inner.channel.transport.close_signal().is_set()
    }

    /// Why this side closed the connection, if the server exceeded its message limit.
    #[must_use]
    pub fn message_rate_error(&self) -> Option<McpError> {
        let is_flooded = self.inner.dispatcher.is_rate_exceeded();
        is_flooded.then(|| self.limits().message_rate_error())
    }

    /// Resolves when the connection has ended.
    pub async fn closed(&self) {
        self.inner.channel.transport.close_signal().wait().await;
    }

    /// The exit status of a started program, once the connection has ended.
    pub async fn exit_status(&self) -> Option<ExitStatus> {
        self.inner.channel.transport.exit_status().await
    }

    /// The process id of a started program.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.inner.channel.transport.pid()
    }

    /// What a started program has written so far besides messages. Empty for HTTP.
    #[must_use]
    pub fn diagnostics(&self) -> ServerDiagnostics {
        *self.inner.channel.transport.diagnostics()
    }

    /// Closes the connection for all clones: deletes the session, or ends the program and every
    /// process it started.
    pub async fn close(self) {
        self.inner.channel.close().await;
    }

    pub(crate) fn limits(&self) -> &ConnectionLimits {
        &self.inner.channel.limits
    }

    pub(crate) fn timeout_error(&self, method: &str, after: Duration) -> McpError {
        self.inner.channel.timeout_error(method, after)
    }

    fn era(&self) -> Era {
        self.inner.server.era
    }
}
