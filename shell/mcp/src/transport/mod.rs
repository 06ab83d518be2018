//! The ways messages travel.

mod http;
mod http_base;
mod http_listen;
mod http_stream;
mod legacy_sse;
mod lines;
mod process;
mod stderr;
mod stdio;

use std::process::ExitStatus;
use std::sync::Arc;

use serde_json::value::RawValue;
use tokio::sync::Notify;

use crate::audience::{Audience, Ear, FromServer};
use crate::correlate::Outcome;
use crate::ending::Ending;
use crate::error::{Evidence, McpError};
use crate::flood::Flooded;
use crate::protocol::Era;
use crate::serve::answer;

pub(crate) use http::Http;
pub(crate) use http_base::HttpBase;
pub(crate) use legacy_sse::LegacySse;
pub(crate) use stdio::Stdio;

/// One request on its way.
pub(crate) struct Call<'a> {
    /// The JSON-RPC id.
    pub(crate) id: i64,
    /// The method, for headers and error texts.
    pub(crate) method: &'a str,
    /// The whole message.
    pub(crate) body: String,
    /// The era, which decides the HTTP headers.
    pub(crate) era: Era,
    /// What the header with the name repeats.
    pub(crate) name: Option<String>,
    /// More HTTP headers; other transports ignore them.
    pub(crate) headers: Vec<(String, String)>,
    /// Hears what comes on the stream of this request.
    pub(crate) aside: Option<&'a dyn Audience>,
    /// Told when the server shows that it works on the request.
    pub(crate) signs: &'a Arc<Notify>,
}

/// A request that is given up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cancellation {
    pub(crate) era: Era,
    pub(crate) id: i64,
    pub(crate) reason: &'static str,
}

/// An open way to a server.
#[derive(Debug)]
pub(crate) enum Transport {
    /// A program's standard streams.
    Stdio(Box<Stdio>),
    /// Streamable HTTP.
    Http(Http),
    /// The HTTP+SSE transport of 2024-11-05.
    LegacySse(Box<LegacySse>),
}

impl Transport {
    /// Sends a request and waits for its answer. The caller sets the time-out.
    pub(crate) async fn exchange(&self, call: Call<'_>) -> Result<Outcome, McpError> {
        match self {
            Self::Stdio(stdio) => stdio.exchange(call).await,
            Self::Http(http) => http.exchange(call).await,
            Self::LegacySse(sse) => sse.exchange(call).await,
        }
    }

    /// Sends a message that wants no answer. The caller sets the time-out. `header` is the method
    /// where a header repeats it.
    pub(crate) async fn tell(
        &self,
        step: &str,
        header: Option<&str>,
        body: String,
    ) -> Result<(), McpError> {
        match self {
            Self::Stdio(stdio) => stdio.tell(body).await,
            Self::Http(http) => http.tell(step, header, body).await,
            Self::LegacySse(sse) => sse.tell(step, body).await,
        }
    }

    /// Tells the server that a request is given up, without waiting.
    pub(crate) fn cancel(&self, cancellation: Cancellation) {
        match self {
            Self::Stdio(stdio) => stdio.try_tell(cancellation.text()),
            // Closing the stream is what the stateless era knows, and dropping the exchange does it.
            Self::Http(_) if cancellation.era == Era::Stateless => {}
            Self::Http(http) => http.tell_later(cancellation.text()),
            Self::LegacySse(sse) => sse.tell_later(cancellation.text()),
        }
    }

    /// Tells the wait for a request that the server works on it.
    pub(crate) fn sign_of_life(&self, id: i64) {
        match self {
            Self::Stdio(stdio) => stdio.requests().sign_of_life(id),
            Self::LegacySse(sse) => sse.requests().sign_of_life(id),
            // The stream of a request shows it by itself.
            Self::Http(_) => {}
        }
    }

    /// Opens the stream on which the server speaks by itself, where that is one of its own.
    pub(crate) fn listen(&self) {
        if let Self::Http(http) = self {
            http.listen();
        }
    }

    /// The id of an answer to no request, seen since the last request was sent.
    pub(crate) fn stray(&self) -> Option<String> {
        match self {
            Self::Stdio(stdio) => stdio.requests().stray(),
            Self::Http(_) => None,
            Self::LegacySse(sse) => sse.requests().stray(),
        }
    }

    /// How a started program ended, once the connection has ended.
    pub(crate) async fn exit_status(&self) -> Option<ExitStatus> {
        match self {
            Self::Stdio(stdio) => stdio.exit_status().await,
            Self::Http(_) | Self::LegacySse(_) => None,
        }
    }

    /// The end of the connection.
    pub(crate) fn ending(&self) -> &Ending {
        match self {
            Self::Stdio(stdio) => stdio.requests().ending(),
            Self::Http(http) => http.ending(),
            Self::LegacySse(sse) => sse.requests().ending(),
        }
    }

    /// Whether all messages of the server come on one stream.
    pub(crate) fn is_channel(&self) -> bool {
        !self.has_headers()
    }

    /// Whether requests carry headers that repeat parts of them.
    pub(crate) fn has_headers(&self) -> bool {
        matches!(self, Self::Http(_))
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

    /// Whether the server has answered by a stream of events (streamable HTTP).
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

    /// Ends the connection and, for a program, the program with all it started.
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
        answer::notification("notifications/cancelled", params.as_deref())
    }
}

/// Passes a message on to whoever is nearest; returns the answer to send if that is nobody.
fn pass_on(
    message: FromServer,
    aside: Option<&dyn Audience>,
    ear: &Ear,
) -> Result<Option<String>, Flooded> {
    match aside {
        Some(aside) => {
            ear.admit(&message)?;
            aside.hear(message);
            Ok(None)
        }
        None => ear.hear(message),
    }
}

/// A task that ends with its owner.
#[derive(Debug)]
struct OwnedTask(tokio::task::JoinHandle<()>);

impl OwnedTask {
    fn abort(&self) {
        self.0.abort();
    }
}

impl Drop for OwnedTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}
