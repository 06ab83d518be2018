use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use toolwarden_mcp::McpError;

/// Why a server gave no response. The texts name the server and are safe to show to agents: if a program
/// ended, they quote the last lines of its error output, with the secrets of its settings masked.
#[derive(Clone, Debug, thiserror::Error)]
pub enum UpstreamError {
    /// An operator must fix the cause before it can be used: no such program, bad credentials, no common
    /// version.
    #[error("server `{server}` cannot be used: {}", ErrorSummary(.source))]
    Permanent {
        /// The server.
        server: Arc<str>,
        /// The time after which a request tries it again.
        retry_after: Duration,
        /// The cause.
        #[source]
        source: Arc<McpError>,
    },
    /// It could not be reached or started. The request was not sent, or the server refused it unread.
    #[error("server `{server}` is down: {}", ErrorSummary(.source))]
    Down {
        /// The server.
        server: Arc<str>,
        /// When it is tried again.
        retry_after: Duration,
        /// The cause.
        #[source]
        source: Arc<McpError>,
    },
    /// It ended during the request, which may or may not have been carried out.
    #[error("server `{server}` was lost during the request, which may have been carried out: {}{}", ErrorSummary(.source), StderrExcerpt(.source))]
    Lost {
        /// The server.
        server: Arc<str>,
        /// What happened.
        #[source]
        source: Arc<McpError>,
    },
    /// It did not respond in time. The request may have been carried out.
    #[error("server `{server}` did not answer within {after:?}")]
    Timeout {
        /// The server.
        server: Arc<str>,
        /// The timeout.
        after: Duration,
    },
    /// It failed too often in a row, and its breaker is open.
    #[error("server `{server}` failed too often, so its circuit breaker is open; try again in {} s", .retry_after.as_secs().max(1))]
    BreakerOpen {
        /// The server.
        server: Arc<str>,
        /// When it is tried again.
        retry_after: Duration,
    },
    /// The principal's requests failed too often in a row; requests of other principals are still sent.
    #[error("your requests to server `{server}` failed too often; try again in {} s", .retry_after.as_secs().max(1))]
    BreakerOpenForPrincipal {
        /// The server.
        server: Arc<str>,
        /// When they are sent again.
        retry_after: Duration,
    },
    /// Too many requests or connections are in use. The request was not sent.
    #[error("server `{server}` is busy: {what}")]
    Busy {
        /// The server.
        server: Arc<str>,
        /// The limit that was reached.
        what: BusyReason,
    },
    /// Its response breaks the protocol.
    #[error("server `{server}` broke the protocol: {}", ErrorSummary(.source))]
    Protocol {
        /// The server.
        server: Arc<str>,
        /// The cause.
        #[source]
        source: Arc<McpError>,
    },
    /// A tool was called without a permit. Nothing was sent.
    #[error("a call of a tool of server `{server}` needs a permit")]
    NeedsPermit {
        /// The server.
        server: Arc<str>,
    },
    /// No link is open, and the message does not justify opening one.
    #[error("there is no open connection to server `{server}`")]
    NoLink {
        /// The server.
        server: Arc<str>,
    },
    /// Its session had expired, so it did not read the call.
    #[error("the session with server `{server}` has expired")]
    SessionExpired {
        /// The server.
        server: Arc<str>,
        /// Whether the server itself reported the expiry, which it may also do for a call that it has carried out.
        was_sent: bool,
    },
    /// After a reconnect, the tool is no longer the one that was approved. The call was not made.
    #[error("server `{server}` was reconnected and has another tool of that name: {why}")]
    Withheld {
        /// The server.
        server: Arc<str>,
        /// Why the tool is withheld.
        why: String,
    },
    /// The server was removed, or the conversation has ended.
    #[error("the connection to server `{server}` is closed")]
    Closed {
        /// The server.
        server: Arc<str>,
    },
}

/// Which limit was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusyReason {
    /// Requests in flight.
    Requests {
        /// The limit.
        limit: u32,
    },
    /// Requests of one principal in flight.
    PrincipalRequests {
        /// The limit.
        limit: u32,
    },
    /// Connections of one principal in use.
    PrincipalLinks {
        /// The limit.
        limit: u32,
    },
    /// Connections, none of them idle.
    Links {
        /// The limit.
        limit: u32,
    },
}

/// How long a caller waits before it retries a busy server.
const BUSY_RETRY_AFTER: Duration = Duration::from_secs(1);

impl UpstreamError {
    /// The time after which a retry makes sense, if it is known.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Permanent { retry_after, .. }
            | Self::Down { retry_after, .. }
            | Self::BreakerOpen { retry_after, .. }
            | Self::BreakerOpenForPrincipal { retry_after, .. } => Some(*retry_after),
            Self::Busy { .. } => Some(BUSY_RETRY_AFTER),
            Self::Lost { .. }
            | Self::Timeout { .. }
            | Self::Protocol { .. }
            | Self::NeedsPermit { .. }
            | Self::NoLink { .. }
            | Self::SessionExpired { .. }
            | Self::Withheld { .. }
            | Self::Closed { .. } => None,
        }
    }

    /// Whether the request may have reached the server. In doubt, the answer is yes.
    #[must_use]
    pub fn may_have_been_sent(&self) -> bool {
        match self {
            Self::BreakerOpen { .. }
            | Self::BreakerOpenForPrincipal { .. }
            | Self::Busy { .. }
            | Self::NeedsPermit { .. }
            | Self::NoLink { .. }
            | Self::Withheld { .. } => false,
            Self::SessionExpired { was_sent, .. } => *was_sent,
            Self::Permanent { source, .. } | Self::Down { source, .. } => !matches!(
                **source,
                McpError::Connect { .. }
                    | McpError::Tls { .. }
                    | McpError::ProgramNotFound { .. }
                    | McpError::DirectoryNotFound { .. }
                    | McpError::Spawn { .. }
                    | McpError::Endpoint(_)
                    | McpError::NoCommonVersion { .. }
            ),
            Self::Lost { .. }
            | Self::Timeout { .. }
            | Self::Protocol { .. }
            | Self::Closed { .. } => true,
        }
    }

    /// The server concerned.
    #[must_use]
    pub fn server(&self) -> &str {
        match self {
            Self::Permanent { server, .. }
            | Self::Down { server, .. }
            | Self::Lost { server, .. }
            | Self::Timeout { server, .. }
            | Self::BreakerOpen { server, .. }
            | Self::BreakerOpenForPrincipal { server, .. }
            | Self::Busy { server, .. }
            | Self::Protocol { server, .. }
            | Self::NeedsPermit { server }
            | Self::NoLink { server }
            | Self::SessionExpired { server, .. }
            | Self::Withheld { server, .. }
            | Self::Closed { server } => server,
        }
    }

    /// A stable word for metrics.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Permanent { .. } => "permanent",
            Self::Down { .. } => "down",
            Self::Lost { .. } => "lost",
            Self::Timeout { .. } => "timeout",
            Self::BreakerOpen { .. } => "open",
            Self::BreakerOpenForPrincipal { .. } => "open_for_principal",
            Self::Busy { .. } => "busy",
            Self::Protocol { .. } => "protocol",
            Self::NeedsPermit { .. } => "needs_permit",
            Self::NoLink { .. } => "no_link",
            Self::SessionExpired { .. } => "unread",
            Self::Withheld { .. } => "quarantined",
            Self::Closed { .. } => "closed",
        }
    }
}

impl fmt::Display for BusyReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requests { limit } => write!(f, "{limit} requests are in flight"),
            Self::PrincipalRequests { limit } => {
                write!(f, "{limit} of your requests are in flight")
            }
            Self::PrincipalLinks { limit } => write!(f, "{limit} of your connections are in use"),
            Self::Links { limit } => write!(f, "{limit} connections are open and in use"),
        }
    }
}

/// Formats an error without the program's output, which may contain secrets.
struct ErrorSummary<'e>(&'e McpError);

impl fmt::Display for ErrorSummary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let brief = self.text();
        f.write_str(&toolwarden_mcp::mask_secrets(&brief))
    }
}

impl ErrorSummary<'_> {
    fn text(&self) -> String {
        match self.0 {
            McpError::Exited {
                status: Some(status),
                method,
                ..
            } => format!("it exited ({status}) before answering `{method}`"),
            McpError::Exited {
                status: None,
                method,
                ..
            } => format!("it closed its output before answering `{method}`"),
            McpError::Timeout { method, after, .. } => {
                format!("no answer to `{method}` within {after:?}")
            }
            McpError::Protocol { method, fault, .. } => {
                format!("the answer to `{method}` breaks the protocol: {fault}")
            }
            // The body may repeat what was sent.
            McpError::Http { method, status, .. } => {
                format!("HTTP status {status} for `{method}`")
            }
            other => other.to_string(),
        }
    }
}

/// Formats the last lines of a program's error output before it ended, on one line and bounded in length.
/// The secrets of its settings are already masked, and so is text that looks like a secret.
struct StderrExcerpt<'e>(&'e McpError);

impl fmt::Display for StderrExcerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LINES: usize = 3;
        const CHARACTERS: usize = 400;
        let McpError::Exited { evidence, .. } = self.0 else {
            return Ok(());
        };
        let lines = evidence.stderr.lines().map(str::trim);
        let lines: Vec<&str> = lines.filter(|it| !it.is_empty()).collect();
        let last = lines.iter().skip(lines.len().saturating_sub(LINES));
        let last = last
            .map(|it| mask_secrets(it))
            .collect::<Vec<_>>()
            .join(" / ");
        if last.is_empty() {
            return Ok(());
        }
        let excess = last.chars().count().saturating_sub(CHARACTERS);
        let shown = last.chars().skip(excess).filter(|it| !it.is_control());
        write!(f, "; its error output ends: {}", shown.collect::<String>())
    }
}

/// A line without the values of assignments whose names suggest a secret, and without bearer tokens.
fn mask_secrets(line: &str) -> String {
    const SECRET: [&str; 9] = [
        "pass", "pwd", "secret", "token", "key", "auth", "cred", "cookie", "bearer",
    ];
    let is_secret = |name: &str| {
        let name = name.to_ascii_lowercase();
        SECRET.iter().any(|it| name.contains(it))
    };
    let mut before_secret = false;
    let words = line.split(' ').map(|word| {
        let hidden = std::mem::replace(&mut before_secret, false) && !word.is_empty();
        match word.split_once(['=', ':']) {
            Some((name, "")) => before_secret = is_secret(name),
            Some((name, _)) if is_secret(name) => return format!("{name}=***"),
            Some(_) => {}
            None => before_secret = word.eq_ignore_ascii_case("bearer"),
        }
        if hidden && !before_secret {
            return "***".to_owned();
        }
        word.to_owned()
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod last_words {
    use super::mask_secrets;

    #[test]
    fn what_looks_like_a_secret_is_masked() {
        for (line, shown) in [
            ("no database; password=hunter2", "no database; password=***"),
            ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
            ("api_key: sk-123 is bad", "api_key: *** is bad"),
            (
                "cannot open /tmp/x: no such file",
                "cannot open /tmp/x: no such file",
            ),
        ] {
            assert_eq!(mask_secrets(line), shown);
        }
    }
}
