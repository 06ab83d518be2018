//! Errors between client and server.

use std::fmt;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use serde_json::value::RawValue;

use crate::endpoint::InvalidEndpoint;
use crate::rpc_message::{InvalidMessage, RpcError};

/// Why a server could not be reached or did not answer as the protocol requires.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// The endpoint is malformed; nothing was started.
    #[error(transparent)]
    Endpoint(#[from] InvalidEndpoint),
    /// The program does not exist.
    #[error("program `{program}` not found; install it or give its full path")]
    ProgramNotFound {
        /// The program as given.
        program: String,
    },
    /// The working directory of a program does not exist.
    #[error("working directory `{directory}` not found")]
    DirectoryNotFound {
        /// The directory as given.
        directory: String,
    },
    /// The program exists but could not be started.
    #[error("program `{program}` could not be started")]
    Spawn {
        /// The program as given.
        program: String,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// The program exited before it answered.
    #[error("the server exited{} before answering `{method}`{evidence}", status_text(*.status))]
    Exited {
        /// The request left unanswered.
        method: String,
        /// Its exit status; absent if it closed its output but is still running.
        status: Option<ExitStatus>,
        /// What it wrote before it exited.
        evidence: Box<ServerDiagnostics>,
    },
    /// A timeout expired.
    #[error("no answer to `{method}` within {after:?}{evidence}")]
    Timeout {
        /// The request or step that timed out.
        method: String,
        /// The timeout that expired.
        after: Duration,
        /// What the server wrote while the client waited.
        evidence: Box<ServerDiagnostics>,
    },
    /// A message is larger than the limit.
    #[error("the server sent a message of more than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// The server sent more items than the limit allows.
    #[error("the server sent more than {limit} {what}")]
    TooMany {
        /// What was counted.
        what: LimitedItem,
        /// The limit.
        limit: usize,
    },
    /// The server broke the protocol.
    #[error("the answer to `{method}` breaks the protocol: {fault}{evidence}")]
    Protocol {
        /// The request concerned.
        method: String,
        /// What is wrong.
        #[source]
        fault: ProtocolFault,
        /// What the server wrote while the client waited.
        evidence: Box<ServerDiagnostics>,
    },
    /// Client and server have no protocol version in common.
    #[error("the server speaks only protocol versions unknown to this client: {}", .offered.join(", "))]
    NoCommonVersion {
        /// The versions the server offered.
        offered: Vec<String>,
    },
    /// The server answered with an HTTP error status.
    #[error("HTTP status {status} for `{method}`: {}{}", remedy(*.status), excerpt_text(.excerpt))]
    Http {
        /// The request concerned.
        method: String,
        /// The status.
        status: u16,
        /// The start of the body.
        excerpt: String,
    },
    /// The server no longer knows the session; a new connection may work.
    #[error("the session has ended: {refusal}")]
    SessionExpired {
        /// How the server refused the request.
        #[source]
        refusal: Box<Self>,
    },
    /// The server redirects to an address that the client does not follow.
    #[error(
        "HTTP status {status} redirects to `{location}`, which is not followed; use that address if it is the intended server"
    )]
    Redirected {
        /// The status.
        status: u16,
        /// The `Location` header.
        location: String,
    },
    /// The client could not open a connection.
    #[error("no connection to `{url}`: {}", root_cause(.source))]
    Connect {
        /// The address.
        url: String,
        /// The HTTP client's reason.
        #[source]
        source: toolwarden_http::HttpError,
    },
    /// The client did not accept the server's certificate or TLS handshake.
    #[error("no secure connection to `{url}`: {}", root_cause(.source))]
    Tls {
        /// The address.
        url: String,
        /// The HTTP client's reason.
        #[source]
        source: toolwarden_http::HttpError,
    },
    /// The machine's certificate store could not be read.
    #[error("the certificate store of this machine could not be read")]
    CertificateStore {
        /// The TLS library's reason.
        #[source]
        source: toolwarden_http::CertificateError,
    },
    /// A connection broke in the middle of an exchange.
    #[error("the connection broke during `{method}`: {}", root_cause(.source))]
    Broken {
        /// The request concerned.
        method: String,
        /// The HTTP client's reason.
        #[source]
        source: toolwarden_http::HttpError,
    },
    /// The server answered with a JSON-RPC error.
    #[error("the server refused `{method}` with error {code}: {message}")]
    Rpc {
        /// The request concerned.
        method: String,
        /// The JSON-RPC error code.
        code: i64,
        /// The server's text.
        message: String,
        /// The server's `data`, byte for byte.
        data: Option<Box<RawValue>>,
    },
    /// The parameters of a request are not an object.
    #[error("the parameters of `{method}` are not an object")]
    InvalidParams {
        /// The request that was not sent.
        method: String,
    },
    /// This side closed the connection.
    #[error("the connection is closed")]
    Closed,
}

impl McpError {
    /// The error that a server answered a request with.
    pub(crate) fn from_rpc(method: &str, error: RpcError) -> Self {
        Self::Rpc {
            method: method.to_owned(),
            code: error.code,
            message: error.message,
            data: error.data,
        }
    }

    /// Whether a retry with the same settings cannot succeed. All other errors may be transient.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Endpoint(_)
            | Self::ProgramNotFound { .. }
            | Self::DirectoryNotFound { .. }
            | Self::NoCommonVersion { .. }
            | Self::Redirected { .. }
            | Self::Tls { .. }
            | Self::CertificateStore { .. }
            | Self::InvalidParams { .. } => true,
            Self::Spawn { source, .. } => source.kind() == io::ErrorKind::PermissionDenied,
            Self::Http { status, .. } => matches!(status, 401 | 403 | 407),
            Self::Exited { .. }
            | Self::Timeout { .. }
            | Self::TooLarge { .. }
            | Self::TooMany { .. }
            | Self::Protocol { .. }
            | Self::SessionExpired { .. }
            | Self::Connect { .. }
            | Self::Broken { .. }
            | Self::Rpc { .. }
            | Self::Closed => false,
        }
    }
}

/// How a server broke the protocol.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolFault {
    /// A message is not JSON-RPC.
    #[error(transparent)]
    Message(#[from] InvalidMessage),
    /// The answer's id belongs to no open request.
    #[error("it has the id {got}, expected {expected}")]
    WrongId {
        /// The id that was sent.
        expected: i64,
        /// The id that came back, as JSON text.
        got: String,
    },
    /// The stream ended without an answer.
    #[error("the stream ended without an answer")]
    NoAnswer,
    /// The HTTP answer to a request is `202 Accepted` or empty.
    #[error("HTTP status {status} without an answer")]
    NoBody {
        /// The status.
        status: u16,
    },
    /// The HTTP answer is neither JSON nor an event stream.
    #[error(
        "content type `{content_type}` is neither application/json nor text/event-stream; is this the address of an MCP server?"
    )]
    ContentType {
        /// The content type, empty if absent.
        content_type: String,
    },
    /// The result lacks a member or has one of the wrong type.
    #[error("the result is not as specified: {source}")]
    Result {
        /// The JSON reader's reason.
        #[source]
        source: serde_json::Error,
    },
    /// A cursor leads back to a page already read.
    #[error("the cursor `{cursor}` came twice")]
    RepeatedCursor {
        /// The cursor.
        cursor: String,
    },
    /// The address for messages is on another origin.
    #[error("the message address `{address}` is not on the server's origin")]
    ForeignAddress {
        /// The address as sent.
        address: String,
    },
}

/// Things that are counted against a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitedItem {
    /// Pages of a listing.
    Pages,
    /// Tools of a listing.
    Tools,
    /// Bytes of output that is not JSON-RPC.
    NoiseBytes,
    /// Bytes of a listing.
    ListBytes,
    /// Notifications and requests that the server sent in one minute, or their total bytes.
    Messages,
}

impl fmt::Display for LimitedItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pages => "pages",
            Self::Tools => "tools",
            Self::NoiseBytes => "bytes that are not JSON-RPC",
            Self::ListBytes => "bytes of a list",
            Self::Messages => "notifications and requests in a minute, or too many bytes of them",
        })
    }
}

/// What a program wrote besides JSON-RPC: usually the reason why it failed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerDiagnostics {
    /// The last part of its error output.
    pub stderr: String,
    /// The number of output lines skipped because they are not JSON-RPC.
    pub skipped_lines: u64,
    /// The last skipped line, shortened.
    pub last_skipped: String,
}

impl fmt::Display for ServerDiagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.skipped_lines > 0 {
            write!(
                f,
                "; skipped {} lines that are not JSON-RPC, the last: `{}`",
                self.skipped_lines, self.last_skipped
            )?;
        }
        let stderr = self.stderr.trim();
        if !stderr.is_empty() {
            write!(f, "; its error output ends:\n{stderr}")?;
        }
        Ok(())
    }
}

fn status_text(status: Option<ExitStatus>) -> String {
    status.map_or_else(
        || " or closed its output".to_owned(),
        |status| format!(" ({status})"),
    )
}

/// What the user can do about an HTTP status.
fn remedy(status: u16) -> &'static str {
    match status {
        400 => "the server rejects the request",
        401 => "the server wants credentials; add an Authorization header",
        403 => "the credentials do not permit this, or the server rejects this Origin or Host",
        404 => {
            "nothing there, or the session ended; check the path (often /mcp), then connect again"
        }
        405 => "the address does not take this method; check the path (often /mcp)",
        406 => "the server does not offer JSON or an event stream",
        407 => "the proxy wants credentials",
        408 | 504 => "the server or a proxy timed out; try again",
        413 => "the request is too large for the server",
        429 => "too many requests; try again later",
        502 | 503 => "the server is not available; try again later",
        500..=599 => "the server failed; see its log",
        _ => "unexpected",
    }
}

fn excerpt_text(excerpt: &str) -> String {
    if excerpt.is_empty() {
        String::new()
    } else {
        format!(": {excerpt}")
    }
}

/// The innermost reason: the HTTP client's own texts say only which step failed.
fn root_cause(error: &toolwarden_http::HttpError) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transient_and_permanent_errors_are_distinguished() {
        let http = |status| McpError::Http {
            method: "m".to_owned(),
            status,
            excerpt: String::new(),
        };
        let spawn = |kind: io::ErrorKind| McpError::Spawn {
            program: "p".to_owned(),
            source: kind.into(),
        };
        for (error, is_permanent) in [
            (McpError::Endpoint(InvalidEndpoint::EmptyCommandLine), true),
            (http(401), true),
            (http(403), true),
            (http(404), false),
            (http(503), false),
            (spawn(io::ErrorKind::PermissionDenied), true),
            (spawn(io::ErrorKind::WouldBlock), false),
            (McpError::NoCommonVersion { offered: vec![] }, true),
            (McpError::Closed, false),
        ] {
            assert_eq!(error.is_permanent(), is_permanent, "{error:?}");
        }
    }
}
