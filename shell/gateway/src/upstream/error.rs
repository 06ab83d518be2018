use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use toolwarden_mcp::McpError;

/// Why a server gave no answer. The texts name the server and are fit for agents: of what a program wrote
/// to its error output they have the last lines, where it ended, with the secrets of its settings masked.
#[derive(Clone, Debug, thiserror::Error)]
pub enum UpstreamError {
    /// It cannot be used until somebody changes something: no such program, bad credentials, no common
    /// version.
    #[error("server `{server}` cannot be used: {}", Brief(.source))]
    Permanent {
        /// The server.
        server: Arc<str>,
        /// When it is tried again, should somebody ask.
        retry_after: Duration,
        /// What is wrong.
        #[source]
        source: Arc<McpError>,
    },
    /// It could not be reached or started. The request was not sent, or refused unread.
    #[error("server `{server}` is down: {}", Brief(.source))]
    Down {
        /// The server.
        server: Arc<str>,
        /// When it is tried again.
        retry_after: Duration,
        /// What is wrong.
        #[source]
        source: Arc<McpError>,
    },
    /// It ended during the request, which may or may not have been carried out.
    #[error("server `{server}` was lost during the request, which may have been carried out: {}{}", Brief(.source), LastWords(.source))]
    Lost {
        /// The server.
        server: Arc<str>,
        /// What happened.
        #[source]
        source: Arc<McpError>,
    },
    /// It did not answer in time. The request may have been carried out.
    #[error("server `{server}` did not answer within {after:?}")]
    Timeout {
        /// The server.
        server: Arc<str>,
        /// The time it had.
        after: Duration,
    },
    /// It failed too often in a row and is left alone for a while.
    #[error("server `{server}` failed too often and is left alone; try again in {} s", .retry_after.as_secs().max(1))]
    Open {
        /// The server.
        server: Arc<str>,
        /// When it is tried again.
        retry_after: Duration,
    },
    /// Requests of the principal failed too often in a row; those of others are sent.
    #[error("your requests to server `{server}` failed too often; try again in {} s", .retry_after.as_secs().max(1))]
    OpenForPrincipal {
        /// The server.
        server: Arc<str>,
        /// When they are sent again.
        retry_after: Duration,
    },
    /// Too much is under way. The request was not sent.
    #[error("server `{server}` is busy: {what}")]
    Busy {
        /// The server.
        server: Arc<str>,
        /// What there is too much of.
        what: Busy,
    },
    /// It answered, but not as the protocol demands.
    #[error("server `{server}` broke the protocol: {}", Brief(.source))]
    Protocol {
        /// The server.
        server: Arc<str>,
        /// What is wrong.
        #[source]
        source: Arc<McpError>,
    },
    /// A call of a tool was tried without a permit. Nothing was sent.
    #[error("a call of a tool of server `{server}` needs a permit")]
    NeedsPermit {
        /// The server.
        server: Arc<str>,
    },
    /// There is no open link to send a message over that is not worth opening one.
    #[error("there is no open connection to server `{server}`")]
    NoLink {
        /// The server.
        server: Arc<str>,
    },
    /// Its session had expired, so that it did not read the call.
    #[error("the session with server `{server}` has expired")]
    Unread {
        /// The server.
        server: Arc<str>,
        /// Whether the server said so itself, which it may say of a call that it has acted upon.
        was_sent: bool,
    },
    /// It was reached anew, and what is to be called is not what it was. The call was not made.
    #[error("server `{server}` came back with another tool of that name: {why}")]
    Withheld {
        /// The server.
        server: Arc<str>,
        /// Why the tool is withheld.
        why: String,
    },
    /// The server was taken away, or the conversation has ended.
    #[error("the connection to server `{server}` is closed")]
    Closed {
        /// The server.
        server: Arc<str>,
    },
}

/// What there is too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Busy {
    /// Requests under way.
    Requests {
        /// The most there may be.
        limit: u32,
    },
    /// Requests of one principal under way.
    Share {
        /// The most there may be.
        limit: u32,
    },
    /// Connections of one principal in use.
    LinkShare {
        /// The most there may be.
        limit: u32,
    },
    /// Connections, none of them idle.
    Links {
        /// The most there may be.
        limit: u32,
    },
}

/// When somebody may try again who met a busy server.
const AFTER_BUSY: Duration = Duration::from_secs(1);

impl UpstreamError {
    /// When it makes sense to try again, where that is known.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Permanent { retry_after, .. }
            | Self::Down { retry_after, .. }
            | Self::Open { retry_after, .. }
            | Self::OpenForPrincipal { retry_after, .. } => Some(*retry_after),
            Self::Busy { .. } => Some(AFTER_BUSY),
            Self::Lost { .. }
            | Self::Timeout { .. }
            | Self::Protocol { .. }
            | Self::NeedsPermit { .. }
            | Self::NoLink { .. }
            | Self::Unread { .. }
            | Self::Withheld { .. }
            | Self::Closed { .. } => None,
        }
    }

    /// Whether the request may have reached the server. In doubt it has.
    #[must_use]
    pub fn was_sent(&self) -> bool {
        match self {
            Self::Open { .. }
            | Self::OpenForPrincipal { .. }
            | Self::Busy { .. }
            | Self::NeedsPermit { .. }
            | Self::NoLink { .. }
            | Self::Withheld { .. } => false,
            Self::Unread { was_sent, .. } => *was_sent,
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
            | Self::Open { server, .. }
            | Self::OpenForPrincipal { server, .. }
            | Self::Busy { server, .. }
            | Self::Protocol { server, .. }
            | Self::NeedsPermit { server }
            | Self::NoLink { server }
            | Self::Unread { server, .. }
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
            Self::Open { .. } => "open",
            Self::OpenForPrincipal { .. } => "open_for_principal",
            Self::Busy { .. } => "busy",
            Self::Protocol { .. } => "protocol",
            Self::NeedsPermit { .. } => "needs_permit",
            Self::NoLink { .. } => "no_link",
            Self::Unread { .. } => "unread",
            Self::Withheld { .. } => "quarantined",
            Self::Closed { .. } => "closed",
        }
    }
}

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requests { limit } => write!(f, "{limit} requests are under way"),
            Self::Share { limit } => write!(f, "{limit} of your requests are under way"),
            Self::LinkShare { limit } => write!(f, "{limit} of your connections are in use"),
            Self::Links { limit } => write!(f, "{limit} connections are open and in use"),
        }
    }
}

/// An error without what the program wrote, which may hold secrets.
struct Brief<'e>(&'e McpError);

impl fmt::Display for Brief<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let brief = self.told();
        f.write_str(&toolwarden_mcp::masked(&brief))
    }
}

impl Brief<'_> {
    fn told(&self) -> String {
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
            // The text of the body may repeat what was sent.
            McpError::Http { method, status, .. } => {
                format!("HTTP status {status} for `{method}`")
            }
            other => other.to_string(),
        }
    }
}

/// The last lines that a program wrote to its error output before it ended, on one line and bounded.
/// Secrets of its settings are masked already, and so is what looks like one.
struct LastWords<'e>(&'e McpError);

impl fmt::Display for LastWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LINES: usize = 3;
        const CHARACTERS: usize = 400;
        let McpError::Exited { evidence, .. } = self.0 else {
            return Ok(());
        };
        let lines = evidence.stderr.lines().map(str::trim);
        let lines: Vec<&str> = lines.filter(|it| !it.is_empty()).collect();
        let last = lines.iter().skip(lines.len().saturating_sub(LINES));
        let last = last.map(|it| masked(it)).collect::<Vec<_>>().join(" / ");
        if last.is_empty() {
            return Ok(());
        }
        let excess = last.chars().count().saturating_sub(CHARACTERS);
        let shown = last.chars().skip(excess).filter(|it| !it.is_control());
        write!(f, "; its error output ends: {}", shown.collect::<String>())
    }
}

/// A line without the values of assignments whose names suggest a secret, and without bearer tokens.
fn masked(line: &str) -> String {
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
    use super::masked;

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
            assert_eq!(masked(line), shown);
        }
    }
}
