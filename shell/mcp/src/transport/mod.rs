//! The ways messages travel.

mod http;
mod http_base;
mod legacy_sse;
mod lines;
mod process;
mod stderr;
mod stdio;

use serde_json::value::RawValue;

use crate::error::{Evidence, McpError};

pub(crate) use http::Http;
pub(crate) use http_base::HttpBase;
pub(crate) use legacy_sse::LegacySse;
pub(crate) use stdio::Stdio;

/// One request on its way.
#[derive(Debug)]
pub(crate) struct Call {
    /// The JSON-RPC id.
    pub(crate) id: i64,
    /// The method, for headers and error texts.
    pub(crate) method: String,
    /// The whole message.
    pub(crate) body: String,
    /// HTTP headers that repeat parts of the message; other transports ignore them.
    pub(crate) headers: Vec<(String, String)>,
}

/// An open way to a server.
#[derive(Debug)]
pub(crate) enum Transport {
    /// A program's standard streams.
    Stdio(Stdio),
    /// Streamable HTTP.
    Http(Http),
    /// The HTTP+SSE transport of 2024-11-05.
    LegacySse(LegacySse),
}

impl Transport {
    /// Sends a request and waits for its answer. The caller sets the time-out.
    pub(crate) async fn exchange(&self, call: &Call) -> Result<Box<RawValue>, McpError> {
        match self {
            Self::Stdio(stdio) => stdio.exchange(call).await,
            Self::Http(http) => http.exchange(call).await,
            Self::LegacySse(sse) => sse.exchange(call).await,
        }
    }

    /// Sends a message that wants no answer. The caller sets the time-out.
    pub(crate) async fn notify(&self, method: &str, body: String) -> Result<(), McpError> {
        match self {
            Self::Stdio(stdio) => stdio.notify(body).await,
            Self::Http(http) => http.notify(method, body).await,
            Self::LegacySse(sse) => sse.notify(method, body).await,
        }
    }

    /// Tells the server that a request is given up, where that costs no round trip.
    pub(crate) fn cancel(&self, cancellation: String) {
        match self {
            Self::Stdio(stdio) => stdio.try_notify(cancellation),
            // Dropping the exchange closes its connection, which is what a server notices.
            Self::Http(_) | Self::LegacySse(_) => {}
        }
    }

    /// The id of an answer to no request, seen since the last request was sent.
    pub(crate) fn stray(&self) -> Option<String> {
        match self {
            Self::Stdio(stdio) => stdio.stray(),
            Self::Http(_) => None,
            Self::LegacySse(sse) => sse.stray(),
        }
    }

    /// The version that later messages name in their header.
    pub(crate) fn adopt_version(&self, version: &str) {
        match self {
            Self::Http(http) => http.adopt_version(version),
            Self::Stdio(_) | Self::LegacySse(_) => {}
        }
    }

    /// What the server wrote besides messages.
    pub(crate) fn evidence(&self) -> Box<Evidence> {
        match self {
            Self::Stdio(stdio) => stdio.evidence(),
            Self::Http(_) | Self::LegacySse(_) => Box::default(),
        }
    }

    /// Ends the connection and, for a program, the program with all it started.
    pub(crate) async fn close(self) {
        match self {
            Self::Stdio(stdio) => stdio.close().await,
            Self::Http(http) => http.close().await,
            Self::LegacySse(_) => {}
        }
    }
}

/// A task that ends with its owner.
#[derive(Debug)]
struct OwnedTask(tokio::task::JoinHandle<()>);

impl Drop for OwnedTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}
