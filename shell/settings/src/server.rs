//! One server behind the gateway.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use toolwarden_mcp::{ConnectionLimits, Endpoint};

use super::{SampleCall, ServerLimits, WatchSettings, bare_url};

/// One server behind the gateway.
#[derive(Clone, PartialEq)]
pub struct ServerSettings {
    /// Its name: letters, digits, `-` and `_`.
    pub name: String,
    /// How to reach it, including headers and variables with their secrets.
    pub endpoint: Endpoint,
    /// When it is first started or connected.
    pub start: StartMode,
    /// The MCP era for this server.
    pub protocol: ProtocolChoice,
    /// Which conversations share a connection to it.
    pub sessions: SessionSharing,
    /// The maximum number of concurrent requests.
    pub concurrency: NonZeroU32,
    /// The maximum number of concurrent requests of one principal; `None` is three quarters of all.
    pub principal_concurrency: Option<NonZeroU32>,
    /// The maximum number of connections or child processes.
    pub max_links: NonZeroU32,
    /// Its timeouts.
    pub timeouts: Timeouts,
    /// How it is restarted after a failure.
    pub restart: RestartSettings,
    /// Its circuit breaker.
    pub breaker: BreakerSettings,
    /// How much it may send.
    pub limits: ServerLimits,
    /// How its definitions and results are watched.
    pub watch: WatchSettings,
    /// The scope in which the commands under `watch` pin its tools; `None` is the default one.
    pub scope: Option<String>,
    /// Calls that the commands under `watch` make at every check.
    pub calls: Vec<SampleCall>,
    /// The rules for its tools that the policy does not name, with the keys of a tool in a policy.
    pub tool_defaults: Option<serde_json::Value>,
}

/// When a server is first started or connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartMode {
    /// With the gateway.
    #[default]
    Eager,
    /// On first use.
    Lazy,
}

/// The MCP era for a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProtocolChoice {
    /// The era of the agent, if the server supports it.
    #[default]
    Auto,
    /// 2024-11-05 to 2025-11-25.
    Handshake,
    /// 2026-07-28.
    Stateless,
}

/// Which conversations share a connection to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionSharing {
    /// None: every conversation has its own.
    #[default]
    Isolated,
    /// All of them: the server is declared stateless.
    Shared,
}

/// Timeouts for a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// To open a connection.
    pub connect: Duration,
    /// To start, up to its first response.
    pub start: Duration,
    /// To answer a request; progress restarts the timeout.
    pub request: Duration,
    /// How long an idle connection of a conversation is kept.
    pub idle: Duration,
    /// How long a list waits for the server before the gateway sends it without the server's tools.
    pub list: Duration,
}

/// How a server is restarted after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestartSettings {
    /// The delay after the first failure.
    pub first: Duration,
    /// The maximum delay.
    pub max_delay: Duration,
}

/// When the gateway stops sending requests to a server for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerSettings {
    /// The number of consecutive failures that opens the circuit breaker.
    pub failures: NonZeroU32,
    /// How long the circuit breaker stays open.
    pub pause: Duration,
}

/// The default maximum number of connections to a server with an address.
const MAX_CONNECTIONS: NonZeroU32 = const { NonZeroU32::new(256).unwrap() };
/// The default maximum number of child processes of a server with a command: each has its own memory.
const MAX_CHILDREN: NonZeroU32 = const { NonZeroU32::new(32).unwrap() };

/// Whether this is a valid server name. It becomes a prefix of tool names, so it may only use characters
/// that every provider accepts in a tool's name.
#[must_use]
pub fn is_server_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=64).contains(&name.len()) && name.bytes().all(fits)
}

impl ServerSettings {
    /// A server with default settings.
    #[must_use]
    pub fn new(name: &str, endpoint: Endpoint) -> Self {
        Self {
            name: name.to_owned(),
            start: StartMode::default(),
            protocol: ProtocolChoice::default(),
            sessions: SessionSharing::default(),
            concurrency: const { NonZeroU32::new(64).unwrap() },
            principal_concurrency: None,
            max_links: match &endpoint {
                Endpoint::Command(_) => MAX_CHILDREN,
                Endpoint::Url(_) => MAX_CONNECTIONS,
            },
            timeouts: Timeouts::default(),
            restart: RestartSettings::default(),
            breaker: BreakerSettings::default(),
            limits: ServerLimits::default(),
            watch: WatchSettings::default(),
            scope: None,
            calls: Vec::new(),
            tool_defaults: None,
            endpoint,
        }
    }

    /// The maximum number of concurrent requests of one principal.
    #[must_use]
    pub fn principal_request_limit(&self) -> NonZeroU32 {
        let all = self.concurrency;
        let share = NonZeroU32::new(all.get() - all.get() / 4).unwrap_or(all);
        self.principal_concurrency.map_or(share, |it| it.min(all))
    }

    /// The maximum number of connections on which one principal may have requests; `None` if all share
    /// them.
    #[must_use]
    pub fn principal_link_limit(&self) -> Option<NonZeroU32> {
        let all = self.max_links;
        let share = NonZeroU32::new(all.get() - all.get() / 4);
        share.filter(|_| self.sessions == SessionSharing::Isolated)
    }

    /// Whether the gateway runs it the same way: only what the commands under `watch` read may differ.
    pub(super) fn runs_like(&self, other: &Self) -> bool {
        let mut same = self.clone();
        same.scope.clone_from(&other.scope);
        same.calls.clone_from(&other.calls);
        same == *other
    }

    /// The limits of a connection to it.
    #[must_use]
    pub fn limits(&self) -> ConnectionLimits {
        let limits = ConnectionLimits::default();
        let Timeouts {
            connect,
            start,
            request,
            idle: _,
            list: _,
        } = self.timeouts;
        ConnectionLimits {
            connect,
            start,
            request,
            message_bytes: self.limits.message_bytes,
            pages: count(self.limits.list_pages),
            tools: count(self.limits.list_entries),
            list_bytes: self.limits.list_bytes,
            messages_per_minute: count(self.limits.messages_per_minute),
            bytes_per_minute: self.limits.bytes_per_minute,
            // The total must not cut short a slow start followed by a slow response.
            total: limits.total.max(start.saturating_add(request)),
            ..limits
        }
    }
}

fn count(number: NonZeroU32) -> usize {
    usize::try_from(number.get()).unwrap_or(usize::MAX)
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            start: Duration::from_secs(60),
            request: Duration::from_secs(60),
            idle: Duration::from_secs(300),
            list: Duration::from_secs(10),
        }
    }
}

impl Default for RestartSettings {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(500),
            max_delay: Duration::from_secs(60),
        }
    }
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self {
            failures: const { NonZeroU32::new(5).unwrap() },
            pause: Duration::from_secs(30),
        }
    }
}

impl fmt::Debug for ServerSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSettings")
            .field("name", &self.name)
            .field("endpoint", &MaskedEndpoint(&self.endpoint))
            .field("start", &self.start)
            .field("protocol", &self.protocol)
            .field("sessions", &self.sessions)
            .field("concurrency", &self.concurrency)
            .field("principal_concurrency", &self.principal_concurrency)
            .field("max_links", &self.max_links)
            .field("timeouts", &self.timeouts)
            .field("restart", &self.restart)
            .field("breaker", &self.breaker)
            .field("limits", &self.limits)
            .field("watch", &self.watch)
            .field("scope", &self.scope)
            .field("calls", &self.calls)
            .field("tool_defaults", &self.tool_defaults)
            .finish()
    }
}

/// An endpoint without arguments and query, which may hold secrets.
struct MaskedEndpoint<'e>(&'e Endpoint);

impl fmt::Debug for MaskedEndpoint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Endpoint::Command(command) => f
                .debug_struct("Command")
                .field("program", &command.program)
                .finish_non_exhaustive(),
            Endpoint::Url(url) => f
                .debug_struct("Url")
                .field("url", &bare_url(&url.url))
                .finish_non_exhaustive(),
        }
    }
}
