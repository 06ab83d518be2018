//! The transports that carry messages.

mod bounded_lines;
mod http_client;
mod http_response;
mod http_server_stream;
mod legacy_sse;
mod server_process;
mod stderr_tail;
mod stdio;
mod streamable_http;

use std::process::ExitStatus;

use serde_json::value::RawValue;

use crate::close_signal::CloseSignal;
use crate::error::{McpError, ServerDiagnostics};
use crate::mcp_request::McpRequest;
use crate::message_handler::{MessageDispatcher, MessageHandler, ServerMessage};
use crate::message_rate::MessageRateExceeded;
use crate::pending_requests::RpcOutcome;
use crate::protocol::Era;
use crate::serve::encode;

pub(crate) use http_client::ServerHttpClient;
pub(crate) use legacy_sse::LegacySse;
pub(crate) use stdio::Stdio;
pub(crate) use streamable_http::StreamableHttp;

/// A request that is cancelled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cancellation {
    pub(crate) era: Era,
    pub(crate) id: i64,
    pub(crate) reason: &'static str,
}

/// An open connection to a server.
#[derive(Debug)]
pub(crate) enum Transport {
    /// A program's standard streams.
    Stdio(Box<Stdio>),
    /// Streamable HTTP.
    Http(StreamableHttp),
    /// The HTTP+SSE transport of 2024-11-05.
    LegacySse(Box<LegacySse>),
}

impl Transport {
    /// Sends a request and waits for its answer. The caller sets the timeout.
    pub(crate) async fn exchange(&self, request: McpRequest<'_>) -> Result<RpcOutcome, McpError> {
        match self {
            Self::Stdio(stdio) => stdio.exchange(request).await,
            Self::Http(http) => http.exchange(request).await,
            Self::LegacySse(sse) => sse.exchange(request).await,
        }
    }

    /// Sends a notification or a response. The caller sets the timeout. `header` is the method if a
    /// header repeats it.
    pub(crate) async fn send_message(
        &self,
        step: &str,
        header: Option<&str>,
        body: String,
    ) -> Result<(), McpError> {
        match self {
            Self::Stdio(stdio) => stdio.send_message(body).await,
            Self::Http(http) => http.send_message(step, header, body).await,
            Self::LegacySse(sse) => sse.send_message(step, body).await,
        }
    }

    /// Cancels a request at the server, without waiting.
    pub(crate) fn cancel(&self, cancellation: Cancellation) {
        match self {
            Self::Stdio(stdio) => stdio.try_send_message(cancellation.text()),
            // In the stateless era closing the stream cancels the request, and dropping the
            // exchange does that.
            Self::Http(_) if cancellation.era == Era::Stateless => {}
            Self::Http(http) => http.send_in_background(cancellation.text()),
            Self::LegacySse(sse) => sse.send_in_background(cancellation.text()),
        }
    }

    /// Notifies the waiting request that the server is working on it.
    pub(crate) fn report_activity(&self, id: i64) {
        match self {
            Self::Stdio(stdio) => stdio.requests().report_activity(id),
            Self::LegacySse(sse) => sse.requests().report_activity(id),
            // The stream of a request shows this itself.
            Self::Http(_) => {}
        }
    }

    /// Opens the stream for the server's own messages, if the transport has a separate one.
    pub(crate) fn listen(&self) {
        if let Self::Http(http) = self {
            http.listen();
        }
    }

    /// The id of a response that matched no request since the last request was sent.
    pub(crate) fn unmatched_id(&self) -> Option<String> {
        match self {
            Self::Stdio(stdio) => stdio.requests().unmatched_id(),
            Self::Http(_) => None,
            Self::LegacySse(sse) => sse.requests().unmatched_id(),
        }
    }

    /// The exit status of a started program, once the connection has ended.
    pub(crate) async fn exit_status(&self) -> Option<ExitStatus> {
        match self {
            Self::Stdio(stdio) => stdio.exit_status().await,
            Self::Http(_) | Self::LegacySse(_) => None,
        }
    }

    /// The signal for the end of the connection.
    pub(crate) fn close_signal(&self) -> &CloseSignal {
        match self {
            Self::Stdio(stdio) => stdio.requests().close_signal(),
            Self::Http(http) => http.close_signal(),
            Self::LegacySse(sse) => sse.requests().close_signal(),
        }
    }

    /// Whether all messages of the server arrive on one stream.
    pub(crate) fn has_shared_stream(&self) -> bool {
        !matches!(self, Self::Http(_))
    }

    /// Sets the version that later messages name in their header.
    pub(crate) fn adopt_version(&self, version: &str) {
        match self {
            Self::Http(http) => http.adopt_version(version),
            Self::Stdio(_) | Self::LegacySse(_) => {}
        }
    }

    /// What the server wrote besides messages.
    pub(crate) fn diagnostics(&self) -> Box<ServerDiagnostics> {
        match self {
            Self::Stdio(stdio) => stdio.diagnostics(),
            Self::Http(_) | Self::LegacySse(_) => Box::default(),
        }
    }

    /// Whether the server has answered with a stream of events (streamable HTTP).
    pub(crate) fn is_streaming(&self) -> bool {
        match self {
            Self::Http(http) => http.is_streaming(),
            Self::Stdio(_) | Self::LegacySse(_) => false,
        }
    }

    /// The process id of a program.
    pub(crate) fn pid(&self) -> Option<u32> {
        match self {
            Self::Stdio(stdio) => Some(stdio.pid()),
            Self::Http(_) | Self::LegacySse(_) => None,
        }
    }

    /// Closes the connection; ends a started program and every process it started.
    pub(crate) async fn close(&self) {
        match self {
            Self::Stdio(stdio) => stdio.close().await,
            Self::Http(http) => http.close().await,
            Self::LegacySse(sse) => sse.close(),
        }
    }
}

impl Cancellation {
    fn text(self) -> String {
        let Self { era: _, id, reason } = self;
        let params = format!(r#"{{"requestId":{id},"reason":"{reason}"}}"#);
        let params = RawValue::from_string(params).ok();
        encode::notification("notifications/cancelled", params.as_deref())
    }
}

/// Passes a message to the request's audience, else to the connection's; returns the response to
/// send if neither exists.
fn dispatch(
    message: ServerMessage,
    aside: Option<&dyn MessageHandler>,
    ear: &MessageDispatcher,
) -> Result<Option<String>, MessageRateExceeded> {
    match aside {
        Some(aside) => {
            ear.admit(&message)?;
            aside.handle(message);
            Ok(None)
        }
        None => ear.dispatch(message),
    }
}

/// A task that is aborted when its owner is dropped.
#[derive(Debug)]
struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl AbortOnDrop {
    fn abort(&self) {
        self.0.abort();
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
