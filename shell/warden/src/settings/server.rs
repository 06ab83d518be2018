//! One server behind the gateway.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use toolwarden_mcp::{Endpoint, Limits};

use super::{ServerLimits, WatchSettings, bare_url};

/// One server behind the gateway.
#[derive(Clone, PartialEq)]
pub struct ServerSettings {
    /// Its name: letters, digits, `-` and `_`.
    pub name: String,
    /// How it is reached; headers and variables with their secrets.
    pub endpoint: Endpoint,
    /// When it is started or reached first.
    pub start: Start,
    /// Which era of the protocol it is spoken to in.
    pub protocol: ProtocolChoice,
    /// Who shares a connection to it.
    pub sessions: SessionSharing,
    /// The most requests under way at a time.
    pub concurrency: NonZeroU32,
    /// The most requests of one principal under way at a time; none is three quarters of all.
    pub principal_concurrency: Option<NonZeroU32>,
    /// The most connections or children at a time.
    pub max_links: NonZeroU32,
    /// How long it may take.
    pub timeouts: Timeouts,
    /// How it is tried again after a failure.
    pub restart: Restart,
    /// When it is left alone for a while.
    pub breaker: Breaker,
    /// How much it may send.
    pub limits: ServerLimits,
    /// How its definitions and results are watched.
    pub watch: WatchSettings,
    /// What a tool of it is held to that the policy does not name: the keys of a tool of a policy.
    pub tool_defaults: Option<serde_json::Value>,
}

/// When a server is started or reached first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// With the gateway.
    #[default]
    Eager,
    /// When somebody needs it.
    Lazy,
}

/// Which era of the protocol a server is spoken to in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProtocolChoice {
    /// The era of the agent where the server speaks it.
    #[default]
    Auto,
    /// 2024-11-05 to 2025-11-25.
    Handshake,
    /// 2026-07-28.
    Stateless,
}

/// Who shares a connection to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionSharing {
    /// Nobody: every conversation has its own.
    #[default]
    Isolated,
    /// Everybody: the server is declared stateless.
    Shared,
}

/// How long a server may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// To open a connection.
    pub connect: Duration,
    /// To start, up to its first answer.
    pub start: Duration,
    /// To answer a request; progress starts the wait anew.
    pub request: Duration,
    /// How long a connection of a conversation is kept without use.
    pub idle: Duration,
    /// How long a list waits for it before it goes out without it.
    pub list: Duration,
}

/// How a server is tried again after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restart {
    /// After the first failure.
    pub first: Duration,
    /// At most.
    pub most: Duration,
}

/// When a server is left alone for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breaker {
    /// After so many failures in a row.
    pub failures: NonZeroU32,
    /// For so long.
    pub pause: Duration,
}

/// The most connections to a server that is reached by an address, unless it is said otherwise.
const MAX_CONNECTIONS: NonZeroU32 = const { NonZeroU32::new(256).unwrap() };
/// The most children of a server that is started: each is a process with memory of its own.
const MAX_CHILDREN: NonZeroU32 = const { NonZeroU32::new(32).unwrap() };

/// Whether a server can be called so. The name stands before those of its tools, so that it has to be
/// made of what every provider takes in a tool's name.
#[must_use]
pub fn is_server_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=64).contains(&name.len()) && name.bytes().all(fits)
}

impl ServerSettings {
    /// A server about which nothing else is said.
    #[must_use]
    pub fn new(name: &str, endpoint: Endpoint) -> Self {
        Self {
            name: name.to_owned(),
            start: Start::default(),
            protocol: ProtocolChoice::default(),
            sessions: SessionSharing::default(),
            concurrency: const { NonZeroU32::new(64).unwrap() },
            principal_concurrency: None,
            max_links: match &endpoint {
                Endpoint::Command(_) => MAX_CHILDREN,
                Endpoint::Url(_) => MAX_CONNECTIONS,
            },
            timeouts: Timeouts::default(),
            restart: Restart::default(),
            breaker: Breaker::default(),
            limits: ServerLimits::default(),
            watch: WatchSettings::default(),
            tool_defaults: None,
            endpoint,
        }
    }

    /// The most requests of one principal under way at a time.
    #[must_use]
    pub fn share(&self) -> NonZeroU32 {
        let all = self.concurrency;
        let share = NonZeroU32::new(all.get() - all.get() / 4).unwrap_or(all);
        self.principal_concurrency.map_or(share, |it| it.min(all))
    }

    /// The most connections that one principal may have requests on at a time; none where all share them.
    #[must_use]
    pub fn link_share(&self) -> Option<NonZeroU32> {
        let all = self.max_links;
        let share = NonZeroU32::new(all.get() - all.get() / 4);
        share.filter(|_| self.sessions == SessionSharing::Isolated)
    }

    /// What a connection to it is held to.
    #[must_use]
    pub fn limits(&self) -> Limits {
        let limits = Limits::default();
        let Timeouts {
            connect,
            start,
            request,
            idle: _,
            list: _,
        } = self.timeouts;
        Limits {
            connect,
            start,
            request,
            message_bytes: self.limits.message_bytes,
            pages: count(self.limits.list_pages),
            tools: count(self.limits.list_entries),
            list_bytes: self.limits.list_bytes,
            messages_per_minute: count(self.limits.messages_per_minute),
            bytes_per_minute: self.limits.bytes_per_minute,
            // Neither a slow start nor a slow answer may be cut short by the sum of both.
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

impl Default for Restart {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(500),
            most: Duration::from_secs(60),
        }
    }
}

impl Default for Breaker {
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
            .field("endpoint", &Shown(&self.endpoint))
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
            .field("tool_defaults", &self.tool_defaults)
            .finish()
    }
}

/// An endpoint without arguments and query, which may hold secrets.
struct Shown<'e>(&'e Endpoint);

impl fmt::Debug for Shown<'_> {
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
